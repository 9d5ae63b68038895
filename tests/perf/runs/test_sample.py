"""Preparations before a sample."""

from __future__ import annotations

from attrs import evolve

from perf.campaigns.campaign import Cell, Encoding, Load
from perf.runs import sample
from perf.sampling.sampler import Series, Spent, Watched
from perf.sampling.usage import Usage
from tests.perf.runs.test_runner import MemorySystem

CELL = Cell(system="grid", client="cli", load=Load(size=1), encoding=Encoding(), place=0.0, warmup=False)


def test_command_has_the_seconds_that_the_kernel_counted_and_not_those_at_the_last_look() -> None:
    seen = Watched(spent={"client": Spent(user_s=0.2, system_s=0.0, resident=5)}, pressure={}, series=Series())
    usage = Usage(seconds=0.4, client_cpu_s=0.4, client_idle_rss=0, client_peak_rss=1, watched=seen)
    counted = evolve(usage, client_user_s=0.2875, client_system_s=0.1125)
    for one, expected in ((usage, (0.2, 0.0)), (counted, (0.2875, 0.1125))):
        found = sample.filled(sample.blank(CELL, "put"), one, [], MemorySystem("grid", []))
        assert (found.client_user_s, found.client_system_s) == expected
        assert (found.members["client"]["user_s"], found.members["client"]["system_s"]) == expected
        assert found.members["client"]["resident"] == 5
