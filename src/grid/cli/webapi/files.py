"""Files through a gateway: verified lengths when reading, and mutable files. [spec webapi 4]"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap
from grid.cli.webapi.http import Answer, GatewayClient
from grid.cli.webapi.refusals import GatewayError
from grid.errors import AuthorityError, CapError, GridError, NotEnoughSharesError, PeerGoneError
from grid.limits import MAX_CHECK_JSON
from grid.mutable.sources import MemorySource
from grid.ports import Buffer, Event, Observer, Sink, Source
from grid.sinks import BytesSink
from grid.values import define, frozen

MISTAKE: Final = b"problem during download\n"
"""What 1.20 writes into a file when it cannot continue; it may be exactly as long as the missing part. [spec webapi
4.5]
"""

SUSPICIOUS_SIZE = 128 * 1024
"""Files up to this size are one segment; if they fail, they do so before their first byte."""

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})", re.ASCII)


def readable(cap: KnownCap) -> KnownCap:
    """The weakest capability with which a gateway can read the file. CapError, AuthorityError."""
    if isinstance(cap, DirectoryCap):
        raise CapError("this is the capability of a directory, not of a file")
    if cap.authority == "verify":
        raise AuthorityError("this is a verify capability: use the read or write capability to read the file")
    return cap.read_cap()


async def read_file(
    client: GatewayClient, cap: KnownCap, sink: Sink, offset: int, length: int | None, observer: Observer
) -> int:
    """Write bytes of a file to the sink in order and return their number.

    GatewayError or PeerGoneError if some are missing.

    We trust the gateway for the contents: it has the read capability, decrypts and verifies.
    """
    cap = readable(cap)
    if isinstance(cap, LitCap):
        data = cap.data[offset:] if length is None else cap.data[offset : offset + length]
        await sink.write(data)
        return len(data)
    if length == 0:
        return 0
    reading = _Reading(client, cap, offset, length, observer)
    return await reading.run(sink)


@define(eq=False)
class _Reading:
    """One read of a range."""

    client: GatewayClient
    cap: KnownCap
    offset: int
    length: int | None
    observer: Observer
    tail: bytes = b""

    async def run(self, sink: Sink) -> int:
        known = self.cap.size if isinstance(self.cap, ChkCap) else None
        is_whole = self.offset == 0 and (self.length is None or (known is not None and self.length >= known))
        headers = () if is_whole else (("Range", self._range()),)
        is_large = known is None or known > SUSPICIOUS_SIZE
        async with self.client.ask("GET", ["uri", self.cap.to_string()], headers=headers, once=is_large) as answer:
            size = self._expected(answer, known, is_whole)
            if size == 0 and not is_whole:
                return 0
            got = await self._take(answer, sink, size)
        if is_large and got > len(MISTAKE):
            await self._confirm_tail(got)
        return got

    def _range(self) -> str:
        last = "" if self.length is None else str(self.offset + self.length - 1)
        return f"bytes={self.offset}-{last}"

    def _expected(self, answer: Answer, known: int | None, is_whole: bool) -> int:
        """Bytes that the answer must have."""
        if answer.length is None:
            raise GatewayError("the gateway does not say how long the file is")
        if is_whole:
            if answer.status == 206 or (known is not None and answer.length != known):
                raise GatewayError("the gateway's answer is not as long as the file")
            return answer.length
        if answer.status != 206:
            if self.offset >= answer.length:
                return 0  # 1.20 sends the whole file for a range past its end. [spec webapi 4.3]
            raise GatewayError("the gateway's answer is not the range that was asked for")
        match = _CONTENT_RANGE.fullmatch(answer.content_range)
        if match is None:
            raise GatewayError("the gateway does not say which range its answer is")
        first, last, size = (int(number) for number in match.groups())
        wanted = size - 1 if self.length is None else min(self.offset + self.length, size) - 1
        if first != self.offset or last != wanted or answer.length != last - first + 1 or known not in (None, size):
            raise GatewayError("the gateway's answer is not the range that was asked for")
        return answer.length

    async def _take(self, answer: Answer, sink: Sink, size: int) -> int:
        now = self.client.runtime.clock.now
        self.observer(Event(at=now(), what="phase", detail="reading", total=size))
        got = 0
        while piece := await answer.body.next():
            got += len(piece)
            if got > size:
                raise GatewayError("the gateway's answer is longer than it says")
            self.tail = (self.tail + piece)[-len(MISTAKE) :]
            await sink.write(piece)
            self.observer(Event(at=now(), what="progress", count=got, total=size))
        if got != size:
            raise PeerGoneError(f"the gateway broke off the file after {got} of {size} bytes")
        return got

    async def _confirm_tail(self, got: int) -> None:
        """Request the end once more if it could be 1.20's error text."""
        if not any(self.tail.endswith(MISTAKE[:count]) for count in range(1, len(MISTAKE) + 1)):
            return
        gathered = BytesSink()
        start = self.offset + got - len(self.tail)
        again = _Reading(self.client, self.cap, start, len(self.tail), lambda event: None)
        async with self.client.ask(
            "GET", ["uri", self.cap.to_string()], headers=(("Range", again._range()),)
        ) as answer:
            await again._take(answer, gathered, again._expected(answer, None, is_whole=False))
        if bytes(gathered.data) != self.tail:
            raise PeerGoneError("the gateway broke off the file shortly before its end")


@frozen
class RemoteFile:
    """A mutable file behind a gateway; CapError if the capability is not that of a mutable file."""

    client: GatewayClient
    cap: KnownCap
    observer: Observer

    async def size(self) -> int:
        """Bytes of the newest readable version; NotEnoughSharesError if there is none."""
        answer = await self.client.json("GET", ["uri", self.cap.to_string()], [("t", "json")], limit=MAX_CHECK_JSON)
        match answer:
            case ["filenode", {"size": int(size)}] if size >= 0:
                return size
            case ["filenode", dict()]:
                raise NotEnoughSharesError("no version of the file can be read", found=0, needed=1)
        raise GatewayError("the gateway's answer does not describe a file")

    async def overwrite(self, contents: Buffer | Source) -> None:
        """Replace the contents.

        AuthorityError without the write capability; ConflictError if somebody else writes too.
        """
        if self.cap.authority != "write":
            raise AuthorityError(
                "this capability can only read the file: use its write capability to replace the contents"
            )
        source = MemorySource(contents) if isinstance(contents, bytes | bytearray | memoryview) else contents
        answer = await self.client.text(
            "PUT", ["uri", self.cap.to_string()], body=source, sent=progress(self.client, source, self.observer)
        )
        if answer != self.cap.to_string():
            raise GridError("the gateway stored the contents in another file")


def progress(client: GatewayClient, source: Source, observer: Observer) -> Callable[[int], None]:
    """A function that reports sent bytes to the observer."""
    now = client.runtime.clock.now
    observer(Event(at=now(), what="phase", detail="sending", total=source.size))
    return lambda count: observer(Event(at=now(), what="progress", count=count, total=source.size))
