"""Samples made up for tests."""

from __future__ import annotations

from perf.records import Header, Record, Sample

HEADER = Header(
    campaign="put-get",
    seed=7,
    environment={"date": "2026-01-01T00:00:00Z", "commit": "0" * 40, "cpu_count": 2, "packages": {"zfec": None}},
    systems=("grid", "tahoe"),
)


def sample(system: str = "grid", *, run: int = 0, seconds: float = 0.5, scenario: str = "put") -> Sample:
    """One that worked, of 100 MB."""
    return Sample(
        run=run,
        order=0,
        system=system,
        client="warm",
        scenario=scenario,
        factors={"k": 3, "n": 10, "size": 10**8},
        size=10**8,
        warmup=False,
        seconds=seconds,
        client_cpu_s=0.25,
        client_idle_rss=50 * 2**20,
        client_peak_rss=80 * 2**20,
        server_cpu_s=0.125,
        server_peak_rss=60 * 2**20,
        unix_time=1.5,
    )


def record(times: dict[str, list[list[float]]]) -> Record:
    """A record of puts: system -> one list of seconds per run."""
    samples = [
        sample(system, run=run, seconds=seconds)
        for system, runs in times.items()
        for run, values in enumerate(runs)
        for seconds in values
    ]
    header = Header(campaign="put-get", seed=7, environment=HEADER.environment, systems=tuple(times))
    return Record(header, tuple(samples))
