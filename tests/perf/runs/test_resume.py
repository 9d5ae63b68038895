"""Resuming an interrupted campaign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve

from perf.campaigns.campaign import Encoding
from perf.records.record import Header, RecordWriter, read_record
from perf.runs.runner import Options, run_campaign
from perf.sampling.usage import Usage
from tests.perf.runs.test_runner import CAMPAIGN, MemorySystem


class Interrupted(MemorySystem):
    """Stops the campaign at its n-th put."""

    puts = 0

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int, format: str = "chk"
    ) -> tuple[Sequence[str], Usage]:
        type(self).puts += 1
        if self.puts == 17:
            raise KeyboardInterrupt
        return super().put(client, encoding, sources, concurrency, format)


def test_campaign_that_was_interrupted_goes_on_with_what_is_left(tmp_path: Path) -> None:
    events: list[str] = []
    Interrupted.puts = 0
    path, work = tmp_path / "record.jsonl", tmp_path / "work"
    work.mkdir()
    header = Header(campaign="small", seed=1, environment={}, systems=("grid", "tahoe"))
    options = Options(tell=lambda _: None, make=lambda label: Interrupted(label, events))
    with RecordWriter(path, header) as writer, pytest.raises(KeyboardInterrupt):
        run_campaign(CAMPAIGN, 1, work, writer, options)
    assert events[-2:] == ["stop tahoe", "stop grid"]
    assert list(work.iterdir()) == []
    with path.open("a") as file:
        file.write('{"run":1,"or')
    begun = read_record(path)
    before = len(begun.samples)
    again = evolve(options, done=begun.done_keys(), orders=begun.next_orders())
    with RecordWriter(path, None) as writer:
        assert run_campaign(CAMPAIGN, 1, work, writer, again) == 0
    whole = read_record(path)
    measured = [sample for sample in whole.samples if not sample.warmup]
    assert len(measured) == 2 * 2 * 2 * 2 * 2
    assert {sample.run for sample in whole.samples[before:]} == {1}
    assert len({(sample.run, sample.order) for sample in whole.samples}) == len(whole.samples)
    assert len({(sample.key, sample.scenario) for sample in measured}) == len(measured)
    Interrupted.puts = 100
    with RecordWriter(path, None) as writer:
        run_campaign(CAMPAIGN, 1, work, writer, evolve(again, done=whole.done_keys()))
    assert len(read_record(path).samples) == len(whole.samples)
