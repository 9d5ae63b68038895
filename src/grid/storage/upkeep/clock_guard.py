"""Decides whether the clock can be trusted to expire leases. Pure: both times are arguments.

What a wrong clock deletes is gone for good, and a lease granted under a wrong clock looks old once the clock is corrected. So
deletions stop for one lease period of running time after the clock was found wrong: if it drifts from monotonic time by
more than JUMP_S, if it starts before the last saved time or before this program existed, or if a lease was
granted later than the clock says. In addition, leases are judged by a time noted a day of running time earlier, so that
every deleted lease was found expired twice, a day apart.

Running time is monotonic time while the server runs, added up across restarts.
See docs/decisions/0180-expiry-distrusts-the-clock.md.
"""

from __future__ import annotations

from typing import Any

from grid.values import define, field

JUMP_S = 3600.0
CONFIRM_S = 86400.0
"""How long ago a time must have been noted to count."""

NOTE_EVERY_S = 6 * 3600.0
EARLIEST_S = 1_700_000_000.0
"""No correct clock shows an earlier time: November 2023, before this program existed."""

MOST_NOTES = 64


@define(kw_only=True)
class ClockGuard:
    """wait_s: how long deletions stop once the clock was wrong. reason: why they are stopped now; empty if they are not."""

    wait_s: float
    reason: str = ""
    _running_s: float = 0.0
    _held_until_s: float = 0.0
    _saved_unix: float = 0.0
    _newest_grant: float = 0.0
    _notes: list[tuple[float, float]] = field(factory=list)
    _last: tuple[float, float] | None = None

    def look(self, monotonic: float, unix: float) -> bool:
        """Compare the two clocks. Returns whether something is newly wrong. Call this before each look at leases."""
        found = self._fault(monotonic, unix)
        if self._last is not None:
            self._running_s += max(0.0, monotonic - self._last[0])
        self._last = (monotonic, unix)
        self._saved_unix = unix
        if found:
            self._hold(found)
        elif not self._notes or self._running_s - self._notes[-1][0] >= NOTE_EVERY_S:
            self._notes = [*self._notes[-MOST_NOTES + 1 :], (self._running_s, unix)]
        if self._running_s >= self._held_until_s:
            self.reason = ""
        return bool(found)

    def saw_grant(self, granted: float, unix: float) -> bool:
        """Note that a lease was granted at that time. Returns whether this newly shows that the clock is behind."""
        if granted <= max(unix + JUMP_S, self._newest_grant):
            return False
        self._newest_grant = granted
        self._hold("a lease was granted later than the clock says it is")
        return True

    @property
    def judging_time(self) -> float | None:
        """The Unix time to judge leases by; None while nothing may be deleted."""
        if self._last is None or self._running_s < self._held_until_s:
            return None
        confirmed = [unix for running_s, unix in self._notes if running_s <= self._running_s - CONFIRM_S]
        return min(confirmed[-1], self._last[1]) if confirmed else None

    @property
    def held_s(self) -> float:
        """Seconds of running time until deletions resume after a wrong clock."""
        return max(0.0, self._held_until_s - self._running_s)

    def export(self) -> dict[str, Any]:
        """The state from which a later process resumes."""
        return {
            "running": self._running_s,
            "held-until": self._held_until_s,
            "reason": self.reason,
            "unix": self._saved_unix,
            "newest-grant": self._newest_grant,
            "notes": [list(note) for note in self._notes],
        }

    def restore(self, saved: object) -> None:
        """Resume what an earlier process exported; malformed parts are ignored."""
        match saved:
            case {
                "running": int() | float() as running,
                "held-until": int() | float() as held_until,
                "reason": str(reason),
                "unix": int() | float() as unix,
                "newest-grant": int() | float() as newest,
                "notes": list(notes),
            }:
                pairs = [
                    (float(note[0]), float(note[1]))
                    for note in notes[-MOST_NOTES:]
                    if isinstance(note, list) and len(note) == 2 and all(isinstance(part, int | float) for part in note)
                ]
                self._running_s, self._held_until_s, self.reason = float(running), float(held_until), reason
                self._saved_unix, self._newest_grant, self._notes = float(unix), float(newest), sorted(pairs)

    def _fault(self, monotonic: float, unix: float) -> str:
        """What is wrong with the clock, or ""."""
        if unix < EARLIEST_S:
            return "the clock says that it is before 2023-11-14"
        if self._last is None:
            behind = self._saved_unix - unix
            return "the clock is behind the time at which the server ran last" if behind > JUMP_S else ""
        drift = (unix - self._last[1]) - (monotonic - self._last[0])
        return (
            f"the clock was set {'forward' if drift > 0 else 'back'} by {abs(drift):.0f} s"
            if abs(drift) > JUMP_S
            else ""
        )

    def _hold(self, reason: str) -> None:
        self.reason = reason
        self._held_until_s = self._running_s + self.wait_s
        self._notes = []
