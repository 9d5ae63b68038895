"""The primitives, measured briefly."""

from __future__ import annotations

from attrs import evolve

from perf.campaigns.campaign import Encoding
from perf.records.work import bound, work_of
from perf.sampling.environment import measure_floor
from perf.sampling.floor import measure_floor as measure_here
from tests.perf.samples import sample


def test_floor_measured_here_names_every_primitive() -> None:
    floor = measure_here([(3, 10), (1, 1)], moment_s=0.0, transfer=1 << 20)
    assert set(floor) == {
        "sha256",
        "aes128-ctr",
        "encode 3-of-10",
        "decode 3-of-10",
        "encode 1-of-1",
        "decode 1-of-1",
        "tcp",
        "tls",
    }
    assert all(rate > 0 for rate in floor.values())


def test_floor_of_a_process_bounds_every_encoding_asked_for() -> None:
    floor = measure_floor([Encoding(), Encoding(needed=2, total=4), Encoding(segment_size=1024)])
    assert bound(floor, work_of(sample()))
    for scenario in ("put", "get"):
        assert bound(floor, work_of(evolve(sample(scenario=scenario), factors={"k": 2, "n": 4, "size": 10**8})))
