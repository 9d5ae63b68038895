"""The file that identifies the process of a running node."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from grid.cli.terminal.runner import CLEAN_UP_S
from grid.errors import ConfigError, GridError
from grid.node import running
from grid.node.running import STOP_S, RunningProcess, ask_to_stop, claim, find_dead, find_running, patience_s, stop


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def _record(directory: Path, pid: int, shift: float = 0.0) -> None:
    created = psutil.Process(pid).create_time() + shift
    (directory / "running.process").write_text(f"{pid} {created}\n")


def test_claimed_node_is_running_until_the_block_ends(tmp_path: Path) -> None:
    with claim(tmp_path) as own:
        assert own.pid == os.getpid()
        assert find_running(tmp_path) == own
        pid, created = (tmp_path / "running.process").read_text().split()
        assert int(pid) == os.getpid()
        assert float(created) == psutil.Process().create_time()
    assert find_running(tmp_path) is None
    assert not (tmp_path / "running.process").exists()


def test_claim_of_a_running_node_is_refused(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    _record(tmp_path, sleeper.pid)
    with pytest.raises(ConfigError, match=f"already running.*{sleeper.pid}"), claim(tmp_path):
        pass
    assert (tmp_path / "running.process").exists()


def test_pid_used_again_by_another_process_is_not_the_node(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    _record(tmp_path, sleeper.pid, shift=-100.0)
    assert find_running(tmp_path) is None
    assert not stop(tmp_path)
    assert ask_to_stop(tmp_path) is None
    assert sleeper.poll() is None
    with claim(tmp_path) as own:
        assert find_running(tmp_path) == own


@pytest.mark.parametrize("text", ["", "x y\n", "12\n", "-1 5.0\n", "0 0\n", "99999999999 1.0\n", "1 nan\n", "\0"])
def test_damaged_file_means_not_running(tmp_path: Path, text: str) -> None:
    (tmp_path / "running.process").write_text(text)
    assert find_running(tmp_path) is None
    with claim(tmp_path):
        pass


def test_stop_ends_the_process(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    _record(tmp_path, sleeper.pid)
    assert stop(tmp_path)
    assert sleeper.wait() == -15


def test_stop_kills_a_process_that_ignores_the_request(tmp_path: Path) -> None:
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        _record(tmp_path, process.pid)
        assert stop(tmp_path, patience_s=0.1)
        assert process.wait() == -9


def test_ended_process_is_not_alive() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    created = psutil.Process(process.pid).create_time()
    process.wait()
    assert not RunningProcess(process.pid, created).is_alive()


def test_patience_is_the_drain_timeout_and_the_time_to_stop(tmp_path: Path) -> None:
    (tmp_path / "client.tac").write_text("")
    (tmp_path / "grid.cfg").write_text("[node]\nweb.drain_timeout = 7\n")
    assert patience_s(tmp_path) == 7 + STOP_S
    assert STOP_S > CLEAN_UP_S


def test_patience_with_a_configuration_that_cannot_be_read_is_that_of_a_node_without_a_gateway(tmp_path: Path) -> None:
    (tmp_path / "client.tac").write_text("")
    (tmp_path / "grid.cfg").write_text("nonsense")
    assert patience_s(tmp_path) == STOP_S


CLAIM = """
import sys, time
from pathlib import Path
from grid.node.running import claim
with claim(Path(sys.argv[1])):
    print(flush=True)
    time.sleep(600)
"""


def test_node_is_running_although_the_clock_was_set_since_it_began(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", CLAIM, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        # To the system, it began a day later than it noted itself.
        _record(tmp_path, process.pid, shift=-86400.0)
        found = find_running(tmp_path)
        assert found is not None and found.pid == process.pid and found.is_alive()
        with pytest.raises(ConfigError, match=f"already running.*{process.pid}"), claim(tmp_path):
            pass
        assert stop(tmp_path)
        assert process.wait() == -15
    assert find_running(tmp_path) is None
    with claim(tmp_path) as own:
        assert find_running(tmp_path) == own


def test_stop_at_once_of_a_process_that_does_not_react_ends_within_a_bound_and_says_what_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "NOW_S", 0.4)
    monkeypatch.setattr(running, "_SOON_S", 0.1)
    code = "import signal,time; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; print(flush=True); time.sleep(600)"
    said: list[str] = []
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        _record(tmp_path, process.pid)
        try:
            with pytest.raises(GridError, match=f"pid {process.pid}. does not react; `kill -9 {process.pid}` ends it"):
                stop(tmp_path, at_once=True, say=said.append)
            assert said == [f"process {process.pid} does not react; waiting up to 0 s longer"]
            assert find_running(tmp_path) is not None and find_dead(tmp_path) is None
        finally:
            process.kill()


def test_process_that_was_killed_is_noted_until_the_node_starts_again_but_not_one_that_was_stopped(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    assert find_dead(tmp_path) is None
    _record(tmp_path, sleeper.pid)
    assert find_dead(tmp_path) is None
    sleeper.kill()
    sleeper.wait()
    assert find_dead(tmp_path) == sleeper.pid and not stop(tmp_path)
    with claim(tmp_path):
        assert find_dead(tmp_path) is None
    assert find_dead(tmp_path) is None


def test_stop_of_a_process_that_leaves_its_file_removes_it(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    _record(tmp_path, sleeper.pid)
    assert stop(tmp_path) and find_dead(tmp_path) is None
