"""Frozen processes: none of their code runs, and their connections survive."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perf.network.owners import started
from perf.sampling.freezer import (
    FREEZER,
    PREFIX,
    Freezer,
    GroupFreezer,
    SignalFreezer,
    frozen,
    thaw_left_behind,
    with_descendants,
)
from perf.sampling.usage import cpu_seconds

SPIN = "while True: pass"
SPIN_WITH_CHILD = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SPIN!r}])\n{SPIN}"
ECHO = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
while data := connection.recv(100):
    connection.sendall(data)
"""


def may_group() -> bool:
    """Whether this process may make groups that freeze."""
    return FREEZER.is_dir() and os.access(FREEZER, os.W_OK)


GROUPED = [GroupFreezer] if may_group() else []
KINDS = [SignalFreezer, *GROUPED]


@pytest.fixture(params=KINDS)
def freezer(request: pytest.FixtureRequest) -> Iterator[Freezer]:
    """Each kind."""
    made = request.param()
    yield made
    made.close()


@pytest.fixture
def start() -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts Python programs, which end with the test."""
    running: list[subprocess.Popen[str]] = []

    def begin(program: str) -> subprocess.Popen[str]:
        running.append(subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True))
        return running[-1]

    yield begin
    for process in running:
        for one in reversed(with_descendants([process.pid])):
            one.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool]) -> None:
    """Return as soon as it holds."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise TimeoutError("it never holds")


def used(pid: int) -> float:
    """Processor seconds of the process and all that it started."""
    return cpu_seconds([process.pid for process in with_descendants([pid])])


def test_processes_when_frozen_use_no_processor_time_and_then_go_on(
    freezer: Freezer, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    process = start(SPIN_WITH_CHILD)
    wait_for(lambda: len(with_descendants([process.pid])) == 2 and used(process.pid) > 0)
    for _ in range(2):
        with frozen(freezer, [process.pid]):
            before = used(process.pid)
            time.sleep(0.1)
            assert used(process.pid) == before
        wait_for(lambda before=before: used(process.pid) > before)  # type: ignore[misc]


def test_connection_when_its_process_was_frozen_is_alive_after_it(
    freezer: Freezer, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    process = start(ECHO)
    assert process.stdout is not None
    with socket.create_connection(("127.0.0.1", int(process.stdout.readline()))) as connection:
        connection.settimeout(60)
        with frozen(freezer, [process.pid]):
            connection.sendall(b"asked while frozen")
        assert connection.recv(100) == b"asked while frozen"


def test_freezer_when_nothing_is_to_be_frozen_or_it_has_ended_then_goes_on(freezer: Freezer) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with frozen(freezer, []), frozen(freezer, [ended.pid]):
        pass


@pytest.mark.parametrize("kind", GROUPED)
def test_group_of_a_maker_that_has_gone_is_thawed_and_removed(
    kind: type[GroupFreezer], start: Callable[[str], subprocess.Popen[str]]
) -> None:
    process = start(SPIN)
    maker = subprocess.Popen([sys.executable, "-c", ""])
    maker.wait()
    left = FREEZER / f"{PREFIX}{maker.pid}-x"
    left.mkdir()
    (left / "cgroup.procs").write_text(str(process.pid))
    (left / "freezer.state").write_text("FROZEN")
    kind().close()
    assert not left.exists()
    before = used(process.pid)
    wait_for(lambda: used(process.pid) > before)


def test_group_is_that_of_its_maker_and_not_of_a_later_process_with_its_pid(tmp_path: Path) -> None:
    mine, old, later, gone = (
        tmp_path / f"{PREFIX}{name}"
        for name in (f"{os.getpid()}-{started(os.getpid())}-x", f"{os.getpid()}-x", f"{os.getpid()}-1-x", f"{2**30}-x")
    )
    for group in (mine, old, later, gone):
        group.mkdir()
        (group / "cgroup.procs").touch()
    thaw_left_behind(tmp_path)
    states = [group / "freezer.state" for group in (mine, old, later, gone)]
    assert [state.exists() and state.read_text() for state in states] == [False, False, "THAWED", "THAWED"]


def test_freezers_leave_no_group_behind() -> None:
    assert [path for path in Path(FREEZER).glob(f"{PREFIX}{os.getpid()}-*") if path.exists()] == []
