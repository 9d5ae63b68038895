"""The cost of a command and a process, as far as it can be known without a clock."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from perf.sampling.usage import CommandFailedError, cpu_seconds, peak_resident, reset_peaks, resident, run_measured

MIB = 2**20


def test_command_that_holds_memory_reports_it_at_its_peak(tmp_path: Path) -> None:
    size = peak_resident(os.getpid()) + 200 * MIB  # A process that has run many tests holds half a gigabyte.
    command = [sys.executable, "-c", f"x = b'x' * {size}; print('done')"]
    usage = run_measured(command, tmp_path / "out", dict(os.environ))
    assert (tmp_path / "out").read_text() == "done\n"
    assert usage.client_peak_rss > size
    assert usage.seconds > 0
    assert usage.client_user_s is not None
    assert usage.client_system_s is not None
    assert usage.client_cpu_s == usage.client_user_s + usage.client_system_s > 0


def test_command_that_holds_less_than_its_starter_has_no_peak(tmp_path: Path) -> None:
    held = bytearray(b"x" * (200 * MIB))
    usage = run_measured([sys.executable, "-c", ""], tmp_path / "out", dict(os.environ))
    assert usage.client_peak_rss == 0
    assert held


def test_command_that_fails_is_an_error_with_its_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('went wrong')"]
    with pytest.raises(CommandFailedError, match="status 1: went wrong"):
        run_measured(command, tmp_path / "out", dict(os.environ))


def test_peak_when_reset_starts_from_what_is_held() -> None:
    pid = os.getpid()
    block = bytearray(b"x" * (200 * MIB))
    assert peak_resident(pid) >= 200 * MIB
    high = peak_resident(pid)
    del block
    reset_peaks([pid])
    assert peak_resident(pid) < high - 150 * MIB
    assert resident([pid]) <= peak_resident(pid) + 10 * MIB


def test_processor_seconds_only_grow() -> None:
    before = cpu_seconds([os.getpid()])
    sum(number * number for number in range(2_000_000))
    assert cpu_seconds([os.getpid()]) > before
