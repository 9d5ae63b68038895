"""SSH packets and channel data: one encryption per packet, full packets, and no byte that nobody authenticated."""

from __future__ import annotations

import random
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define, field
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.ports import Buffer
from grid.sftp.channels import Output, SftpChannel
from grid.sftp.door import Load
from grid.sftp.packets import GCM_KEY_SIZES, PADDING_BYTES, TAG_SIZE, GcmCipher, PacketTransport
from grid.sftp.server import USUAL_READ, SftpTransport

KEY, IV = bytes(range(64)), bytes(range(100, 164))
NAMES = list(GCM_KEY_SIZES)


def sealed(cipher: GcmCipher, payload: bytes) -> tuple[bytes, bytes]:
    return cipher.seal([payload[:1], payload[1:]])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 10, 11, 12, 26, 27, 28, 32_768])
def test_packet_when_it_is_sealed_opens_to_the_same_payload(name: bytes, size: int) -> None:
    here, there = GcmCipher(name, KEY, IV), GcmCipher(name, KEY, IV)
    for number in range(3):
        payload = bytes([number]) * size
        length, rest = sealed(here, payload)
        body = int.from_bytes(length, "big")
        assert body % 16 == 0 and len(rest) == body + TAG_SIZE
        assert there.open(length, rest) == payload


def test_packet_when_it_is_changed_repeated_or_left_out_is_refused() -> None:
    name = NAMES[0]
    length, rest = sealed(GcmCipher(name, KEY, IV), b"payload")
    for position in range(len(rest)):
        changed = bytearray(rest)
        changed[position] ^= 1
        with pytest.raises(FormatError):
            GcmCipher(name, KEY, IV).open(length, changed)
    with pytest.raises(FormatError):
        GcmCipher(name, KEY, IV).open(bytes(4), rest)
    twice = GcmCipher(name, KEY, IV)
    twice.open(length, rest)
    with pytest.raises(FormatError):
        twice.open(length, rest)
    sender = GcmCipher(name, KEY, IV)
    sealed(sender, b"left out")
    with pytest.raises(FormatError):
        GcmCipher(name, KEY, IV).open(*sealed(sender, b"next"))


def test_padding_when_many_packets_are_sealed_is_random_and_takes_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bytes] = []

    def draw(count: int) -> bytes:
        drawn.append(random.Random(len(drawn)).randbytes(count))
        return drawn[-1]

    monkeypatch.setattr("grid.sftp.packets.os.urandom", draw)
    here, paddings = GcmCipher(NAMES[0], KEY, IV), []
    there = AESGCM(KEY[:16])
    for number in range(1000):
        length, rest = sealed(here, bytes(number % 40 + 1))
        nonce = IV[:4] + (int.from_bytes(IV[4:12], "big") + number).to_bytes(8, "big")
        plain = there.decrypt(nonce, rest, length)
        paddings.append(plain[-plain[0] :])
    assert len(drawn) <= len(b"".join(paddings)) // (PADDING_BYTES - 20) + 1
    rest_of_draws = b"".join(drawn)
    for padding in paddings:
        skipped, _, rest_of_draws = rest_of_draws.partition(padding)
        assert len(skipped) < 20  # The end of a draw, if it was too short.


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(1, 60))
def test_output_when_it_is_taken_in_packets_keeps_every_byte(pieces: list[bytes], most: int) -> None:
    output = Output()
    for piece in pieces:
        output.add(piece)
    wanted, found = b"".join(pieces), []
    assert output.size == len(wanted)
    while output.size:
        size, taken = output.take(most)
        assert size == sum(map(len, taken)) and (size == most or not output.size)
        found.append(b"".join(taken))
    assert b"".join(found) == wanted


@define
class Wire:
    """A connection that notes packets of data, and calls that wait for the next turn of the event loop."""

    packets: list[int] = field(factory=list)
    calls: int = 0
    later: list[Any] = field(factory=list)

    def send_data(self, channel: object, packets: list[tuple[int, object]]) -> None:
        self.packets += [size for size, _ in packets]
        self.calls += 1

    @property
    def transport(self) -> Any:
        return SimpleNamespace(call_afterwards=self.later.append, is_paused=False)

    def turn(self) -> None:
        later, self.later = self.later, []
        for call in later:
            call()


def channel(wire: Wire, window: int) -> SftpChannel:
    services = SimpleNamespace(store=None)
    door = SimpleNamespace(load=Load(), services=services, directories=None, removals=None)
    made = SftpChannel(
        cast(Any, door),
        cast(Any, SimpleNamespace(name="alice", root=None)),
        remoteWindow=window,
        remoteMaxPacket=32_768,
    )
    made.conn = wire
    return made


def test_answers_when_many_are_ready_in_one_turn_fill_their_packets() -> None:
    wire = Wire()
    answering = channel(wire, 2**21)
    for _ in range(16):
        answering.write(bytes(13))
        answering.write(bytes(32_768))
    assert wire.packets == [] and len(wire.later) == 1
    wire.turn()
    assert wire.packets == [32_768] * 16 + [16 * 13] and wire.calls == 1
    assert (answering.unsent, wire.later) == (0, [])


def test_answer_when_the_window_is_full_waits_for_the_client() -> None:
    wire = Wire()
    answering = channel(wire, 40_000)
    answering.write(bytes(100_000))
    wire.turn()
    assert (wire.packets, answering.unsent) == ([32_768, 7_232], 60_000)
    wire.packets.clear()
    answering.addWindowBytes(50_000)
    assert (wire.packets, answering.unsent) == ([32_768, 17_232], 10_000)


def test_calls_when_bytes_are_being_handled_wait_for_their_end_but_not_for_the_event_loop() -> None:
    later: list[Any] = []
    said: list[str] = []
    transport = PacketTransport()
    transport.factory = SimpleNamespace(
        reactor=SimpleNamespace(callLater=lambda delay, call: later.append((delay, call)))
    )

    class Opening:
        """Opens packets of one block, each of which is a message of its last byte."""

        def open(self, length: Buffer, sealed: Buffer) -> memoryview:
            return memoryview(bytes([90]) + bytes(sealed[:1]))

    def handle(kind: int, payload: bytes) -> None:
        said.append(f"handles {payload.decode()}")
        transport.call_afterwards(lambda: said.append(f"after {payload.decode()}"))

    transport.currentEncryptions = SimpleNamespace(inCipType=next(iter(GCM_KEY_SIZES)), opening=Opening())
    transport.transport = SimpleNamespace(disconnecting=False)
    cast(Any, transport).dispatchMessage = handle
    packets = [(16).to_bytes(4, "big") + name + bytes(15 + TAG_SIZE) for name in (b"a", b"b", b"c")]
    transport.dataReceived(b"".join(packets)[:-1])
    assert said == ["handles a", "handles b", "after a", "after b"]
    transport.dataReceived(packets[2][-1:])
    assert said[4:] == ["handles c", "after c"] and later == []
    transport.call_afterwards(said.clear)
    assert later == [(0, said.clear)]


@pytest.mark.parametrize(("crowd", "size"), [(1, 2**18), (16, 2**18), (17, 2**16), (1000, 2**14)])
def test_bytes_when_the_client_has_logged_in_are_read_in_pieces_that_suit_the_number_of_connections(
    crowd: int, size: int
) -> None:
    connection: Any = SftpTransport()
    connection.transport = SimpleNamespace(bufferSize=USUAL_READ, abortConnection=lambda: None)
    connection.permit = SimpleNamespace(crowd=crowd)
    connection.dataReceived(bytes(USUAL_READ))
    assert connection.transport.bufferSize == USUAL_READ
    connection.avatar = object()
    connection.dataReceived(bytes(USUAL_READ))
    assert connection.transport.bufferSize == size
    connection.dataReceived(b"little")
    assert connection.transport.bufferSize == min(size, USUAL_READ)


def test_connection_when_it_is_made_sends_answers_without_waiting_for_acknowledgments() -> None:
    calls: list[tuple[str, object]] = []
    noted = {
        name: partial(lambda name, value, *_: calls.append((name, value)), name)
        for name in ("setTcpKeepAlive", "setTcpNoDelay")
    }
    connection: Any = SftpTransport()
    connection.permit = SimpleNamespace(hold=lambda *_: None)
    connection.factory = SimpleNamespace(transports=set(), reactor=SimpleNamespace(callLater=lambda *_: None))
    connection.makeConnection(
        SimpleNamespace(**noted, registerProducer=lambda *_: None, write=lambda data: None, abortConnection=None)
    )
    assert ("setTcpNoDelay", True) in calls
