"""The interface between a plan and the loop that runs it, and the code that all plans share.

A plan decides; it never waits, never calls out and never looks at a clock. drive.py runs it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, TypeVar

from grid.engine.requests import AdviseCorrupt, Request
from grid.errors import GridError, PeerTimeoutError
from grid.ports import Event, ServerId, ShareNumber

R = TypeVar("R", bound=Request)
T_co = TypeVar("T_co", covariant=True)


class Plan(Protocol[R, T_co]):
    """A synchronous object that decides which requests to make and what the answers mean."""

    def advance(self, now: float) -> Sequence[R]:
        """The requests to carry out now, each returned once. Also called when a wake-up is due."""

    def answer(self, request: R, answer: object, now: float) -> None:
        """Take the answer to a request."""

    def fail(self, request: R, error: GridError, now: float) -> None:
        """Take the failure of a request."""

    def withdrawn(self) -> Sequence[R]:
        """The requests that are no longer wanted, each returned once. The plan gets no answer to them."""

    def wake_at(self) -> float | None:
        """When to call advance next even if no answer has come; None for never."""

    def take_events(self) -> Sequence[Event]:
        """Events for observers, each returned once."""

    @property
    def finished(self) -> bool:
        """Whether result() may be called."""

    def result(self) -> T_co:
        """The outcome of the plan; raises its error if it failed."""


class PlanBase:
    """What every plan has: the first error, requests to send and to withdraw, and events for observers."""

    def __init__(self) -> None:
        self._error: GridError | None = None
        self._outbox: list[Request] = []
        self._withdrawn: list[Request] = []
        self._events: list[Event] = []

    @property
    def finished(self) -> bool:
        """Whether result() may be called: the work is done or has failed."""
        return self._error is not None or self._is_done()

    @abstractmethod
    def _is_done(self) -> bool:
        """Whether all work is done. Not called after the plan has failed."""

    def take_events(self) -> Sequence[Event]:
        """The events since the last call."""
        taken, self._events = self._events, []
        return taken

    def withdrawn(self) -> Sequence[Request]:
        """The requests withdrawn since the last call."""
        taken, self._withdrawn = self._withdrawn, []
        return taken

    def _stop(self, error: GridError) -> None:
        """End the plan with this error. Later errors are ignored: the first one counts."""
        self._error = self._error or error

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _take_outbox(self) -> list[Request]:
        """The requests collected since the last call, for advance to return."""
        taken, self._outbox = self._outbox, []
        return taken

    def _reject(self, server_id: ServerId, number: int, reason: str, now: float) -> None:
        """Report a corrupt share to its server and to observers."""
        numbers = (number,)
        self._outbox.append(
            AdviseCorrupt(server_id=server_id, share_number=ShareNumber(number), share_numbers=numbers, reason=reason)
        )
        self._events.append(Event(at=now, what="reject", detail=reason, server_id=server_id, share_numbers=numbers))


def timed_out(request: Request) -> PeerTimeoutError:
    """The error for a request whose server took too long."""
    return PeerTimeoutError(f"server {request.server_id} did not answer in time")
