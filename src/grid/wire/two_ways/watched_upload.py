"""An upload over one of two transports to a server; its failures count against that transport. It repeats nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from grid.ports import ShareNumber, ShareWrite, Upload

Watch = Callable[[Callable[[], Awaitable[None]], int], Awaitable[None]]
"""Makes a call that moves that many bytes, and judges the transport by the outcome."""


class WatchedUpload:
    """An upload whose failures count against its transport."""

    def __init__(self, inner: Upload, watch: Watch) -> None:
        self._inner = inner
        self._watch = watch

    @property
    def share_numbers(self) -> frozenset[ShareNumber]:
        """The shares allocated."""
        return self._inner.share_numbers

    async def write(self, writes: Sequence[ShareWrite]) -> None:
        """Store all writes."""
        await self._watch(lambda: self._inner.write(writes), sum(write.size for write in writes))

    async def finish(self, writes: Sequence[ShareWrite]) -> None:
        """Store the writes, and finish their shares."""
        await self._watch(lambda: self._inner.finish(writes), sum(write.size for write in writes))

    async def close(self, share_numbers: Iterable[ShareNumber]) -> None:
        """Return when these shares are finished."""
        await self._watch(lambda: self._inner.close(share_numbers), 0)

    async def abort(self, share_numbers: Iterable[ShareNumber] | None = None) -> None:
        """Abort those of the shares that are open."""
        await self._watch(lambda: self._inner.abort(share_numbers), 0)
