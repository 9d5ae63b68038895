"""Chooses between two transports to a server: the preferred one or, while that fails and the other works, the other one.

Pure: time is an argument, in monotonic seconds. A transport is judged only by comparison: if neither reaches the server,
the server is away, and neither is blamed. [docs/decisions/0093-falling-back.md]
"""

from __future__ import annotations

from grid.errors import PeerError, PeerGoneError
from grid.wire.status import brief

PREFERRED, OTHER = 0, 1

FIRST_AVOIDED_S = 15.0
"""How long to avoid the preferred transport after its first failure: short, because the server may just have restarted."""

LONGEST_AVOIDED_S = 900.0
"""The upper limit of that time, which doubles while the transport does not recover: a wrong address stays wrong for long."""

FAULTS_TOGETHER_S = 60.0
"""Two calls that fail within this time, the second begun after the first had failed, put a transport in doubt."""

SILENCES_FORGIVEN = 2
"""How often a silent transport may clear itself by answering a version request before a call is answered, too."""


class Preference:
    """What is known of both transports. reason: why the preferred one is not chosen; doubt: about the chosen one, "" if none.

    faults: their number; failures at the same time count as one. is_silent: whether the doubt is that calls got no
    answer, which may be the server's fault. Then both transports are asked, and the first answer decides.
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
        """The transport to try first, and the one after it."""
        is_due = self.chosen == OTHER and not self.retry_in(now)
        first = 1 - self.chosen if (self.doubt and not self.is_silent) or is_due else self.chosen
        return first, 1 - first

    def reached(self, way: int, now: float, failure: str) -> bool:
        """Note that the server was reached this way. failure: of the other one, "" if it was not tried. Returns whether the choice is new."""
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
        """Drop the doubt, because neither transport reaches the server."""
        self._clear()

    def forget(self) -> None:
        """Try the preferred transport at the next call, because the server is said to be back."""
        self._until = 0.0

    def failed_again(self, now: float, failure: str) -> None:
        """Note that the preferred transport was tried again and still fails."""
        self._avoid(now, failure, relapsed=True)

    def retry_in(self, now: float) -> float:
        """Seconds until the preferred transport is tried again; 0 if that is due or if it is the chosen one."""
        return max(0.0, self._until - now) if self.chosen == OTHER else 0.0

    def fault(self, way: int, error: PeerError, faults: int, now: float) -> None:
        """Note a failed call that might succeed over another transport. faults: their number when the call began."""
        if way != self.chosen or faults != self.faults:
            return
        self.faults += 1
        follows = self._fault_at is not None and now - self._fault_at < FAULTS_TOGETHER_S
        self._fault_at = now
        # A restarting server also loses connections. A late or missing answer has no such excuse.
        if follows or not isinstance(error, PeerGoneError):
            self.doubt, self.is_silent = brief(error), False

    def silent(self, way: int, why: str, faults: int) -> None:
        """Note that calls got no answer. faults: their number when the last call began."""
        if way != self.chosen or faults != self.faults:
            return
        self.faults += 1
        self._silences += 1
        self.doubt, self.is_silent = why, self._silences <= SILENCES_FORGIVEN

    def heard(self, way: int) -> None:
        """Note that a call was answered."""
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
"""Waiting in vain for longer than this counts against a transport; no operation waits longer for a server it can spare."""

SLOWEST_BYTES_PER_S = 128 * 1024
"""A call may also take the time for its data at this rate: a slow line is not silent."""


class Silence:
    """The time spent waiting in vain, for each transport."""

    def __init__(self) -> None:
        self._waited_s = [0.0, 0.0]
        self._counted_until = [float("-inf"), float("-inf")]

    def heard(self, way: int, now: float) -> None:
        """Note an answer: the transport is not silent, and running calls may still be answered."""
        self._waited_s[way] = 0.0
        self._counted_until[way] = now

    def gave_up(self, way: int, began_at: float, now: float, size: int) -> float:
        """Note that a call with that many bytes was given up. Returns the seconds of silence if they are too many, otherwise 0."""
        self._waited_s[way] += max(0.0, now - max(began_at, self._counted_until[way]))
        self._counted_until[way] = now
        waited_s = self._waited_s[way]
        if waited_s < SILENCE_S + size / SLOWEST_BYTES_PER_S:
            return 0.0
        self._waited_s[way] = 0.0
        return waited_s
