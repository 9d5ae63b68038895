"""The order of requests on the same paths: changes wait for everything before them, others only for changes."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from grid.sftp.path_turns import PathTurns
from grid.sftp.paths import Path

FILE: Path = ("a", "file")


class Requests:
    """Requests that end when the test says so. started: their names, in the order in which they began."""

    def __init__(self) -> None:
        self.turns = PathTurns()
        self.started: list[str] = []
        self.work: dict[str, Deferred[str]] = {}
        self.results: dict[str, Deferred[str]] = {}

    def ask(self, name: str, *paths: Path, change: bool = False) -> None:
        self.work[name] = Deferred()
        asked = self.turns.run(paths, partial(self._begin, name), is_change=change)
        self.results[name] = Deferred.fromCoroutine(asked)
        self.results[name].addErrback(_name_of)

    def _begin(self, name: str) -> Awaitable[str]:
        self.started.append(name)
        return self.work[name]


def _name_of(failure: Failure) -> str:
    assert failure.type is not None
    return failure.type.__name__


def test_turn_when_the_file_is_being_created_waits_for_it() -> None:
    requests = Requests()
    requests.ask("create", FILE, change=True)
    requests.ask("stat", FILE)
    assert requests.started == ["create"]
    requests.work["create"].callback("created")
    assert requests.started == ["create", "stat"]


@pytest.mark.parametrize("path", [("a",), (), (*FILE, "below")])
def test_turn_when_the_path_lies_above_or_below_a_change_waits_for_it(path: Path) -> None:
    requests = Requests()
    requests.ask("change", FILE, change=True)
    requests.ask("list", path)
    assert requests.started == ["change"]
    requests.work["change"].errback(ValueError())
    assert requests.started == ["change", "list"]


def test_turn_when_paths_are_unrelated_or_nothing_changes_waits_for_nobody() -> None:
    requests = Requests()
    requests.ask("create", FILE, change=True)
    requests.ask("create beside it", ("a", "other"), change=True)
    requests.ask("stat", ("b",))
    requests.ask("stat again", ("b",))
    assert requests.started == ["create", "create beside it", "stat", "stat again"]


def test_change_when_requests_are_under_way_waits_for_all_of_them() -> None:
    requests = Requests()
    requests.ask("stat", FILE)
    requests.ask("list", ("a",))
    requests.ask("rename", FILE, ("b", "file"), change=True)
    requests.ask("stat there", ("b", "file"))
    requests.work["list"].callback("")
    assert requests.started == ["stat", "list"]
    requests.work["stat"].callback("")
    assert requests.started == ["stat", "list", "rename"]
    requests.work["rename"].callback("")
    assert requests.started[-1] == "stat there"


def test_turn_when_one_that_waits_is_cancelled_lets_the_others_go_on() -> None:
    requests = Requests()
    requests.ask("create", FILE, change=True)
    requests.ask("remove", FILE, change=True)
    requests.ask("stat", FILE)
    requests.results["remove"].cancel()
    requests.work["create"].callback("")
    assert requests.started == ["create", "stat"]
    assert CancelledError.__name__ == requests.results["remove"].result
