"""Running one coroutine on the reactor; in separate processes, since each can do it only once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.command import environment

PROGRAM = """
import os, signal, sys
{before}
from grid.cli.terminal.runner import InterruptedBySignal, run_task

NUMBER = signal.Signals(int(sys.argv[1]))

async def wait(reactor):
    from twisted.internet.task import deferLater
    try:
        await deferLater(reactor, 6000)
    finally:
        print("cleaned up")

{body}

try:
    print(run_task(task))
except InterruptedBySignal as stopped:
    print("stopped by", stopped.number)
"""

AT_ONCE = """
async def task(reactor):
    print("running")
    os.kill(os.getpid(), NUMBER)
    await wait(reactor)
"""

AND_DONE = """
async def task(reactor):
    os.kill(os.getpid(), NUMBER)
    return "done"
"""

BEFORE = """
from twisted.internet import reactor
reactor.callWhenRunning(os.kill, os.getpid(), signal.SIGTERM)

async def task(reactor):
    await wait(reactor)
"""


def run(body: str, number: int = 15, before: str = "") -> list[str]:
    """The lines that the program prints; it must exit by itself, successfully. before: code to run first."""
    command = [sys.executable, "-c", PROGRAM.replace("{before}", before).replace("{body}", body), str(number)]
    done = subprocess.run(command, capture_output=True, env=environment(), check=False, timeout=120, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("number", [2, 15])
def test_task_when_a_signal_comes_before_it_first_waits_is_cancelled(number: int) -> None:
    assert run(AT_ONCE, number) == ["running", "cleaned up", f"stopped by {number}"]


def test_task_when_it_ends_in_spite_of_a_signal_gives_its_result() -> None:
    assert run(AND_DONE) == ["done"]


def test_task_when_a_signal_comes_while_the_reactor_starts_is_interrupted() -> None:
    lines = run(BEFORE)
    assert lines[-1:] == ["stopped by 15"]


CLOCK = """
import time

true, shift = time.time, [0.0]
time.time = lambda: true() + shift[0]  # Before anybody takes it.
"""

JUMPS = """
    from grid.runtime import ReactorClock

    clock, fired = ReactorClock(reactor), []
    late = clock.call_later(600.0, lambda: fired.append("late"))
    for jump in (7200.0, -4 * 86400.0, 86400.0, -3600.0):
        shift[0] += jump
        await clock.sleep(0.01)
    late.cancel()
    assert abs(clock.unix_time() - true() - shift[0]) < 60
    return fired
"""


def test_timers_when_the_system_time_jumps_are_due_neither_sooner_nor_later() -> None:
    assert run(f"async def task(reactor):{JUMPS}", before=CLOCK) == ["[]"]


BY_LIBRARY = """
from grid.library.reactor_thread import running_reactor, submit

async def jump(reactor):{jumps}

print(submit(running_reactor(), jump(running_reactor())).result())

async def task(reactor):
    pass

def run_task(_):
    return "ended"
"""


def test_timers_of_the_library_when_the_system_time_jumps_are_due_neither_sooner_nor_later() -> None:
    assert run(BY_LIBRARY.replace("{jumps}", JUMPS), before=CLOCK) == ["[]", "ended"]
