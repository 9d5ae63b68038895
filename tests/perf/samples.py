"""Synthetic samples for tests."""

from __future__ import annotations

from attrs import evolve

from perf.records.record import Header, Record, Sample

HEADER = Header(
    campaign="put-get",
    seed=7,
    environment={"date": "2026-01-01T00:00:00Z", "commit": "0" * 40, "cpu_count": 2, "packages": {"zfec": None}},
    systems=("grid", "tahoe"),
    floor={"sha256": 1500.0, "aes128-ctr": 6000.0, "encode 3-of-10": 5000.0, "tls": 1000.0},
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
        first_byte_s=0.01,
        client_cpu_s=0.25,
        client_idle_rss=50 * 2**20,
        client_peak_rss=80 * 2**20,
        server_cpu_s=0.125,
        server_peak_rss=60 * 2**20,
        server_cpus_s=(0.1, 0.025),
        server_peaks_rss=(60 * 2**20, 2**20),
        bytes_out=334 * 10**6,
        bytes_in=10**6,
        requests=40,
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


def range_sample(length: int) -> Sample:
    """A range of 100 MB."""
    factors = {"k": 3, "n": 10, "size": 10**8, "length": length}
    return evolve(sample(scenario="range"), factors=factors, size=length)


def many_sample(count: int, size: int, concurrency: int) -> Sample:
    """Many files, put."""
    factors = {"k": 3, "n": 10, "size": size, "count": count, "concurrency": concurrency}
    return evolve(sample(), factors=factors, size=count * size, count=count)


def tree_sample(scenario: str, count: int) -> Sample:
    """Something that was done to directories, or to nothing."""
    factors = {"k": 3, "n": 10} | ({"count": count, "concurrency": 1} if count > 1 else {})
    return evolve(sample(scenario=scenario), factors=factors, size=0, count=count)
