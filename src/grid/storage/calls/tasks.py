"""Work that continues even if its caller is canceled, and several pieces of work at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger
from twisted.python.failure import Failure

from grid.errors import GridError

T = TypeVar("T")

log = Logger()


def shielded(work: Coroutine[Any, Any, T], on_orphaned: Callable[[T], None] = lambda _: None) -> Deferred[T]:
    """Return the work's outcome. Canceling the Deferred does not stop the work.

    on_orphaned: called with the result if the caller was canceled; an error is then only logged.
    """
    outcome: Deferred[T] = Deferred()

    def ended(result: T | Failure) -> None:
        if not outcome.called:
            if isinstance(result, Failure):
                outcome.errback(result)
            else:
                outcome.callback(result)
        elif isinstance(result, Failure):
            error = result.value
            reason = str(error) if isinstance(error, GridError) else f"unexpected {type(error).__name__}"
            log.warn("abandoned work failed: {reason}", reason=reason)
        else:
            on_orphaned(result)

    Deferred.fromCoroutine(work).addBoth(ended)
    return outcome


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> list[GridError | OSError | None]:
    """Run all works at once. When all have ended, return the error of each, in order. Other exceptions are raised."""
    outcomes = await DeferredList([Deferred.fromCoroutine(work) for work in works], consumeErrors=True)
    return [_error_of(outcome) for _, outcome in outcomes]


def _error_of(outcome: object) -> GridError | OSError | None:
    if not isinstance(outcome, Failure):
        return None
    if not isinstance(outcome.value, GridError | OSError):
        outcome.raiseException()
    error: GridError | OSError = outcome.value
    return error


async def awaited(awaitable: Awaitable[T]) -> T:
    """Await the awaitable, as a coroutine."""
    return await awaitable
