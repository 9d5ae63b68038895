"""The contents of one file in transit, as one stream or as ranges fetched in parallel; counted, throttled and hashed.

Memory: a piece for a stream; `streams` ranges of held_size_of where they are delivered in order. A body never ends early
in silence: it yields exactly the bytes that the source announced, or raises SourceChangedError.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol, cast, runtime_checkable

from grid.ports import Buffer
from grid.transfer.choices import Mode, choose_chunk_size, choose_ranges
from grid.transfer.digest import BLOCK, ContentDigest, DigestKey
from grid.transfer.ends import (
    PIECE_SIZE,
    EndError,
    KeptPart,
    KeptParts,
    NoParts,
    OpenedSource,
    SourceChangedError,
    StreamedFile,
    cancelled_as_error,
)
from grid.transfer.memory import BodyMemory, Unlimited
from grid.transfer.rates import Slow, let_pass, unlimited
from grid.values import field, frozen

FILES_IN_MEMORY = 8
"""Large files whose ranges fit into the memory of a transfer side by side: the default number of files in transit."""
COPIES = 2
"""Whatever is read ahead is held by the library that reads it, and once more as it is put together."""


@runtime_checkable
class OneStream(Protocol):
    """An opened file that must be read as one stream, because nothing tells whether two reads see one version of it."""

    is_one_stream: bool


@frozen(kw_only=True)
class Flow:
    """How contents flow. slow: counts bytes to keep the rate limit. advance: counts bytes.

    chunk_size: None for a size that suits each file. max_memory: for all files of a transfer; None for no limit.
    digest_key: of the journal's digests.
    """

    mode: Mode
    chunk_size: int | None
    streams: int
    slow: Slow
    advance: Callable[[int], None]
    digest_key: DigestKey = field(repr=False)
    max_memory: int | None = None

    def chunk_size_of(self, size: int) -> int:
        """Bytes of a range of a file of this size; a multiple of BLOCK."""
        wanted = self.chunk_size or choose_chunk_size(size)
        return max(wanted // BLOCK, 1) * BLOCK

    def held_size_of(self, size: int) -> int:
        """The same for a range that is delivered in order, and held until those before it are gone."""
        chunk = self.chunk_size_of(size)
        if self.max_memory is None:
            return chunk
        return max(min(chunk, self.max_memory // (FILES_IN_MEMORY * self.streams)) // BLOCK, 1) * BLOCK

    def ranges_of(self, size: int) -> Sequence[tuple[int, int]]:
        """The ranges of a file of this size; empty if it is read as one stream."""
        return choose_ranges(self.mode, size, self.chunk_size_of(size))

    def memory_of(self, size: int) -> int:
        """Bytes that are held of a file of this size at most: ranges, or pieces of one stream."""
        is_ahead = self.streams > 1 and self.ranges_of(size)
        held = self.held_size_of(size) * self.streams if is_ahead else PIECE_SIZE
        return COPIES * min(size, held)


class FileBody:
    """The contents of an opened source."""

    def __init__(
        self,
        opened: OpenedSource,
        size: int,
        flow: Flow,
        parts: KeptParts | None = None,
        scratch: str = "",
        memory: BodyMemory | None = None,
    ) -> None:
        """parts: records the file's parts; None for a file that is small, or read but not sent. scratch: as in Body.
        memory: None if nothing limits it.
        """
        self._opened, self._flow, self.size, self.scratch = opened, flow, size, scratch
        self.memory: BodyMemory = memory or Unlimited()
        self.parts: KeptParts = parts or NoParts()
        self.resumed = 0
        self._slots = asyncio.Semaphore(flow.streams)
        self.digest = ContentDigest(flow.digest_key)
        self.counted = 0

    @property
    def is_ahead(self) -> bool:
        """Whether the source's own stream is the best way to read it, and nothing else was asked for."""
        return self._flow.mode == "auto" and isinstance(self._opened, StreamedFile)

    def ranges(self) -> Sequence[tuple[int, int]]:
        """The ranges to fetch in parallel; empty if they must be delivered in order."""
        if self._flow.mode == "chunked-stream" or isinstance(self._opened, OneStream):
            return []
        return self._flow.ranges_of(self.size)

    async def fetch(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        """Yield exactly the bytes of a range, waiting until fewer than `streams` others are in progress."""
        async with self._slots:
            async for piece in self._exactly(offset, length):
                yield piece

    async def stream(self, offset: int = 0) -> AsyncIterator[Buffer]:
        """Yield all bytes from the offset on, in order. Each piece is lent until the next one is asked for."""
        if isinstance(self._opened, StreamedFile):
            async for piece in self._counted(self._opened.stream(offset), offset, self.size):
                yield piece
            return
        if self._flow.streams == 1 or not self._flow.ranges_of(self.size):
            async for piece in self._exactly(offset, self.size - offset):
                yield piece
            return
        step = self._flow.held_size_of(self.size)
        waiting: deque[asyncio.Task[list[Buffer]]] = deque()
        try:
            while offset < self.size or waiting:
                while offset < self.size and len(waiting) < self._flow.streams:
                    end = min((offset // step + 1) * step, self.size)
                    waiting.append(asyncio.create_task(self._all(offset, end - offset)))
                    offset = end
                pieces = await waiting.popleft()
                pieces.reverse()
                while pieces:
                    yield pieces.pop()  # It can be freed while the others wait.
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def resume(self, part: KeptPart) -> None:
        """Count a range as sent by an earlier attempt; `part.digest` is what `digests` returned for it."""
        self.digest.take(part.offset, part.digest)
        self.resumed += part.length
        self._flow.advance(part.length)

    def digests(self, offset: int, length: int) -> bytes:
        """The digests of a range's blocks, all of which have been read."""
        return self.digest.of_range(offset, length)

    def matches(self, part: KeptPart, read: Callable[[int, int], Buffer]) -> bool:
        """Whether `read` returns what `part.digest` was computed of. Any thread."""
        digest, end = ContentDigest(self._flow.digest_key), part.offset + part.length
        for begin in range(part.offset, end, BLOCK):
            size = min(BLOCK, end - begin)
            data = read(begin, size)
            if len(data) != size:
                return False
            digest.add(begin, data)
        return digest.of_range(part.offset, part.length) == part.digest

    async def require_unchanged(self) -> None:
        """Raise SourceChangedError if the source has changed since it was read."""
        await self._opened.require_unchanged()

    async def _all(self, offset: int, length: int) -> list[Buffer]:
        """The pieces of a range, which its source does not use again: joining them would copy each byte once more."""
        return [piece async for piece in self._exactly(offset, length)]

    async def _exactly(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        async for piece in self._counted(self._opened.read(offset, length), offset, offset + length):
            yield piece

    async def _counted(self, read: AsyncIterator[Buffer], offset: int, end: int) -> AsyncIterator[Buffer]:
        """Pass on what is read of a range. SourceChangedError if it is not exactly that many bytes."""
        pieces = cast("aclosing[AsyncIterator[Buffer]]", aclosing(read))  # type: ignore[type-var]
        with cancelled_as_error(self._opened.entry.name):
            async with pieces as stream:
                async for piece in stream:
                    if offset + len(piece) > end:
                        raise SourceChangedError(f"{self._opened.entry.name}: the source sent more than it announced")
                    self.digest.add(offset, piece)
                    offset += len(piece)
                    self.counted += len(piece)
                    self._flow.advance(len(piece))
                    await let_pass(self._flow.slow, len(piece))
                    yield piece
        if offset < end:
            raise SourceChangedError(f"{self._opened.entry.name}: the source is shorter than it announced")


async def require_contents(opened: OpenedSource, size: int | None, digest: str, flow: Flow) -> None:
    """Raise EndError unless the file has this size and digest."""
    if opened.entry.size != size:
        raise EndError("its size differs")
    if await digest_of(opened, size or 0, flow.digest_key, flow.slow) != digest:
        raise EndError("its contents differ")


async def digest_of(opened: OpenedSource, size: int, key: DigestKey, slow: Slow = unlimited) -> str:
    """The digest of an opened file's contents."""
    flow = Flow(mode="stream", chunk_size=BLOCK, streams=1, slow=slow, advance=lambda count: None, digest_key=key)
    body = FileBody(opened, size, flow)
    async for _ in body.stream():
        pass
    return body.digest.text()
