"""SSH packets: AES-GCM, which Conch lacks, with few copies of long ones. [RFC 5647, as OpenSSH changed it]

Encrypting and authenticating a packet is one call, and the packets of a channel that are ready together go to the socket
in one. Conch handles the packets of other ciphers, the exchange of keys, and short messages.

Cost: memory: one packet that is arriving. CPU: per byte of a packet, one encryption and one copy; one more for what the
socket does not take at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from twisted.conch.ssh.common import getNS
from twisted.conch.ssh.connection import MSG_CHANNEL_DATA
from twisted.conch.ssh.transport import SSHCiphers, SSHServerTransport

from grid.errors import FormatError
from grid.ports import Buffer
from grid.wire.connections.sockets import send_now

GCM_KEY_SIZES = {b"aes128-gcm@openssh.com": 16, b"aes256-gcm@openssh.com": 32}
"""Key sizes by cipher, in order of preference."""

BLOCK_SIZE = 16
TAG_SIZE = 16
NONCE_SIZE = 12
LEAST_PADDING = 4

PADDING_BYTES = 2**12
"""Random bytes to get at once for the padding of packets: a call to the system for each would cost as much as its framing."""

MAX_DATA = 2**17
"""Bytes of one packet's data that clients may send."""

MAX_PACKET = MAX_DATA + 2**10

MAX_STRANGERS_PACKET = 35_000
"""Bytes of a packet before the client has logged in. [RFC 4253, 6.1]"""

OFFER_S = 1.0
"""Seconds to wait for the client's algorithms before offering ours: clients send theirs without waiting."""


class GcmCipher:
    """One direction of a connection. Each packet takes the next nonce."""

    def __init__(self, name: bytes, key: bytes, iv: bytes) -> None:
        """key, iv: as derived, longer than needed."""
        self._cipher = AESGCM(key[: GCM_KEY_SIZES[name]])
        self._fixed = iv[:4]
        self._counter = int.from_bytes(iv[4:NONCE_SIZE], "big")
        self._random, self._random_at = b"", 0

    def seal(self, payload: list[Buffer]) -> tuple[bytes, bytes]:
        """A packet: its length, and its encrypted rest. payload: pieces, the message number first."""
        size = sum(map(len, payload)) + 1
        padding = BLOCK_SIZE - size % BLOCK_SIZE
        if padding < LEAST_PADDING:
            padding += BLOCK_SIZE
        length = (size + padding).to_bytes(4, "big")
        plain = b"".join((bytes((padding,)), *payload, self._padding(padding)))
        return length, self._cipher.encrypt(self._nonce(), plain, length)

    def open(self, length: Buffer, sealed: Buffer) -> memoryview:
        """A packet's payload; FormatError unless the other side sent exactly this packet next."""
        try:
            plain = self._cipher.decrypt(self._nonce(), sealed, length)
        except InvalidTag:
            raise FormatError("an SSH packet was damaged") from None
        padding = plain[0]
        if not LEAST_PADDING <= padding <= len(plain) - 2:
            raise FormatError("an SSH packet has no payload")
        return memoryview(plain)[1 : len(plain) - padding]

    def _padding(self, size: int) -> bytes:
        """Random bytes, each of which is used once."""
        start = self._random_at
        if start + size > len(self._random):
            self._random, start = os.urandom(PADDING_BYTES), 0
        self._random_at = start + size
        return self._random[start : start + size]

    def _nonce(self) -> bytes:
        counter = self._counter
        self._counter = (counter + 1) % 2**64
        return self._fixed + counter.to_bytes(8, "big")


class Ciphers(SSHCiphers):
    """Both directions, each of which may use AES-GCM. sealing, opening: None for other ciphers."""

    sealing: GcmCipher | None = None
    opening: GcmCipher | None = None
    outMAC: Any
    inMAC: Any

    def setKeys(self, outIV: bytes, outKey: bytes, inIV: bytes, inKey: bytes, outInteg: bytes, inInteg: bytes) -> None:
        """Use these keys."""
        if self.outCipType in GCM_KEY_SIZES:
            self.sealing = GcmCipher(self.outCipType, outKey, outIV)
        else:
            self.encryptor = self._getCipher(self.outCipType, outIV, outKey).encryptor()
            self.encBlockSize = BLOCK_SIZE
            self.outMAC = self._getMAC(self.outMACType, outInteg)
        if self.inCipType in GCM_KEY_SIZES:
            self.opening = GcmCipher(self.inCipType, inKey, inIV)
        else:
            self.decryptor = self._getCipher(self.inCipType, inIV, inKey).decryptor()
            self.decBlockSize = BLOCK_SIZE
            self.inMAC = self._getMAC(self.inMACType, inInteg)
            self.verifyDigestSize = self.inMAC[3]


class PacketTransport(SSHServerTransport):
    """A server's side of a connection."""

    transport: Any
    factory: Any
    currentEncryptions: Any
    supportedCiphers: list[bytes]

    def __init__(self) -> None:
        self._arrived = bytearray()
        self._offering: Any = None
        self._has_offered = False
        self._afterwards: list[Callable[[], object]] | None = None
        """What waits for the end of the bytes that are being handled; None if none are."""

    def connectionLost(self, reason: Any = None) -> None:
        """Clean up after the connection."""
        self._stop_waiting()
        super().connectionLost(reason)

    def sendKexInit(self) -> None:
        """Offer our algorithms; the first time, wait for the client's."""
        if self._has_offered:
            super().sendKexInit()
        elif self._offering is None:
            self._offering = self.factory.reactor.callLater(OFFER_S, self._offer)

    def ssh_KEXINIT(self, packet: bytes) -> None:
        """Choose algorithms. A client that knows AES-GCM is offered nothing else, whatever it prefers."""
        if self._keyExchangeState == self._KEY_EXCHANGE_NONE:
            self._stop_waiting()
            self._has_offered = True
            theirs = [names.split(b",") for names in getNS(packet[16:], 4)[2:4]]
            fast = [name for name in GCM_KEY_SIZES if all(name in names for names in theirs)]
            self.supportedCiphers = fast or type(self).supportedCiphers
        super().ssh_KEXINIT(packet)
        if self._keyExchangeState == self._KEY_EXCHANGE_NONE:
            return  # There is no common algorithm, and the connection is being closed.
        chosen = self.nextEncryptions
        self.nextEncryptions = Ciphers(chosen.outCipType, chosen.inCipType, chosen.outMACType, chosen.inMACType)

    def sendPacket(self, messageType: int, payload: bytes) -> None:
        """Send a message, or queue it while keys are exchanged."""
        sealing = self._sealing
        if sealing is None or self._is_blocked(messageType):
            super().sendPacket(messageType, payload)
        else:
            self.transport.writeSequence(sealing.seal([bytes((messageType,)), payload]))
            self.outgoingPacketSequence += 1

    def send_data(self, channel: int, packets: Iterable[tuple[int, list[Buffer]]]) -> None:
        """Send data of a channel: the size of each packet's, and its pieces. channel: the client's number for it."""
        sealing = self._sealing
        number = channel.to_bytes(4, "big")
        if sealing is None or self._is_blocked(MSG_CHANNEL_DATA):
            for size, pieces in packets:
                super().sendPacket(MSG_CHANNEL_DATA, b"".join((number, size.to_bytes(4, "big"), *pieces)))
            return
        kind = bytes((MSG_CHANNEL_DATA,))
        sealed: list[bytes] = []
        for size, pieces in packets:
            sealed += sealing.seal([kind, number, size.to_bytes(4, "big"), *pieces])
            self.outgoingPacketSequence += 1
        left = send_now(self.transport, sealed)
        if left:
            self.transport.writeSequence(left)

    def dataReceived(self, data: bytes) -> None:
        """Take bytes. FormatError, or anything that Conch raises, for invalid ones."""
        if self._afterwards is not None:
            self._handle(data)
            return
        afterwards = self._afterwards = []
        try:
            self._handle(data)
        finally:
            self._afterwards = None
        for call in afterwards:
            call()

    def call_afterwards(self, call: Callable[[], object]) -> None:
        """Call once all bytes that came together have been handled; if none are being handled, in the next turn of the
        event loop.
        """
        if self._afterwards is None:
            self.factory.reactor.callLater(0, call)
        else:
            self._afterwards.append(call)

    def _handle(self, data: bytes) -> None:
        if self._opening is None:
            super().dataReceived(data)
        else:
            self._arrived += data
            while self._open_next():
                pass

    def getPacket(self) -> bytes | None:
        """The next packet, for Conch. After an exchange of keys, packets may go on with AES-GCM."""
        opening = self._opening
        if opening is None:
            packet: bytes | None = super().getPacket()
            return packet
        data, self.buf = self.buf, b""
        if data:
            self.dataReceived(data)
        return None

    def dispatchMessage(self, messageNum: int, payload: bytes) -> None:
        """Handle a message. FormatError if it must not come before there are keys."""
        if not self.isEncrypted("in") and (messageNum >= 50 or 5 <= messageNum < 20):
            raise FormatError("only messages that exchange keys may come first")
        super().dispatchMessage(messageNum, payload)

    def _open_next(self) -> bool:
        """Handle the next packet; return whether it was complete."""
        opening, arrived = self._opening, self._arrived
        if opening is None:  # An exchange of keys ended in another cipher.
            data, self._arrived = bytes(arrived), bytearray()
            if data:
                super().dataReceived(data)
            return False
        if len(arrived) < 4:
            return False
        length = int.from_bytes(arrived[:4], "big")
        limit = MAX_PACKET if hasattr(self, "avatar") else MAX_STRANGERS_PACKET
        if not BLOCK_SIZE <= length <= limit or length % BLOCK_SIZE:
            raise FormatError("no SSH packet has that length")
        stop = 4 + length + TAG_SIZE
        if len(arrived) < stop:
            return False
        with memoryview(arrived) as view, view[:4] as head, view[4:stop] as sealed:
            payload = opening.open(head, sealed)
        del arrived[:stop]
        self.incomingPacketSequence += 1
        kind = payload[0]
        self.dispatchMessage(kind, payload[1:] if kind == MSG_CHANNEL_DATA else bytes(payload[1:]))  # type: ignore[arg-type]
        return not self.transport.disconnecting

    @property
    def _sealing(self) -> GcmCipher | None:
        return getattr(self.currentEncryptions, "sealing", None)

    @property
    def _opening(self) -> GcmCipher | None:
        current = self.currentEncryptions
        if current.inCipType in GCM_KEY_SIZES and current.opening is None:
            raise FormatError("new keys were announced without an exchange of keys")
        return getattr(current, "opening", None)

    def _is_blocked(self, kind: int) -> bool:
        is_exchanging = self._keyExchangeState != self._KEY_EXCHANGE_NONE
        return is_exchanging and not self._allowedKeyExchangeMessageType(kind)

    def _offer(self) -> None:
        self._offering = None
        self._has_offered = True
        super().sendKexInit()

    def _stop_waiting(self) -> None:
        if self._offering is not None:
            self._offering.cancel()
            self._offering = None
