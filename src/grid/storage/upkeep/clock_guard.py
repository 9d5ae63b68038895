"""Whether the clock can be trusted to end leases by. Pure: both times enter as arguments.

What is deleted by a false clock is gone for good, and a lease granted by one looks old as soon as the clock is put right. So
deletions wait for one lease period of running time after the clock was seen to be wrong: when it parts from monotonic time by
more than JUMP_S, when it starts before the last time that was saved or before this program existed, or when a lease was
granted later than it says. And leases are judged by a time that was noted a day of running time before, so that
nothing goes but what was found expired twice, a day apart.

Running time is monotonic time while the server runs, kept across restarts.
See docs/decisions/0180-expiry-distrusts-the-clock.md.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field

JUMP_S = 3600.0
CONFIRM_S = 86400.0
"""How long before it counts a time must have been noted."""

NOTE_EVERY_S = 6 * 3600.0
EARLIEST_S = 1_700_000_000.0
"""No clock that is right says less: November 2023, before there was this program."""

MOST_NOTES = 64


@define(kw_only=True)
class ClockGuard:
    """wait_s: how long nothing is deleted once the clock was wrong. reason: why nothing is deleted now; empty if nothing is wrong."""

    wait_s: float
    reason: str = ""
    _running_s: float = 0.0
    _held_until_s: float = 0.0
    _saved_unix: float = 0.0
    _newest_grant: float = 0.0
    _notes: list[tuple[float, float]] = field(factory=list)
    _last: tuple[float, float] | None = None

    def look(self, monotonic: float, unix: float) -> bool:
        """Compare the two clocks; whether something is newly wrong. To be called before each look at leases."""
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
        """A lease was granted at that time; whether that shows, newly, that the clock is behind."""
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
        """Seconds of running time until deletions go on, as far as the clock was wrong."""
        return max(0.0, self._held_until_s - self._running_s)

    def export(self) -> dict[str, Any]:
        """What a later process resumes from."""
        return {
            "running": self._running_s,
            "held-until": self._held_until_s,
            "reason": self.reason,
            "unix": self._saved_unix,
            "newest-grant": self._newest_grant,
            "notes": [list(note) for note in self._notes],
        }

    def restore(self, saved: object) -> None:
        """Go on with what an earlier process exported; what is not of that form is left out."""
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
        """What is wrong with the clock, if anything."""
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
