"""Peers' commands, and what the kernel counts of them."""

from __future__ import annotations

import os
import sys

from perf.peers.commands import run_peer
from perf.sampling.usage import peak_resident

MIB = 2**20


def test_command_that_holds_memory_reports_it_at_its_peak() -> None:
    size = peak_resident(os.getpid()) + 200 * MIB  # A process that has run many tests holds half a gigabyte.
    cost = run_peer([sys.executable, "-c", f"x = b'x' * {size}"], os.environ)
    assert cost.peak_rss > size


def test_command_that_holds_less_than_the_harness_has_no_peak() -> None:
    held = bytearray(b"x" * (200 * MIB))
    assert run_peer([sys.executable, "-c", ""], os.environ).peak_rss == 0
    assert held
