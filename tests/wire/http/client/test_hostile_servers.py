"""The client with servers that answer wrongly, late, too much, too little, or not at all."""

from __future__ import annotations

import pytest

from grid.errors import BadWriteEnablerError, PeerError, PeerGoneError, PeerRefusedError, PeerTimeoutError
from grid.ports import LeaseSecrets, ShareNumber, ShareWrite, SlotSecrets, StorageIndex
from grid.wire.http.client import connection
from grid.wire.http.format.answers import pack_allocation
from grid.wire.http.format.cbor import pack_cbor_bytes
from grid.wire.http.format.frames import END_FRAME, FRAME, Frame, pack_answer
from tests.wire.http.hostile import Conversation, Talk, reply, talking

INDEX = StorageIndex(bytes(16))
LEASE = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
SLOT = SlotSecrets(write_enabler=b"w" * 32, lease=LEASE)
ONE, TWO = ShareNumber(1), ShareNumber(2)
WANTS = {ONE: [(0, 4)], TWO: [(8, 2)]}
GOOD = b"".join(pack_answer({ONE: [b"abcd"], TWO: [b"ij"]}))


def says(answer: bytes) -> Talk:
    def talk(conversation: Conversation, head: bytes) -> None:
        conversation.transport.write(answer)

    return talk


def chunked(*chunks: bytes) -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


async def test_batched_read_when_answered_in_single_bytes_is_understood() -> None:
    async with talking(says(chunked(*(GOOD[i : i + 1] for i in range(len(GOOD)))))) as client:
        found = await client.read_shares(INDEX, WANTS)
        assert {int(n): [bytes(p) for p in pieces] for n, pieces in found.items()} == {1: [b"abcd"], 2: [b"ij"]}


@pytest.mark.parametrize(
    "answer",
    [
        reply(200, GOOD[:-1]),
        reply(200, GOOD[: -FRAME.size]),
        reply(200, GOOD + b"x"),
        reply(200, GOOD + END_FRAME),
        reply(200, b"".join(pack_answer({ONE: [b"abcde"], TWO: [b"ij"]}))),
        reply(200, b"".join(pack_answer({TWO: [b"abcd"], ONE: [b"ij"]}))),
        reply(200, b"".join(pack_answer({ShareNumber(3): [b"abcd"]}))),
        reply(200, FRAME.pack(Frame.SHARE, 1, 1) + FRAME.pack(Frame.LAST, 1, 2**32 - 1) + b"x" * 100),
        reply(200, b"<html>a page</html>"),
        reply(204),
        reply(206, GOOD),
        reply(200, GOOD, ("Transfer-Encoding", "chunked")),
        b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n" + GOOD,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 40_000,
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\0" * 40_000,
    ],
)
async def test_batched_read_when_answered_with_nonsense_is_a_peer_error(answer: bytes) -> None:
    async with talking(says(answer)) as client:
        with pytest.raises(PeerError):
            await client.read_shares(INDEX, WANTS)


@pytest.mark.parametrize(
    "answer",
    [
        reply(206, b"abcd", ("Content-Range", "bytes 4-7/*")),
        reply(206, b"abcd", ("Content-Range", "bytes 0-7/*")),
        reply(206, b"abc", ("Content-Range", "bytes 0-3/*")),
        reply(206, b"abcde", ("Content-Range", "bytes 0-4/*")),
        reply(206, b"abcdefgh", ("Content-Range", "bytes 0-3/*")),
        reply(206, b"abcd"),
        reply(206, b"abcd", ("Content-Range", "bytes 0-3/*"), ("Content-Range", "bytes 0-3/*")),
        reply(200, b"abcd"),
        reply(416),
        reply(500, b"<html>boom</html>"),
        reply(500, b"x" * 20_000),
    ],
)
async def test_single_read_when_answered_with_another_range_is_a_peer_error(answer: bytes) -> None:
    async with talking(says(answer), batched=False) as client:
        with pytest.raises(PeerError):
            await client.read_shares(INDEX, {ONE: [(0, 4)]})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        pack_cbor_bytes([1]),
        pack_cbor_bytes({"already-have": [1], "allocated": [1]}),
        pack_allocation([], [9]),
        pack_allocation([300], []),
        pack_allocation([], [1]) + b"\0",
    ],
)
async def test_allocation_when_answered_with_nonsense_is_a_peer_error(body: bytes) -> None:
    async with talking(says(reply(200, body))) as client:
        with pytest.raises(PeerError):
            await client.allocate(INDEX, LEASE, frozenset({ONE}), 10)


async def test_slot_write_when_refused_for_its_enabler_says_so() -> None:
    async with talking(says(reply(401, b"\x1b[31mred\n"))) as client:
        with pytest.raises(BadWriteEnablerError) as caught:
            await client.test_and_write(INDEX, SLOT, {})
        assert "\x1b" not in str(caught.value) and "red" in str(caught.value)


async def test_slot_write_when_answered_with_more_than_was_asked_for_is_a_peer_error() -> None:
    body = pack_cbor_bytes({"success": True, "data": {0: [b"12345"]}})
    async with talking(says(reply(200, body))) as client:
        for ranges in ([(0, 4)], [(0, 5), (5, 1)], []):
            with pytest.raises(PeerError):
                await client.test_and_write(INDEX, SLOT, {}, ranges)


async def test_upload_when_the_server_never_says_complete_fails_at_its_close() -> None:
    def talk(conversation: Conversation, head: bytes) -> None:
        is_write = b"grid-write" in head
        conversation.transport.write(reply(200, b"" if is_write else pack_allocation([], [1])))

    async with talking(talk) as client:
        upload = (await client.allocate(INDEX, LEASE, frozenset({ONE}), 4)).upload
        await upload.write([ShareWrite(ONE, 0, [b"abcd"])])
        with pytest.raises(PeerError, match="complete"):
            await upload.close([ONE])


async def test_read_when_the_server_stalls_within_a_body_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HTTP_STALL_DEADLINE_S", 0.2)
    monkeypatch.setattr(connection, "TICK_S", 0.1)
    async with talking(says(reply(200, GOOD[:-1], length=len(GOOD)))) as client:
        with pytest.raises(PeerTimeoutError):
            await client.read_shares(INDEX, WANTS)


async def test_read_when_the_server_never_answers_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HTTP_STALL_DEADLINE_S", 0.2)
    monkeypatch.setattr(connection, "TICK_S", 0.1)
    async with talking(lambda conversation, head: None) as client:
        with pytest.raises(PeerTimeoutError):
            await client.read_shares(INDEX, WANTS)


@pytest.mark.parametrize("sent", [b"", reply(200, GOOD)[:20], reply(200, GOOD)[:-3]])
async def test_read_when_the_server_goes_within_its_answer_is_gone(sent: bytes) -> None:
    def talk(conversation: Conversation, head: bytes) -> None:
        conversation.transport.write(sent)
        conversation.transport.loseConnection()

    async with talking(talk) as client:
        with pytest.raises(PeerGoneError):
            await client.read_shares(INDEX, WANTS)


async def test_reads_when_the_server_goes_between_two_of_them_are_asked_again() -> None:
    heads: list[bytes] = []

    def talk(conversation: Conversation, head: bytes) -> None:
        heads.append(head)
        if len(heads) == 2:
            conversation.transport.abortConnection()
        else:
            conversation.transport.write(reply(200, GOOD))

    async with talking(talk) as client:
        for _ in range(2):
            assert len(await client.read_shares(INDEX, WANTS)) == 2
    assert len(heads) == 3


async def test_allocation_when_the_server_goes_is_not_asked_again() -> None:
    heads: list[bytes] = []

    def talk(conversation: Conversation, head: bytes) -> None:
        heads.append(head)
        conversation.transport.abortConnection()

    async with talking(talk) as client:
        with pytest.raises(PeerGoneError):
            await client.allocate(INDEX, LEASE, frozenset({ONE}), 10)
    assert len(heads) == 1


async def test_read_when_cancelled_closes_its_connection_and_the_next_one_works() -> None:
    from twisted.internet.defer import CancelledError, Deferred

    answers = [b""]

    def talk(conversation: Conversation, head: bytes) -> None:
        conversation.transport.write(answers[-1])

    async with talking(talk) as client:
        await client.connect()
        task = Deferred.fromCoroutine(client.read_shares(INDEX, WANTS))
        task.cancel()
        with pytest.raises(CancelledError):
            await task
        answers.append(reply(200, GOOD))
        assert len(await client.read_shares(INDEX, WANTS)) == 2


async def test_refusals_when_of_any_status_are_errors_of_our_tree() -> None:
    for status in (400, 401, 403, 404, 405, 406, 409, 413, 415, 416, 500, 503, 507, 302):
        async with talking(says(reply(status, b"<html>why</html>"))) as client:
            with pytest.raises(PeerRefusedError if status != 507 else Exception) as caught:
                await client.read_shares(INDEX, WANTS)
            assert "html" not in str(caught.value)
