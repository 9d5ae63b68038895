"""Memory touched before samples."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from perf.sampling import touched

MIB = 1 << 20


def test_memory_when_touched_then_another_process_had_all_of_it_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    run, said = subprocess.run, []

    def ask(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        python, *options, program, pieces, size = command
        program += "\nprint(open('/proc/self/status').read())"
        done = run([python, *options, program, pieces, size], check=True, capture_output=True, text=True)
        said.append(done.stdout)
        return done

    monkeypatch.setattr(subprocess, "run", ask)
    own = psutil.Process().memory_info().rss
    touched.touch_memory(64 * MIB)
    resident = dict(line.split(":", 1) for line in said[0].splitlines() if ":" in line)["VmRSS"]
    assert int(resident.split()[0]) * 1024 >= 64 * MIB
    assert psutil.Process().memory_info().rss < own + 8 * MIB


def test_memory_when_it_cannot_be_touched_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(touched, "_TOUCH", "raise MemoryError")
    touched.touch_memory(2 * MIB)
    assert capsys.readouterr().err.startswith("perf: 2 MiB of memory could not be touched")


def test_memory_of_less_than_a_piece_is_not_touched() -> None:
    touched.touch_memory(touched.PIECE - 1)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, 64 << 20), (10 << 20, 184 << 20), (10**8, (64 << 20) + 12 * 10**8), (10**9, 6144 << 20)],
)
def test_memory_touched_for_an_operation_is_twelve_times_its_bytes_within_limits(
    size: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(touched, "LEAST_TOUCHED", 64 << 20)
    monkeypatch.setattr(touched, "touch_memory", sizes.append)
    monkeypatch.setattr(touched, "spare_memory", lambda: 16 << 30)
    touched.touch_for(size)
    assert sizes == [expected]


def test_what_waits_for_the_disk_is_written_out_before_memory_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: done.append("sync"))
    monkeypatch.setattr(touched, "touch_memory", lambda size: done.append("touch"))
    touched.touch_for(1)
    assert done == ["sync", "touch"], "a sync takes seconds, in which the host takes memory back"


class Memory:
    """What psutil says of a machine."""

    def __init__(self, total: int, available: int) -> None:
        self.total, self.available = total, available


@pytest.mark.parametrize(
    ("total", "available", "limits", "expected"),
    [
        (4096, 3000, {}, 1024),
        (4096, 1000, {}, 500),
        (4096, 3000, {"own": "max"}, 1024),
        (4096, 3000, {"own": "2048"}, 512),
        (4096, 3000, {"own": "max", "outer": "400"}, 100),
        (4096, 3000, {"memory": "1024"}, 256),
        (4096, 3000, {"memory": "9223372036854771712"}, 1024),
        (4096, 3000, {"own": "not a number"}, 1024),
    ],
)
def test_no_more_memory_is_touched_than_can_be_spared(
    total: int, available: int, limits: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {
        "own": "two/outer/own/memory.max",
        "outer": "two/outer/memory.max",
        "memory": "one/group/memory.limit_in_bytes",
    }
    for name, text in limits.items():
        (tmp_path / names[name]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / names[name]).write_text(f"{text}\n")
    (tmp_path / "groups").write_text("5:cpu:/\n4:hugetlb,memory:/group\n0::/outer/own\n")
    monkeypatch.setattr(touched, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(
        touched, "LIMITS", {"": (tmp_path / "two", "memory.max"), "memory": (tmp_path / "one", "memory.limit_in_bytes")}
    )
    monkeypatch.setattr("psutil.virtual_memory", lambda: Memory(total, available))
    assert touched.spare_memory() == expected


def test_memory_of_this_machine_can_be_spared() -> None:
    assert touched.spare_memory() > 16 * MIB
