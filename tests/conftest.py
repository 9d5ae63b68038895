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
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_twisted
from hypothesis import HealthCheck, settings
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import deferLater
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher

from tests.support.costs import TestCosts
from tests.support.distribution import ByGrid, long_first
from tests.support.key_pool import pooled_keys

TESTS = Path(__file__).parent

C_LIBRARY = ctypes.CDLL(None)

ASYNC_TEST_S = 300.0
"""Far more than any test takes on a slow machine; it only turns a hang into a failure."""

SETTLE_S = 2.0
"""How long timers that a test leaves behind may take to fire or to be cancelled."""

settings.register_profile(
    "dev",
    max_examples=40,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# The same examples at every run: a change turns red because of itself, never because of the day's luck.
settings.register_profile("ci", parent=settings.get_profile("dev"), max_examples=80, derandomize=True, database=None)
# By hand, for hours: HYPOTHESIS_PROFILE=search. A failing example is printed and is the whole reproduction.
settings.register_profile("search", parent=settings.get_profile("dev"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """With GRID_TEST_COSTS=FOLDER, write down there what each test costs."""
    if folder := os.environ.get("GRID_TEST_COSTS"):
        config.pluginmanager.register(TestCosts(Path(folder)))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m NAME`, pass over the files that can have no test marked so: importing all others takes longer than some stages."""
    wanted = config.option.markexpr
    if not wanted.isidentifier() or not collection_path.match("test_*.py"):
        return None
    beside = [folder / "conftest.py" for folder in collection_path.parents if TESTS in folder.parents]
    marks = any(f"mark.{wanted}" in path.read_text() for path in (collection_path, *beside) if path.exists())
    return None if marks else True


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByGrid | None:
    """With `--dist loadgroup`: ByGrid.

    xdist's own does so by marks, which it puts into names that pytest 9.2 does not let it change.
    """
    return ByGrid(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put every asynchronous test under its deadline, those that Hypothesis drives included; order what is shared out."""
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


def pytest_collection_finish() -> None:
    """Spare the garbage collector what collecting made: it stays to the end, and looking through it is a tenth of all work."""
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
    """Keep what commands note below $XDG_STATE_HOME apart from that of the person who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module", autouse=True)
def memory_given_back() -> Iterator[None]:
    """Give back what the tests of a module have freed: the C library keeps large arrays of several threads for long."""
    yield
    gc.collect()
    gc.freeze()  # What is left stays: looking through it once more after each module would take as long as all tests.
    if hasattr(C_LIBRARY, "malloc_trim"):
        C_LIBRARY.malloc_trim(0)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a timer running, or a failed Deferred that nobody looked at."""
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
        if left and request.node.get_closest_marker("background") is None:
            pytest_twisted.blockon(_settle(before))
            left = _left_running(before)
            for call in left:
                call.cancel()
            assert not left, f"timers left running: {left}"
    finally:
        globalLogPublisher.removeObserver(observer)
    assert not unhandled, "a Deferred failed and nobody looked:\n" + "\n".join(unhandled)


def _left_running(before: set[IDelayedCall]) -> list[IDelayedCall]:
    from twisted.internet import reactor

    return [call for call in reactor.getDelayedCalls() if call not in before]


def _settle(before: set[IDelayedCall]) -> Deferred[None]:
    async def wait() -> None:
        from twisted.internet import reactor

        deadline = reactor.seconds() + SETTLE_S
        while _left_running(before) and reactor.seconds() < deadline:
            await deferLater(reactor, 0.02)

    return Deferred.fromCoroutine(wait())
