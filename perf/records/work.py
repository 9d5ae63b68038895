"""Kinds of work, identical for every system, and the units of their rates. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from perf.records.record import Sample

MB = 1e6
OPEN_LOOP = "staccato"
"""The mode in which files start by the clock."""
SMALL = 100_000
"""Bytes of a file below which files per second say more than MB/s."""


@frozen(order=True)
class Work:
    """The key of a row. factors: names and values. size: bytes of payload in count files."""

    scenario: str
    client: str
    factors: tuple[tuple[str, float | str], ...]
    size: int
    count: int = 1

    def __str__(self) -> str:
        factors = dict(self.factors)
        what = [f"{self.scenario} {self._amount()}".strip()]
        if "k" in factors:
            what.append(f"{factors['k']}-of-{factors.get('n')}")
        if "format" in factors:
            what.insert(1, str(factors["format"]).upper())
        if "segment" in factors:
            what.append(f"segments of {in_words(self, 'segment')}")
        what += [f"{name} {value}" for name, value in factors.items() if name not in _SAID]
        return ", ".join([*what, *([self.client] if self.client else [])])

    @property
    def is_range(self) -> bool:
        """Whether a part of a file was read or written."""
        return "length" in dict(self.factors)

    @property
    def is_open(self) -> bool:
        """Whether files start by the clock, so that the total says nothing about the system."""
        return dict(self.factors).get("mode") == OPEN_LOOP

    @property
    def unit(self) -> str:
        """The unit of `measure`: `ms`, of which fewer are better, or a rate; `s` if no work was done."""
        if self.scenario == "idle":
            return "s"
        if self.is_open:
            return "ms of a file"
        if self.is_range or not self.size:
            return "ms"
        return "files/s" if self.count > 1 and self.size / self.count < SMALL else "MB/s"

    @property
    def is_rate(self) -> bool:
        """Whether the unit counts what is done in a second, rather than time."""
        return self.unit.endswith("/s")

    def measure(self, seconds: float) -> float:
        """Convert a time, as `time_of` gives it, to the unit."""
        unit = self.unit
        if unit == "s":
            return seconds
        if unit.startswith("ms"):
            return seconds * 1e3 / (self.count if self.scenario == "mkdir" else 1)
        return self.count / seconds if unit == "files/s" else self.size / MB / seconds

    def _amount(self) -> str:
        factors = dict(self.factors)
        if self.is_range:
            return f"{_bytes(factors['length'])} of {_bytes(factors['size'])}"
        if self.scenario in _NAMES:
            return _NAMES[self.scenario].format(self.count)
        if self.count > 1:
            at = f" at {factors['concurrency']}" if "concurrency" in factors else ""
            return f"{self.count} x {_bytes(self.size // self.count)}{at}"
        return f"{self.size / MB:g} MB"


_SAID = ("k", "n", "format", "segment", "size", "length", "count", "concurrency")
"""Factors that a row's name expresses in words of its own."""

_NAMES = {
    "idle": "",
    "mkdir": "each of {}",
    "add-each": "{} children",
    "add-batch": "{} children",
    "list": "{} children",
    "list keys": "of {}",
    "slow clients": "{}",
}


def bound(floor: Mapping[str, float], work: Work) -> float | None:
    """MB/s of a client that does the unavoidable steps of a put or get sequentially; None if unknown.

    Every byte of a get passes TLS, is decrypted, and is hashed in its block; for an immutable file also in its segment.
    A byte of a put is encrypted and coded, and N / k bytes are hashed in blocks and sent; for an immutable file it is
    also hashed for the key, in its segment and in the whole. A client that uses several cores at once can be faster.
    """
    factors = dict(work.factors)
    if work.unit != "MB/s" or "k" not in factors:
        return None
    needed, total = int(factors["k"]), int(factors["n"])
    spread, once = total / needed, "format" not in factors
    costs = {
        "get": {"tls": 1.0, "sha256": 1.0 + once, "aes128-ctr": 1.0},
        "put": {"tls": spread, "sha256": 3.0 * once + spread, "aes128-ctr": 1.0, f"encode {needed}-of-{total}": 1.0},
    }.get(work.scenario)
    if costs is None or any(not floor.get(name) for name in costs):
        return None
    return 1 / sum(times / floor[name] for name, times in costs.items())


def work_of(sample: Sample) -> Work:
    """The work of a sample."""
    factors = tuple(sorted((name, _plain(value)) for name, value in sample.factors.items()))
    return Work(sample.scenario, sample.client, factors, sample.size, sample.count)


def time_of(sample: Sample) -> float | None:
    """Seconds by which systems are compared: the whole, but of an open loop the mean of its files, from when each was due.

    None if the sample failed, or is of an open loop and has no times of files.
    """
    if sample.seconds is None or sample.factors.get("mode") != OPEN_LOOP:
        return sample.seconds
    waited = file_times(sample)
    return sum(waited) / len(waited) if waited else None


def file_times(sample: Sample) -> list[float]:
    """The seconds of each file that succeeded, from when it was due."""
    return [one[3] - one[1] for one in sample.files if not one[4]]


def in_words(work: Work, name: str) -> str:
    """The value of one of its factors, as people say it."""
    value = dict(work.factors)[name]
    return _bytes(value) if name == "segment" else str(value)


def works_of(samples: Sequence[Sample]) -> list[Work]:
    """Every kind of work among the samples, sorted."""
    return sorted({work_of(sample) for sample in samples})


def _plain(value: float | str) -> float | str:
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _bytes(value: float | str) -> str:
    data = int(value)
    if data and data % 2**20 == 0:
        return f"{data // 2**20} MiB"
    if data and data % 2**10 == 0 and data < MB:
        return f"{data // 2**10} KiB"
    return f"{data} B" if data < 1000 else f"{data / MB:g} MB"
