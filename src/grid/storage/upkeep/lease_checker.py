"""The lease checker's task for each storage index: look at every lease, and remove the expired ones.

It removes nothing while the clock cannot be trusted (clock_guard.py). [spec storage-server 10]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.logger import Logger

from grid.errors import FormatError
from grid.ports import Clock, ShareNumber
from grid.storage.calls.service import StorageService
from grid.storage.files.incoming import remove_if_empty
from grid.storage.files.leases import PERIOD_S
from grid.storage.files.paths import PREFIXES, share_directory, share_path
from grid.storage.files.share_files import ShareFile, opened, plan_removal, share_numbers
from grid.storage.files.store import Hidden, ShareStore
from grid.storage.files.undo import Change
from grid.storage.settings import ExpirySettings
from grid.storage.upkeep.clock_guard import ClockGuard
from grid.storage.upkeep.crawler import State, load_state, save_state
from grid.storage.upkeep.expiry import (
    ExaminedShare,
    estimated,
    has_run_out,
    is_expired,
    is_report,
    new_report,
    note_corrupt,
    note_shares,
)
from grid.values import frozen

HISTORY_FILE = "lease_checker.history.json"
HISTORY_LENGTH = 10
MAX_CYCLE_DIGITS = 18
CLOCK_KEY = "clock"

log = Logger()


@frozen
class Examination:
    """What was found in one storage index. newest_grant: when its newest lease was granted; 0 if it has none."""

    shares: Sequence[ExaminedShare]
    corrupt: Sequence[ShareNumber]
    newest_grant: float = 0.0


class LeaseChecker:
    """The lease checker's task for a crawler; implements CycleTask. What it removes is gone for good."""

    name = "lease_checker"
    first_delay_s = 360.0
    cycle_s = 12 * 3600.0

    def __init__(self, service: StorageService, settings: ExpirySettings, clock: Clock) -> None:
        self._service = service
        self._settings = settings
        self._clock = clock
        self._guard = ClockGuard(wait_s=max(PERIOD_S, settings.override_s or 0))

    def is_state(self, state: State) -> bool:
        """Whether a cycle can resume from this state."""
        self._guard.restore(state.get(CLOCK_KEY))
        return state["current-cycle"] is None or is_report(state.get("cycle-to-date"))

    def begin_cycle(self, state: State) -> None:
        """Start a report."""
        state["cycle-to-date"] = new_report(self._settings)
        self._look(state)

    async def visit_prefix(self, state: State, prefix: str, names: Sequence[str]) -> None:
        """Do nothing: each storage index is visited separately."""

    async def visit(self, state: State, name: str, now: float) -> None:
        """Examine the shares of one storage index, and remove what has expired."""
        self._look(state)
        removing_at = self._guard.judging_time if self._settings.enabled else None
        found = await self._service.examine(name, examine_leases, self._service.store, self._settings, now, removing_at)
        if self._guard.saw_grant(found.newest_grant, now):
            self._tell()
        state[CLOCK_KEY] = self._guard.export()
        note_shares(state["cycle-to-date"], found.shares)
        note_corrupt(state["cycle-to-date"], name, found.corrupt)

    def _look(self, state: State) -> None:
        """Compare the clocks, and store the outcome in the state."""
        if self._guard.look(self._clock.now(), self._clock.unix_time()):
            self._tell()
        state[CLOCK_KEY] = self._guard.export()

    def _tell(self) -> None:
        if self._settings.enabled:
            log.warn(
                "no expired lease is removed for {days:.0f} days: {reason}",
                days=self._guard.held_s / 86400,
                reason=self._guard.reason,
            )

    async def end_cycle(self, state: State, now: float) -> None:
        """Add the report to the history."""
        report = state.pop("cycle-to-date")
        report["cycle-start-finish-times"] = [state["current-cycle-start-time"], now]
        await self._service.run(_add_to_history, self._service.store, str(state["current-cycle"]), report)

    async def status(self, state: State) -> dict[str, Any]:
        """The state with an estimate for the whole cycle, and the reports of earlier cycles."""
        status: dict[str, Any] = {**state, "history": await self._service.run(_load_history, self._service.store)}
        status.pop(CLOCK_KEY, None)
        last = state["last-complete-prefix"]
        if state["current-cycle"] is not None and last in PREFIXES:
            done = (PREFIXES.index(last) + 1) / len(PREFIXES)
            report = state["cycle-to-date"]
            whole = estimated(report, done)
            so_far = report["space-recovered"]
            status["estimated-current-cycle"] = {"space-recovered": whole}
            status["estimated-remaining-cycle"] = {"space-recovered": {key: whole[key] - so_far[key] for key in whole}}
        return status


def examine_leases(
    name: str, hidden: Hidden, store: ShareStore, settings: ExpirySettings, now: float, removing_at: float | None
) -> Examination:
    """Examine every lease of a storage index's shares. Blocking.

    now: the Unix time from which ages are counted. removing_at: remove leases that had also expired by then; None: remove none.
    """
    store.undo.settle(name)
    shares: list[ExaminedShare] = []
    corrupt: list[ShareNumber] = []
    changes: list[Change] = []
    removals: list[ShareNumber] = []
    newest_grant = 0.0
    for number in share_numbers(store.disk, name):
        if number in hidden:
            continue
        try:
            with opened(store.disk, name, number) as share:
                usage = store.disk.usage(share_path(name, number))
                examined, change = _examine(share, settings, now, removing_at, usage)
        except (FormatError, OSError):
            corrupt.append(number)
            continue
        shares.append(examined)
        newest_grant = max([newest_grant, *(now - age_s for age_s in examined.lease_ages_s)])
        changes += [] if change is None else [change]
        removals += [number] if examined.removed else []
    store.undo.change(name, changes)
    for number in removals:
        store.disk.unlink(share_path(name, number))
    if not hidden:
        remove_if_empty(store.disk, share_directory(name))
    return Examination(shares, corrupt, newest_grant)


def _examine(
    share: ShareFile, settings: ExpirySettings, now: float, removing_at: float | None, usage: tuple[int, int]
) -> tuple[ExaminedShare, Change | None]:
    """The share as found, and the change that removes its expired leases if others remain."""
    slots = share.leases()
    held = [lease for lease in slots if lease is not None]

    def expired_at(time: float) -> frozenset[int]:
        return frozenset(
            index
            for index, lease in enumerate(slots)
            if lease is not None and is_expired(lease, share.kind, settings, time)
        )

    removable = frozenset() if removing_at is None else expired_at(min(removing_at, now))
    change = plan_removal(share, removable) if removable else None
    all_expired = bool(held) and len(expired_at(now)) == len(held)
    examined = ExaminedShare(
        kind=share.kind,
        share_size=usage[0],
        disk_size=usage[1],
        lease_ages_s=tuple(now - lease.granted for lease in held),
        removed=bool(held) and len(removable) == len(held),
        expired_as_configured=all_expired,
        expired_as_granted=bool(held) and all(has_run_out(lease, now) for lease in held),
    )
    return examined, change


def _load_history(store: ShareStore) -> dict[str, Any]:
    return load_state(store.disk, HISTORY_FILE) or {}


def _add_to_history(store: ShareStore, cycle: str, report: dict[str, Any]) -> None:
    history = {key: old for key, old in _load_history(store).items() if _is_cycle(key)}
    history[cycle] = report
    newest = sorted(history, key=int)[-HISTORY_LENGTH:]
    save_state(store.disk, HISTORY_FILE, {key: history[key] for key in newest})


def _is_cycle(key: str) -> bool:
    """Whether the key is the number of a cycle: digits that parse as an integer."""
    return key.isascii() and key.isdigit() and len(key) <= MAX_CYCLE_DIGITS
