"""Calls from other threads whose reactor ends, or has ended: an error, never an endless wait.

Each program runs in a process of its own, for a process has one reactor.
"""

from __future__ import annotations

import subprocess
import sys

DEADLINE_S = 240
"""Far more than it takes; it only turns a hang into a failure."""

ENDED_BEFORE = """
from twisted.internet import reactor
from grid.library.reactor_thread import running_reactor
reactor.callWhenRunning(reactor.stop)
reactor.run()
try:
    running_reactor()
except RuntimeError as error:
    print(error)
"""

ENDED_BEFORE_THE_CALL = """
from twisted.internet.defer import Deferred
from grid.library.reactor_thread import running_reactor, wait
reactor = running_reactor()

async def stop():
    reactor.addSystemEventTrigger("after", "shutdown", ended.set)
    reactor.callLater(0, reactor.stop)

async def never():
    await Deferred()

import threading
ended = threading.Event()
wait(reactor, stop)
ended.wait()
try:
    wait(reactor, never)
except RuntimeError as error:
    print(error)
"""

ENDED_DURING_THE_CALL = """
from twisted.internet.defer import Deferred
from grid.library.reactor_thread import running_reactor, wait
reactor = running_reactor()

async def never():
    reactor.callLater(0, reactor.stop)
    await Deferred()

try:
    wait(reactor, never)
except RuntimeError as error:
    print(error)
"""


def said_by(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.stderr == ""
    return done.stdout


def test_reactor_when_it_ran_before_and_cannot_run_again_then_an_error_says_so() -> None:
    assert "cannot be started twice" in said_by(ENDED_BEFORE)


def test_call_when_the_reactor_has_ended_then_an_error_says_so() -> None:
    assert "has ended" in said_by(ENDED_BEFORE_THE_CALL)


def test_call_when_the_reactor_ends_under_it_then_an_error_says_so() -> None:
    assert "has ended" in said_by(ENDED_DURING_THE_CALL)
