"""How every test runs: asynchronous tests under a deadline, leftovers refused, Hypothesis profiles.

A test written as `async def` simply works: it runs inside the reactor that pytest-twisted drives, and fails by
itself, with the others going on, if it has not ended after ASYNC_TEST_S seconds.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import inspect
import os
import re
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import deferLater
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher

from tests.support.costs import TestCosts
from tests.support.deadline import Deadline
from tests.support.depth import Depth, load_profile
from tests.support.distribution import ByGrid, long_first
from tests.support.key_pool import pooled_keys

TESTS = Path(__file__).parent

OF_A_MODULE = re.compile(r"^pytestmark = \[?pytest\.mark\.(\w+)", re.MULTILINE)

C_LIBRARY = ctypes.CDLL(None)

TEST_S = 600.0
"""Seconds after which a test, of any kind, ends its process."""

ASYNC_TEST_S = 300.0
"""Far more than any test takes on a slow machine; it only turns a hang into a failure."""

SETTLE_S = 2.0
"""How long timers that a test leaves behind may take to fire or to be cancelled."""

load_profile()


def pytest_configure(config: pytest.Config) -> None:
    """Tell the rows of a test apart that repeat others; with GRID_TEST_COSTS=FOLDER, write down there what each test costs."""
    config.pluginmanager.register(Depth())
    if not config.option.usepdb:
        config.pluginmanager.register(Deadline(TEST_S))
    if folder := os.environ.get("GRID_TEST_COSTS"):
        config.pluginmanager.register(TestCosts(Path(folder)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without any test that `-m` selects: importing them takes longer than some stages.

    With `-m NAME` those that can have no test marked so, with `-m "not NAME"` those of which every test is. Terms may be joined by `and`.
    """
    terms = [re.fullmatch(r"(not )?(\w+)", term) for term in config.option.markexpr.split(" and ")]
    if not collection_path.match("test_*.py") or not all(terms):
        return None
    text = collection_path.read_text()
    of_all = OF_A_MODULE.search(text)
    for term in terms:
        assert term is not None
        if term[1]:
            if of_all is not None and of_all[1] == term[2]:
                return True
        elif term[2] != "deep":  # Which rows are deep is not in the text of a test.
            beside = [folder / "conftest.py" for folder in collection_path.parents if TESTS in folder.parents]
            texts = [text, *(path.read_text() for path in beside if path.exists())]
            if not any(f"mark.{term[2]}" in each for each in texts):
                return True
    return None


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGrid | None:
    """With `--dist loadgroup`: ByGrid.

    xdist's own does so by marks, which it puts into names that pytest 9.2 does not let it change.
    """
    return ByGrid(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_xdist_auto_num_workers() -> int:
    """Half as many workers again as processors: a worker waits a third of its time for processes that its tests started."""
    return -(-len(os.sched_getaffinity(0)) * 3 // 2)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put every asynchronous test under its deadline, including those that Hypothesis drives; order the tests for workers."""
    if hasattr(config, "workerinput"):
        long_first(items)
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        hypothesis = getattr(item.obj, "hypothesis", None)
        if hypothesis is not None:
            if inspect.iscoroutinefunction(hypothesis.inner_test):
                hypothesis.inner_test = _bounded(hypothesis.inner_test)
        elif inspect.iscoroutinefunction(item.obj):
            item.obj = _bounded(item.obj)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Turn off garbage collection while tests are collected: there is no garbage, and looking for it takes a quarter of that time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Freeze the objects that collection made: they stay to the end, and scanning them takes a tenth of all work."""
    gc.collect()
    gc.freeze()


def _bounded(test: Callable[..., Coroutine[Deferred[Any], Any, object]]) -> Callable[..., Deferred[object]]:
    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> Deferred[object]:
        from twisted.internet import reactor

        return Deferred.fromCoroutine(test(*args, **kwargs)).addTimeout(ASYNC_TEST_S, reactor)

    run.__dict__.pop("_pytest_twisted_mark", None)  # It would have the Deferred taken for a coroutine.
    return run


@pytest.fixture(scope="session", autouse=True)
def keys_of_a_pool() -> Iterator[None]:
    """Find a few private keys once, and not one for each file."""
    with pooled_keys():
        yield


@pytest.fixture(scope="session", autouse=True)
def own_state_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep commands' records below $XDG_STATE_HOME separate from those of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module", autouse=True)
def memory_given_back() -> Iterator[None]:
    """Return memory that the tests of a module have freed: otherwise the C library keeps large arrays of several threads for long."""
    yield
    gc.collect()
    gc.freeze()  # What is left stays: looking through it once more after each module would take as long as all tests.
    if hasattr(C_LIBRARY, "malloc_trim"):
        C_LIBRARY.malloc_trim(0)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a timer running, or a failed Deferred that nobody handled."""
    from twisted.internet import reactor

    unhandled: list[str] = []

    def watch(event: LogEvent) -> None:
        if "log_failure" in event and event["log_namespace"] == "twisted.internet.defer":
            unhandled.append(event["log_failure"].getTraceback())

    before = set(reactor.getDelayedCalls())
    observer = cast(ILogObserver, watch)  # Any function of one event is one, which only zope.interface sees.
    globalLogPublisher.addObserver(observer)
    try:
        yield
        left = _left_running(before)
        # Interop tests run in one process with the clients of other modules' grids, which set timers of their own.
        if left and not any(map(request.node.get_closest_marker, ("background", "interop"))):
            pytest_twisted.blockon(_settle(before, left))
            left = _still_running(before, left)
            for call in left:
                call.cancel()
            assert not left, f"timers left running: {left}"
    finally:
        globalLogPublisher.removeObserver(observer)
    assert not unhandled, "a Deferred failed and nobody looked:\n" + "\n".join(unhandled)


def _left_running(before: set[IDelayedCall]) -> list[IDelayedCall]:
    from twisted.internet import reactor

    return [call for call in reactor.getDelayedCalls() if call not in before]


def _still_running(before: set[IDelayedCall], left: list[IDelayedCall]) -> list[IDelayedCall]:
    """The timers that a test left, or that do again what one of these did.

    Others are not the test's: while they are waited for, clients of other tests in this process set theirs again. What is
    waited for may come from such a client, too: Foolscap sets a timer when the garbage collector finds a lost reference.
    """
    functions = [getattr(call, "func", None) for call in left]  # A canceled call has none.
    return [call for call in _left_running(before) if call in left or getattr(call, "func", call) in functions]


def _settle(before: set[IDelayedCall], left: list[IDelayedCall]) -> Deferred[None]:
    async def wait() -> None:
        from twisted.internet import reactor

        deadline = reactor.seconds() + SETTLE_S
        while _still_running(before, left) and reactor.seconds() < deadline:
            await deferLater(reactor, 0.02)

    return Deferred.fromCoroutine(wait())
