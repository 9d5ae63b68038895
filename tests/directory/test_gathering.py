"""Work that several callers wait for: what happens when some of them, or all, give up. Paths, read as far as they are remembered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from twisted.internet.defer import CancelledError, Deferred

from grid.caps import DirectoryCap, SdmfWriteCap
from grid.directory.gathering import Coalescer, Directories
from grid.directory.pack import Child
from grid.errors import FormatError
from grid.runtime import Tasks


class Work:
    """Batches that end when the test says so. begun: a Deferred for each; cancelled: how many were abandoned."""

    def __init__(self, *, reads_only: bool) -> None:
        self.begun: list[Deferred[str]] = []
        self.cancelled = 0
        self.tasks = Tasks()
        self.together: Coalescer[int, str] = Coalescer(self._work, self.tasks, reads_only=reads_only)

    async def _work(self, items: list[int]) -> str:
        self.begun.append(Deferred())
        try:
            return await self.begun[-1]
        except CancelledError:
            self.cancelled += 1
            raise

    def submit(self, item: int) -> tuple[Deferred[str], list[object]]:
        """A waiter, and its outcome."""
        outcome: list[object] = []
        waiting = Deferred.fromCoroutine(self.together.submit(item))
        waiting.addCallbacks(outcome.append, lambda failure: outcome.append(failure.type))
        return waiting, outcome


def test_read_when_nobody_waits_for_it_anymore_ends_and_the_next_begins() -> None:
    work = Work(reads_only=True)
    first, told_first = work.submit(1)
    _, told_second = work.submit(2)
    first.cancel()
    assert (work.cancelled, told_first, told_second) == (1, [CancelledError], [])
    assert len(work.begun) == 2, "the second one waited for the end of the first"
    work.begun[1].callback("children")
    assert told_second == ["children"] and work.together.is_idle and not work.tasks.count


def test_read_when_somebody_waits_for_it_still_goes_on() -> None:
    work = Work(reads_only=True)
    work.submit(0)
    waiting = [work.submit(item) for item in range(1, 4)]
    work.begun[0].callback("before")
    waiting[0][0].cancel()
    waiting[2][0].cancel()
    assert (len(work.begun), work.cancelled) == (2, 0)
    work.begun[1].callback("children")
    assert [told for _, told in waiting] == [[CancelledError], ["children"], [CancelledError]]
    assert work.together.is_idle


def test_read_when_all_give_up_before_it_begins_never_begins() -> None:
    work = Work(reads_only=True)
    work.submit(0)
    for waiting, _ in [work.submit(1), work.submit(2)]:
        waiting.cancel()
    work.begun[0].callback("children")
    assert len(work.begun) == 1 and work.together.is_idle


@pytest.mark.parametrize("is_under_way", [False, True])
def test_change_when_nobody_waits_for_it_anymore_is_still_made(is_under_way: bool) -> None:
    work = Work(reads_only=False)
    waiting = [work.submit(item) for item in range(2)]
    waiting[0 if is_under_way else 1][0].cancel()
    work.begun[0].callback("first")
    work.begun[1].callback("second")
    assert work.cancelled == 0 and work.together.is_idle
    assert [told for _, told in waiting] == (
        [[CancelledError], ["second"]] if is_under_way else [["first"], [CancelledError]]
    )


class Opened:
    """Directories that answer when the test says so. asked: those whose children are wanted. opened_count: how often one was opened."""

    def __init__(self) -> None:
        self.caps = [_cap(letter) for letter in b"abcd"]
        self.present: dict[DirectoryCap, dict[str, Child]] = {}
        self.recalled: dict[DirectoryCap, dict[str, Child]] = {}
        self.asked: dict[DirectoryCap, Deferred[None]] = {}
        self.opened_count = 0
        self.directories = Directories(cast(Any, self))

    def directory(self, cap: DirectoryCap) -> Any:
        """The directory of this capability."""
        opened = self
        self.opened_count += 1

        class Fake:
            def recall(self) -> Mapping[str, Child] | None:
                return opened.recalled.get(cap)

            async def list(self) -> Mapping[str, Child]:
                opened.asked[cap] = Deferred()
                await opened.asked[cap]
                return opened.present[cap]

        return Fake()

    def link(self, above: int, name: str, below: int, *, recalled: bool = True) -> None:
        """Link a directory, and let it be remembered, unless not."""
        child = Child(target=self.caps[below])
        self.present.setdefault(self.caps[above], {})[name] = child
        self.present.setdefault(self.caps[below], {})
        if recalled:
            self.recalled.setdefault(self.caps[above], {})[name] = child
            self.recalled.setdefault(self.caps[below], {})

    def answer(self, *indexes: int) -> None:
        """Let these directories answer."""
        for index in indexes:
            self.asked.pop(self.caps[index]).callback(None)

    def are_asked(self) -> list[int]:
        """The directories that have been asked, and have not answered."""
        return sorted(self.caps.index(cap) for cap in self.asked)


def _cap(letter: int) -> DirectoryCap:
    return DirectoryCap(SdmfWriteCap(write_key=bytes([letter]) * 16, fingerprint=bytes(32)))


def test_a_remembered_path_is_read_at_once_and_in_any_order_of_answers() -> None:
    opened = Opened()
    opened.link(0, "x", 1)
    opened.link(1, "y", 2)
    reading = Deferred.fromCoroutine(opened.directories.read_path(opened.caps[0], ("x", "y")))
    assert opened.are_asked() == [0, 1, 2]
    opened.answer(2, 0)
    assert not reading.called
    opened.answer(1)
    assert reading.result == [opened.present[cap] for cap in opened.caps[:3]]
    assert opened.directories.is_idle and opened.opened_count == 3


def test_a_path_that_leads_elsewhere_now_is_read_anew_from_there() -> None:
    opened = Opened()
    opened.link(0, "x", 1)
    opened.link(1, "y", 2)
    opened.link(0, "x", 3, recalled=False)
    opened.link(3, "y", 1, recalled=False)
    reading = Deferred.fromCoroutine(opened.directories.read_path(opened.caps[0], ("x", "y")))
    opened.answer(0)
    assert opened.are_asked() == [1, 2, 3]
    opened.answer(3)
    assert not reading.called
    opened.answer(1)
    assert reading.result == [opened.present[opened.caps[index]] for index in (0, 3, 1)]
    assert opened.directories.is_idle, "the read of what the path led to before is given up"


def test_a_path_that_ends_early_now_returns_what_there_is() -> None:
    opened = Opened()
    opened.link(0, "x", 1)
    opened.link(1, "y", 2)
    del opened.present[opened.caps[1]]["y"]
    reading = Deferred.fromCoroutine(opened.directories.read_path(opened.caps[0], ("x", "y")))
    opened.answer(0, 1)
    assert reading.result == [opened.present[opened.caps[0]], {}]
    assert opened.directories.is_idle


def test_the_error_of_a_read_that_the_path_no_longer_needs_is_ignored() -> None:
    opened = Opened()
    opened.link(0, "x", 1)
    opened.present[opened.caps[0]].clear()
    reading = Deferred.fromCoroutine(opened.directories.read_path(opened.caps[0], ("x",)))
    opened.asked.pop(opened.caps[1]).errback(FormatError("damaged"))
    opened.answer(0)
    assert reading.result == [{}]


def test_a_path_that_nobody_waits_for_anymore_asks_nobody() -> None:
    opened = Opened()
    opened.link(0, "x", 1)
    reading = Deferred.fromCoroutine(opened.directories.read_path(opened.caps[0], ("x",)))
    outcome: list[object] = []
    reading.addErrback(lambda failure: outcome.append(failure.type))
    reading.cancel()
    assert (outcome, opened.directories.is_idle) == ([CancelledError], True)
