"""The whole harness over a minimal grid of real processes: everything that campaigns ask for, once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve

from perf.campaigns.campaign import Campaign, Encoding, Load, whole_files
from perf.records.record import Header, Record, RecordWriter, read_record
from perf.runs.runner import Options, run_campaign

EVERYTHING = Campaign(
    name="everything",
    purpose="",
    duration="",
    systems=(),
    loads=(
        *whole_files(100_000),
        *whole_files(100_000, format="mdmf"),
        Load(size=1000, count=3, concurrency=2),
        Load(scenario="range", size=300_000, length=1000),
        Load(scenario="range", size=300_000, length=1000, format="mdmf"),
        Load(scenario="alacrity", size=100_000, length=1),
        Load(scenario="overwrite", size=300_000, length=1000, format="mdmf"),
        Load(scenario="mkdir", count=2),
        Load(scenario="add-each", count=2),
        Load(scenario="add-batch", count=3),
        Load(scenario="list", count=3),
        Load(scenario="idle", seconds=0.1),
    ),
    encodings=(Encoding(needed=2, happy=2, total=3),),
    runs=1,
    repetitions=1,
    warmups=0,
    servers=3,
)


@contextmanager
def quick_samples() -> Iterator[None]:
    """Take samples without the steps that only make times comparable: touching 64 MiB, and syncing all disks, before each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perf.sampling.touched.LEAST_TOUCHED", 1 << 20)
        patch.setattr(os, "sync", lambda: None)
        yield


def everything(tmp_path: Path, *systems: str) -> Record:
    """A record of every scenario."""
    (tmp_path / "work").mkdir()
    header = Header(campaign="everything", seed=1, environment={}, systems=systems)
    with quick_samples(), RecordWriter(tmp_path / "record.jsonl", header) as writer:
        run_campaign(evolve(EVERYTHING, systems=systems), 1, tmp_path / "work", writer, Options(tell=lambda _: None))
    return read_record(tmp_path / "record.jsonl")


def expect_all(record: Record, codec: str) -> None:
    """Every operation worked, and was seen on the wire."""
    assert [sample.error for sample in record.failures()] == []
    assert len(record.samples) == len(EVERYTHING.loads) + 3
    assert {sample.codec for sample in record.samples} == {codec}
    assert all(len(sample.server_peaks_rss) == EVERYTHING.servers for sample in record.samples)
    for sample in record.samples:
        if sample.scenario == "put" and sample.bytes_out is not None:
            assert sample.bytes_out > sample.size
        if sample.scenario == "get" and sample.bytes_in is not None:
            assert sample.bytes_in > sample.size
