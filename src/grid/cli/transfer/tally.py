"""How far a copy has come: files and bytes done, how fast, and how long the rest takes. Pure."""

from __future__ import annotations

from attrs import define, field

FILE_COST = 64 * 1024
"""Bytes that one more file takes as long as, whatever its size; for the estimate only."""


@define
class Tally:
    """Counted while it happens. total_*: what there is to do, skipped files among it. Times: monotonic seconds."""

    began_at: float
    total_files: int = 0
    total_bytes: int = 0
    files: int = 0
    byte_count: float = 0.0
    moved_bytes: float = 0.0
    copied: int = 0
    linked: int = 0
    skipped: int = 0
    directories: int = 0
    failures: list[str] = field(factory=list)

    def advance(self, byte_count: float) -> None:
        """So many bytes went over the network."""
        self.byte_count += byte_count
        self.moved_bytes += byte_count

    def finish(self, size: int, counted: float = 0.0) -> None:
        """One file is done, of whose bytes some were counted before."""
        self.files += 1
        self.byte_count += size - counted

    def fail(self, what: str) -> None:
        """Something was not copied; what: one line that says why."""
        self.failures.append(what)

    def byte_rate(self, now: float) -> float:
        """Bytes a second, skipped files left out."""
        return self.moved_bytes / max(now - self.began_at, 1e-6)

    def file_rate(self, now: float) -> float:
        """Files a second."""
        return self.files / max(now - self.began_at, 1e-6)

    def remaining_s(self, now: float) -> float | None:
        """Seconds until all is done, if it goes on as so far; None while nothing is known."""
        done = self.byte_count + FILE_COST * self.files
        rest = self.total_bytes + FILE_COST * self.total_files - done
        return None if done <= 0 else max(rest, 0.0) * max(now - self.began_at, 1e-6) / done
