"""Which of two ways to a server to take: the preferred one; where it fails and the other does not, that one for a while.

Pure: time is an argument, in monotonic seconds. A way is found wanting only by comparison: while neither leads to the server
it is the server that is away, and nothing is held against either. [docs/decisions/0093-falling-back.md]
"""

from __future__ import annotations

from grid.errors import PeerError, PeerGoneError
from grid.wire.status import brief

PREFERRED, OTHER = 0, 1

FIRST_AVOIDED_S = 15.0
"""How long the preferred way is not taken after it has failed: short, as the server may just have been restarting."""

LONGEST_AVOIDED_S = 900.0
"""What that grows to, doubled each time, while the way does not recover: a wrong address stays wrong for long."""

FAULTS_TOGETHER_S = 60.0
"""Two calls that fail within this time, the second begun after the first had failed, make a way doubtful."""

SILENCES_FORGIVEN = 2
"""How often a way that was silent may clear itself by answering for its version, before a call has been answered too."""


class Preference:
    """What is known of the two ways. reason: why the preferred one is not chosen; doubt: about the chosen one, "" if none.

    faults: how many there were; what failed together counts as one. is_silent: whether the doubt is that calls got no
    answer, which may be the server's fault: the way is asked again beside the other one then, and the first answer decides.
    """

    def __init__(self) -> None:
        self.chosen = PREFERRED
        self.reason = ""
        self.doubt = ""
        self.faults = 0
        self.is_silent = False
        self._silences = 0
        self._avoided_s = 0.0
        self._until = 0.0
        self._recovered_at: float | None = None
        self._fault_at: float | None = None

    def order(self, now: float) -> tuple[int, int]:
        """The way to try first and the one after it."""
        is_due = self.chosen == OTHER and not self.retry_in(now)
        first = 1 - self.chosen if (self.doubt and not self.is_silent) or is_due else self.chosen
        return first, 1 - first

    def reached(self, way: int, now: float, failure: str) -> bool:
        """That way leads to the server; failure: of the other one, "" if it was not tried. Whether the choice is new."""
        was_chosen, self.chosen = self.chosen, way
        if way != was_chosen or self.doubt:
            self._clear()
        if way == PREFERRED:
            self._recovered_at = now if was_chosen == OTHER else self._recovered_at
            self.reason = ""
        elif was_chosen == PREFERRED:
            relapsed = self._recovered_at is not None and now - self._recovered_at < 2 * self._avoided_s
            self._avoid(now, failure, relapsed=relapsed)
        elif failure:
            self.failed_again(now, failure)
        return way != was_chosen

    def nowhere(self) -> None:
        """Neither way leads to the server: a doubt about one of them says nothing."""
        self._clear()

    def forget(self) -> None:
        """The server is said to be back: the preferred way is tried at the next call."""
        self._until = 0.0

    def failed_again(self, now: float, failure: str) -> None:
        """The preferred way was tried again, and still fails."""
        self._avoid(now, failure, relapsed=True)

    def retry_in(self, now: float) -> float:
        """Seconds until the preferred way is tried again; 0 if that is due, or if it is the chosen one."""
        return max(0.0, self._until - now) if self.chosen == OTHER else 0.0

    def fault(self, way: int, error: PeerError, faults: int, now: float) -> None:
        """A call has failed on the way, in a manner that another way might not share; faults: as they were when it began."""
        if way != self.chosen or faults != self.faults:
            return
        self.faults += 1
        follows = self._fault_at is not None and now - self._fault_at < FAULTS_TOGETHER_S
        self._fault_at = now
        # A connection is lost when a server restarts, too; an answer that is late or no answer has no such excuse.
        if follows or not isinstance(error, PeerGoneError):
            self.doubt, self.is_silent = brief(error), False

    def silent(self, way: int, why: str, faults: int) -> None:
        """Calls on the way got no answer; faults: as they were when the last one began."""
        if way != self.chosen or faults != self.faults:
            return
        self.faults += 1
        self._silences += 1
        self.doubt, self.is_silent = why, self._silences <= SILENCES_FORGIVEN

    def heard(self, way: int) -> None:
        """A call on the way was answered."""
        if way == self.chosen:
            self._silences = 0

    def _clear(self) -> None:
        self.doubt, self.is_silent, self._fault_at = "", False, None

    def _avoid(self, now: float, failure: str, *, relapsed: bool) -> None:
        longer = min(LONGEST_AVOIDED_S, 2 * self._avoided_s)
        self._avoided_s = longer if relapsed and self._avoided_s else FIRST_AVOIDED_S
        self._until = now + self._avoided_s
        self.reason = failure


SILENCE_S = 0.5
"""Waiting in vain for longer than this counts against a way: no longer than any operation waits for a server it can spare."""

SLOWEST_BYTES_PER_S = 128 * 1024
"""A call may also take the time for its data at this rate: a slow line is not silent."""


class Silence:
    """The waiting in vain on two ways."""

    def __init__(self) -> None:
        self._waited_s = [0.0, 0.0]
        self._counted_until = [float("-inf"), float("-inf")]

    def heard(self, way: int, now: float) -> None:
        """An answer has come that way: it is not silent, and calls that are under way may still be answered."""
        self._waited_s[way] = 0.0
        self._counted_until[way] = now

    def gave_up(self, way: int, began_at: float, now: float, size: int) -> float:
        """A call that moves that many bytes was given up; seconds of silence if that is too much by now, else 0."""
        self._waited_s[way] += max(0.0, now - max(began_at, self._counted_until[way]))
        self._counted_until[way] = now
        waited_s = self._waited_s[way]
        if waited_s < SILENCE_S + size / SLOWEST_BYTES_PER_S:
            return 0.0
        self._waited_s[way] = 0.0
        return waited_s
