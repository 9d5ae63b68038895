"""What is known of every request once it is over, for those who count. Pure.

Owns the bound on what a request is called: a path's first segment and `t` are the client's choice, and only those that mean something
here have a name. Never a capability: no other part of a path is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import frozen

KNOWN_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})

VIEWS = frozenset(
    {
        "json", "uri", "readonly-uri", "info", "rename-form", "zip", "upload", "check", "mkdir", "mkdir-with-children",
        "mkdir-immutable", "unlink", "delete", "rename", "relink", "set_children", "set-children", "stream-manifest",
        "stream-deep-check", "start-manifest", "start-deep-check", "start-deep-size", "start-deep-stats", "status",
        "cancel", "openmetrics",
    }
)  # fmt: skip
"""Values of `t` that are counted separately."""

OTHER = "other"

CUT = "cut"
"""Instead of a class of statuses: the connection ended before the answer did."""


@frozen(kw_only=True)
class Served:
    """One request that is over. endpoint: a first segment, or `other`. view: its `t`. outcome: 2xx to 5xx, or `cut`.

    Bytes of the bodies; seconds from the end of the request's head on.
    """

    method: str
    endpoint: str
    view: str
    outcome: str
    seconds: float
    received: int
    sent: int


Watcher = Callable[[Served], None]


class Traffic:
    """The requests of one gateway."""

    def __init__(self) -> None:
        self._endpoints: frozenset[str] = frozenset()
        self._watchers: list[Watcher] = []
        self._active: Callable[[], int] = lambda: 0

    def know(self, segments: Iterable[str], active: Callable[[], int]) -> None:
        """segments: the first ones that have a handler. active: how many requests are under way."""
        self._endpoints = frozenset(segments)
        self._active = active

    def active(self) -> int:
        """How many requests are under way."""
        return self._active()

    def watch(self, watcher: Watcher) -> None:
        """Tell of every request from now on; the watcher must not fail, nor take long."""
        self._watchers.append(watcher)

    def called(self, segment: str, view: str) -> tuple[str, str]:
        """What a request is called by its first segment and its `t`."""
        endpoint = (segment or "root") if segment in self._endpoints else OTHER
        return endpoint, view if not view or view in VIEWS else OTHER

    def ended(
        self, method: str, called: tuple[str, str], status: int | None, seconds: float, received: int, sent: int
    ) -> None:
        """A request is over. status: None if the client did not get the whole answer."""
        served = Served(
            method=method if method in KNOWN_METHODS else OTHER,
            endpoint=called[0],
            view=called[1],
            outcome=CUT if status is None else f"{min(max(status // 100, 1), 5)}xx",
            seconds=seconds,
            received=received,
            sent=sent,
        )
        for watcher in self._watchers:
            watcher(served)
