"""Samples for plots: taken while the gateway runs, and never more than those of a day."""

from __future__ import annotations

from grid.gateway.history.history import Counters
from grid.gateway.monitoring.samples import KEPT, SAMPLE_S, Samples
from tests.support.virtual_time import VirtualRuntime


def test_counters_are_sampled_until_the_gateway_ends_and_kept_for_a_day() -> None:
    runtime, counters = VirtualRuntime(), Counters()
    samples = Samples(runtime.clock, counters, lambda: 3)
    assert len(samples.all()) == 1
    samples.start()
    counters.add("uploader.bytes_uploaded", 500)
    counters.add("mutable.bytes_published", 20)
    counters.add("mutable.files_retrieved")
    runtime.clock.task_clock.advance(SAMPLE_S)

    first, second, now = samples.all()
    assert (first.stored, second.stored, second.read, second.operations, now.connected) == (0, 520, 0, 1, 3)
    assert second.at - first.at == SAMPLE_S
    for _ in range(KEPT):
        runtime.clock.task_clock.advance(SAMPLE_S)
    assert len(samples.all()) == KEPT + 1
    samples.close()
    assert runtime.clock.task_clock.calls == []
