"""Directories of killed runs are removed by the next, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from perf.network import owners
from perf.network.owners import owned_prefix, remove_left_behind
from perf.sampling.freezer import clean_up

MAKE = """
import sys, tempfile
from pathlib import Path
from perf.network.owners import owned_prefix
made = tempfile.mkdtemp(prefix=owned_prefix("run"), dir=sys.argv[1])
Path(made, "share").write_text("many bytes")
print(made, flush=True)
sys.stdin.read()
"""


def test_directory_of_a_killed_run_is_removed_once_it_is_dead(tmp_path: Path) -> None:
    told: list[str] = []
    words = [sys.executable, "-c", MAKE, str(tmp_path)]
    run = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    made = Path(run.stdout.readline().strip())
    assert remove_left_behind([tmp_path]) == []
    assert (made / "share").exists()
    run.kill()
    run.communicate()
    clean_up(tmp_path, told.append)
    assert not made.exists()
    assert f"a killed run left {made}, which is removed" in told


def test_only_directories_that_certainly_belong_to_a_dead_run_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Path(tempfile.mkdtemp(prefix=owned_prefix("node"), dir=tmp_path))
    _, pid, start, place, _ = mine.name.removeprefix("grid-perf-").split("-")
    kept = [
        mine,
        *(
            tmp_path / name
            for name in (
                "grid-perf-abcdefgh",  # Of earlier versions, which may run.
                "grid-perf-node-abcdefgh",
                f"grid-perf-node-{pid}-{start}-{place}",
                f"grid-perf-other-{pid}-1-{place}-x",
                f"grid-perf-node-{pid}-1-{'0' * 8}-x",  # Of another machine, over a file system of both.
                f"gridperf-{pid}-1-{place}-x",
            )
        ),
    ]
    for path in kept[1:]:
        path.mkdir()
    later = tmp_path / f"grid-perf-node-{pid}-1-{place}-x"
    later.mkdir()
    link = tmp_path / f"grid-perf-node-{pid}-2-{place}-x"
    link.symlink_to(kept[1])
    assert remove_left_behind([tmp_path, tmp_path]) == [later]
    assert all(path.is_dir() for path in [*kept, link])
    later.mkdir()
    monkeypatch.setattr(owners, "started", lambda pid: "")
    assert remove_left_behind([tmp_path]) == []  # The process exists, but nothing is known of its start.


def test_directory_with_a_mount_that_stays_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, pid, _, place, _ = owned_prefix("run").removeprefix("grid-perf-").split("-")
    left = tmp_path / f"grid-perf-run-{pid}-1-{place}-x"
    left.mkdir()
    monkeypatch.setattr(owners, "_mounts", lambda directory: [f"{directory}/mount"])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    assert remove_left_behind([tmp_path]) == []
    assert left.is_dir()
    monkeypatch.undo()
    assert remove_left_behind([tmp_path]) == [left]
    assert os.listdir(tmp_path) == []
