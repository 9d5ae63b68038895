"""Stores a small new file while the directories of its path are still being read, which saves a round trip. [spec
webapi 4.7]

Owns the decision when to do so: only if, as far as this gateway remembers, the request can mean nothing but a new
immutable file. If the path turns out to lead elsewhere, the stored file stays unlinked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from twisted.internet.defer import Deferred

from grid.caps import DirectoryCap, KnownCap, UnknownChild
from grid.directory.pack import Child
from grid.errors import GridError
from grid.gateway.files.uploads import Arriving, spool_body
from grid.gateway.http.exchange import Exchange
from grid.gateway.shared.services import Services
from grid.gateway.shared.spool import Spool
from grid.immutable.put import LIT_SIZE
from grid.runtime import Tasks

EARLY_BYTES = 2**20
"""The size in bytes of the largest file stored early, and so of what may be stored for nothing."""


class EarlyUpload:
    """Stores a request's body as a new file, inside this context manager; leaving the context cancels it."""

    def __init__(self, exchange: Exchange) -> None:
        gateway = exchange.gateway
        self._body = exchange.body
        self._spool = Spool(gateway.settings.spools, gateway.store.runtime.cpu)
        self._tasks = Tasks()
        self._cap: Deferred[KnownCap] = Deferred()

    def __enter__(self) -> EarlyUpload:
        return self

    def __exit__(self, *_: object) -> None:
        self._cap.addErrback(lambda _: None)
        self._tasks.cancel()
        self._spool.close()

    async def begin(self, store: Callable[[Spool], Coroutine[Any, Any, KnownCap]]) -> None:
        """Receive the whole body and start storing it. Raises the errors of a spool."""
        await spool_body(self._spool, Arriving(size=self._body.size, chunks=self._body.chunks()), None)
        self._tasks.start(store(self._spool), self._cap.callback, self._cap.errback)

    def cap(self) -> Awaitable[KnownCap]:
        """Wait for the new file's capability; raises the errors of `store`. Call it once."""
        return self._cap

    def take_back(self) -> Spool:
        """Cancel the upload and return the body."""
        self._tasks.cancel()
        return self._spool


def may_store_early(exchange: Exchange, root: Child, names: Sequence[str]) -> bool:
    """Whether a PUT to this path may store its body as a new immutable file while the path is being followed."""
    size, arguments, target = exchange.body.size, exchange.arguments, root.target
    if size is None or not LIT_SIZE < size <= EARLY_BYTES or not names:
        return False
    # A client that expects 100 wants a refusal before it sends; one that sends a label wants to see the body arrive.
    if any(exchange.headers.get(name) is not None for name in ("content-range", "expect")) or arguments.text(
        "progress"
    ):
        return False
    if arguments.offset() is not None or arguments.replace() is False:
        return False
    if isinstance(target, UnknownChild) or not isinstance(target, DirectoryCap) or target.authority != "write":
        return False
    return exchange.gateway.is_allowed(target) and _may_be_new(exchange.gateway, target, names)


def _may_be_new(gateway: Services, cap: DirectoryCap, names: Sequence[str]) -> bool:
    """Whether what is remembered of these directories permits a new immutable file there."""
    *above, last = names
    for name in above:
        child = _recalled(gateway, cap, name)
        if child is None:
            return True
        if not isinstance(child.target, DirectoryCap) or child.target.authority != "write":
            return False
        cap = child.target
    child = _recalled(gateway, cap, last)
    if child is None:
        return True
    return (
        isinstance(child.target, KnownCap)
        and not isinstance(child.target, DirectoryCap)
        and not child.target.is_mutable
    )


def _recalled(gateway: Services, cap: DirectoryCap, name: str) -> Child | None:
    """The child as last seen; the caller verifies later whether it is still there."""
    try:
        return (gateway.store.directory(cap).recall() or {}).get(name)
    except GridError:
        return None
