"""How far a copy has come: files and octets done, how fast, and how long the rest takes. Pure."""

from __future__ import annotations

from attrs import define, field

FILE_COST = 64 * 1024
"""Octets that one more file takes as long as, whatever its size; for the estimate only."""


@define
class Tally:
    """Counted while it happens. total_*: what there is to do, skipped files among it. Times: monotonic seconds."""

    began_at: float
    total_files: int = 0
    total_octets: int = 0
    files: int = 0
    octets: float = 0.0
    moved_octets: float = 0.0
    copied: int = 0
    linked: int = 0
    skipped: int = 0
    directories: int = 0
    failures: list[str] = field(factory=list)

    def advance(self, octets: float) -> None:
        """So many octets went over the network."""
        self.octets += octets
        self.moved_octets += octets

    def finish(self, size: int, counted: float = 0.0) -> None:
        """One file is done, of whose octets some were counted before."""
        self.files += 1
        self.octets += size - counted

    def fail(self, what: str) -> None:
        """Something was not copied; what: one line that says why."""
        self.failures.append(what)

    def octet_rate(self, now: float) -> float:
        """Octets a second, skipped files left out."""
        return self.moved_octets / max(now - self.began_at, 1e-6)

    def file_rate(self, now: float) -> float:
        """Files a second."""
        return self.files / max(now - self.began_at, 1e-6)

    def remaining_s(self, now: float) -> float | None:
        """Seconds until all is done, if it goes on as so far; None while nothing is known."""
        done = self.octets + FILE_COST * self.files
        rest = self.total_octets + FILE_COST * self.total_files - done
        return None if done <= 0 else max(rest, 0.0) * max(now - self.began_at, 1e-6) / done
