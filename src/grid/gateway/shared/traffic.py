"""Reports every finished request to counters. Pure.

Owns the bound on labels: clients choose the first segment and `t`, so only known ones are used as labels. The rest of a
path is never looked at, so no label holds a capability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from grid.values import frozen

KNOWN_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE"})

VIEWS = frozenset(
    {
        "json", "uri", "readonly-uri", "info", "share", "preview", "rename-form", "save", "zip", "upload", "check", "mkdir", "mkdir-with-children",
        "mkdir-immutable", "unlink", "delete", "undo", "rename", "relink", "set_children", "set-children",
        "unlink-many", "move-many", "stream-manifest", "stream-deep-check", "start-manifest", "start-deep-check",
        "start-deep-size", "start-deep-stats", "status", "cancel", "openmetrics", "enter", "leave",
    }
)  # fmt: skip
"""Values of `t` that are counted separately."""

OTHER = "other"

CUT = "cut"
"""The outcome of a request whose connection ended before the answer did."""


@frozen(kw_only=True)
class Served:
    """One ended request. endpoint: a first segment, or `other`. view: its `t`. outcome: 2xx to 5xx, or `cut`.

    Byte counts are those of the bodies; seconds count from the end of the request's head.
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
        """segments: the first segments that have a handler. active: returns how many requests are under way."""
        self._endpoints = frozenset(segments)
        self._active = active

    def active(self) -> int:
        """The number of requests under way."""
        return self._active()

    def watch(self, watcher: Watcher) -> None:
        """Report every request to the watcher from now on. It must not raise and must return quickly."""
        self._watchers.append(watcher)

    def called(self, segment: str, view: str) -> tuple[str, str]:
        """The labels of a request with this first segment and `t`."""
        endpoint = (segment or "root") if segment in self._endpoints else OTHER
        return endpoint, view if not view or view in VIEWS else OTHER

    def ended(
        self, method: str, called: tuple[str, str], status: int | None, seconds: float, received: int, sent: int
    ) -> None:
        """Report an ended request. status: None if the client did not get the whole answer."""
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
