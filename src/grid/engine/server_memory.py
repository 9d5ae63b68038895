"""What a client remembers about its servers between operations: speed, silence, failures.

The first operation that meets a silent server may lose time; later ones do not. A server in doubt is asked last, serves
as a spare, and is waited for no longer than SHORT_PATIENCE_S. One answer clears the doubt. Doubt is kept per kind
of request, because a server may answer reads and stall on writes. Until it has answered anything, it is in doubt for every
kind. Doubt says nothing about the shares: such a server is slow or away, not a liar.

Pure: `now` is an argument. Memory: a few hundred bytes per server, for at most MOST_SERVERS servers.
See docs/decisions/0170-memory-of-servers.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, TypeGuard

from grid.engine.latency import Latency, are_distant
from grid.ports import ServerId
from grid.values import define, field

SHORT_PATIENCE_S = 0.08
"""How long to wait for a server in doubt."""

SILENCE_FLOOR_S = 0.15
SILENCE_FACTOR = 4.0
"""An abandoned request marks its server as silent if it waited at least this long, and this many times as long as the slowest
answer of its operation and as the answer was expected to take."""

RESENT_S = 0.3
"""A message whose last packets a distant line lost arrives this much later: systems wait at least 0.2 s before they send them again. So
there, a request must have waited this much longer than usual, too."""

MISSED_FACTOR = 1.5
MISSES = 2
"""Operations over long lines abandon a request sooner, because another server has answered instead. A server is silent, too, if it
misses this many in a row that waited this many times as long, and answers nothing in between."""

PROBATION_S = 15.0
MOST_PROBATION_S = 600.0
"""A server that keeps falling silent on one kind of request stays in doubt for that kind this long, doubled each time, although it
answers other requests."""

MOST_RESTORED_S = 300.0
"""A new process ignores saved doubts that are older than this."""

MOST_SERVERS = 4096
MOST_KINDS = 16
"""Limits on servers, and on kinds of request per server. Beyond them the oldest entry is dropped."""

Kind = str
"""The name of a request class."""

CONNECTING: Kind = "Connecting"
"""Stands for all requests to a server that the client has not been able to connect to."""

MANY_BYTES = " of many bytes"
"""Suffix for requests that move many bytes: an answer to a small one says nothing about them."""

FORMAT = 1


@define(kw_only=True)
class _Doubt:
    """since: when the server was last silent or away. count: how many times in a row, with only other kinds answered in between.

    is_away: it could not be reached at all. is_active: no probe has cleared it since. A cleared doubt is kept: if the server
    falls silent again, the count goes on. is_confirmed: it has left a probe or another request unanswered since.
    """

    since: float
    count: int = 1
    is_away: bool = False
    is_active: bool = True
    is_confirmed: bool = False

    def outlasts_probe(self, now: float) -> bool:
        """Whether this doubt stays when the server answers another kind of request."""
        if self.is_away or self.count == 1:
            return False
        return now - self.since < min(MOST_PROBATION_S, PROBATION_S * (1 << min(self.count - 2, 10)))


@define(kw_only=True, eq=False)
class _Record:
    latency: Latency = field(factory=Latency)
    heard_at: float = float("-inf")
    heard_of: dict[Kind, float] = field(factory=dict)
    doubts: dict[Kind, _Doubt] = field(factory=dict)
    missed_count: int = 0
    missed_at: float = float("-inf")

    @property
    def has_doubts(self) -> bool:
        """Whether the server is in doubt for any kind of request."""
        return any(doubt.is_active for doubt in self.doubts.values())

    def is_doubtful(self, kind: Kind | None, pardoned: Collection[Kind] = ()) -> bool:
        """Whether the server is in doubt for this kind of request; None: a kind it has never been silent on. pardoned: as in
        `is_doubtful_for_any`.
        """
        kinds = () if kind is None else (kind, kind + MANY_BYTES)
        return any(
            doubt.is_active
            and (silent_on in kinds or doubt.since >= self.heard_at)
            and not (pardoned and self._is_pardoned(silent_on, doubt, pardoned))
            for silent_on, doubt in self.doubts.items()
        )

    def _is_pardoned(self, kind: Kind, doubt: _Doubt, pardoned: Collection[Kind]) -> bool:
        is_weak = not doubt.is_away and not doubt.is_confirmed and are_distant(self.latency.quickest_s)
        return is_weak and kind.removesuffix(MANY_BYTES) in pardoned


_DOUBTS = attrgetter("doubts")


def _ignore(server_id: ServerId) -> None:
    """Do nothing: nobody probes servers in doubt."""


class ServerMemory:
    """What a client knows of each server's speed and silence."""

    def __init__(self) -> None:
        self._records: dict[ServerId, _Record] = {}
        self.on_doubt: Callable[[ServerId], None] = _ignore
        self.revision = 0

    def latency(self, server_id: ServerId) -> Latency:
        """The speed of that server. All operations share and update this object."""
        return self._record(server_id).latency

    def is_doubtful(self, server_id: ServerId, kind: Kind | None = None) -> bool:
        """Whether the server was silent or away, and has not answered this kind of request since."""
        record = self._records.get(server_id)
        return record is not None and bool(record.doubts) and record.is_doubtful(kind)

    def is_doubtful_for_any(self, server_id: ServerId, kinds: Iterable[Kind], pardoned: Collection[Kind] = ()) -> bool:
        """Whether the server is in doubt for any of these kinds. For work that needs all of them.

        pardoned: kinds on which a distant server may have been silent while nothing confirms it: it may only be slow.
        """
        record = self._records.get(server_id)
        if record is None or not record.doubts:
            return False
        return any(record.is_doubtful(kind, pardoned) for kind in kinds)

    def trusted_first(self, server_ids: Iterable[ServerId], kinds: Iterable[Kind]) -> list[ServerId]:
        """The servers in the given order, but with those in doubt for one of these kinds last."""
        if not any(map(_DOUBTS, self._records.values())):
            return list(server_ids)
        kinds = tuple(kinds)
        return sorted(server_ids, key=lambda server_id: self.is_doubtful_for_any(server_id, kinds))

    def has_doubts(self, server_id: ServerId) -> bool:
        """Whether the server is in doubt for any kind of request."""
        record = self._records.get(server_id)
        return record is not None and record.has_doubts

    def in_doubt(self) -> list[ServerId]:
        """The servers in doubt for any kind of request."""
        return [server_id for server_id, record in self._records.items() if record.has_doubts]

    def heard_at(self, server_id: ServerId, kind: Kind) -> float:
        """When the server last answered this kind of request; -inf if never."""
        record = self._records.get(server_id)
        return record.heard_of.get(kind, float("-inf")) if record is not None else float("-inf")

    def answered(self, server_id: ServerId, kind: Kind, now: float) -> None:
        """Note that the server has answered this kind of request, even with a refusal."""
        record = self._record(server_id)
        record.heard_at = now
        record.heard_of[kind] = now
        record.missed_count = 0
        if record.doubts:
            for answered in {kind, kind.removesuffix(MANY_BYTES)}:
                self.revision += record.doubts.pop(answered, None) is not None
            self._clear_away(record)
        if len(record.heard_of) > MOST_KINDS:
            del record.heard_of[next(iter(record.heard_of))]

    def silent_on(self, server_id: ServerId) -> frozenset[Kind]:
        """The kinds of request that the server left unanswered although it could be reached."""
        record = self._records.get(server_id)
        doubts = {} if record is None else record.doubts
        return frozenset(kind for kind, doubt in doubts.items() if doubt.is_active and not doubt.is_away)

    def heard(self, server_id: ServerId, now: float, asked_apart: Collection[Kind] = ()) -> None:
        """Trust the server again, because it answered a probe or was announced again, except for kinds that it keeps failing at.

        asked_apart: kinds that a request of their own is testing; its answer decides about them.
        """
        record = self._record(server_id)
        record.heard_at = now
        record.missed_count = 0
        for kind, doubt in record.doubts.items():
            if kind in asked_apart and not doubt.is_away:
                continue
            if doubt.is_active and not doubt.outlasts_probe(now):
                doubt.is_active = False
                self.revision += 1

    def silent(self, server_id: ServerId, kind: Kind, now: float, sent_at: float | None = None) -> None:
        """Note that the client stopped waiting for an overdue request of this kind.

        sent_at: when it was sent. If the server answered other requests meanwhile, it stalls on this kind
        in particular, and a probe will not clear the doubt.
        """
        stalls = sent_at is not None and self._record(server_id).heard_at > (sent_at + now) / 2
        self._doubt(server_id, kind, now, is_away=False, stalls=stalls)

    def unanswered(self, server_id: ServerId) -> None:
        """Note that the server has not answered a probe: its doubts are confirmed."""
        for doubt in self._record(server_id).doubts.values():
            doubt.is_confirmed = True

    def failed(self, server_id: ServerId, kind: Kind, now: float) -> None:
        """Note that the server could not be reached, or was lost before it answered."""
        self._doubt(server_id, kind, now, is_away=True)

    def unreached(self, server_id: ServerId, since: float, now: float) -> None:
        """Note that an attempt to connect, begun at `since` and still running, has had no sign of life for too long."""
        if self._record(server_id).heard_at < since:
            self._doubt(server_id, CONNECTING, now, is_away=True)

    def is_unreached(self, server_id: ServerId) -> bool:
        """Whether the last known fact about the server is that connecting to it brought no sign of life."""
        record = self._records.get(server_id)
        doubt = record.doubts.get(CONNECTING) if record is not None else None
        return doubt is not None and doubt.is_active

    def abandoned(
        self, server_id: ServerId, kind: Kind, size: int, sent_at: float, slowest_s: float, now: float
    ) -> None:
        """Note that an operation no longer waits for a request, and whether that shows that the server is silent.

        size: bytes to move. slowest_s: the slowest answer to the same operation.
        """
        waited_s, usual_s = self._waits(server_id, kind, size, sent_at, slowest_s, now)
        record = self._record(server_id)
        if sent_at >= record.missed_at and waited_s >= max(SILENCE_FLOOR_S, MISSED_FACTOR * usual_s):
            record.missed_count += 1
            record.missed_at = now
        if record.missed_count >= MISSES or self.is_overdue(server_id, kind, size, sent_at, slowest_s, now):
            record.missed_count = 0
            self.silent(server_id, kind, now, sent_at)

    def is_overdue(
        self, server_id: ServerId, kind: Kind, size: int, sent_at: float, slowest_s: float, now: float
    ) -> bool:
        """Whether an abandoned request shows by itself that its server is silent, rather than that another server was faster.

        The arguments are those of abandoned.
        """
        waited_s, usual_s = self._waits(server_id, kind, size, sent_at, slowest_s, now)
        quickest_s = self._record(server_id).latency.quickest_s
        resent_s = RESENT_S if are_distant(min(quickest_s, slowest_s)) else 0.0
        return waited_s >= max(SILENCE_FLOOR_S, SILENCE_FACTOR * usual_s, usual_s + resent_s)

    def _waits(
        self, server_id: ServerId, kind: Kind, size: int, sent_at: float, slowest_s: float, now: float
    ) -> tuple[float, float]:
        """How long a request has waited, and how long it usually would."""
        waited_s = now - max(sent_at, self.heard_at(server_id, kind))
        latency = self._record(server_id).latency
        expected_s = latency.time_of(size) if size and latency.rate_known else slowest_s
        return waited_s, max(slowest_s, expected_s)

    def export(self, now: float) -> dict[str, Any]:
        """What a later process can start with, as plain values; see restore."""
        servers = {}
        for server_id, record in self._records.items():
            doubts = {
                kind: [doubt.count, doubt.is_away, max(0.0, now - doubt.since)]
                for kind, doubt in record.doubts.items()
                if doubt.is_active
            }
            latency = record.latency
            if doubts or latency.latency_known:
                servers[str(server_id)] = {
                    "doubts": doubts,
                    "latency_s": latency.latency_s if latency.latency_known else None,
                    "slowest_s": latency.slowest_s if latency.latency_known else None,
                    "quickest_s": latency.quickest_s if latency.latency_known else None,
                    "byte_s": latency.byte_s if latency.rate_known else None,
                }
        return {"format": FORMAT, "servers": servers}

    def restore(self, document: object, age_s: float, now: float) -> None:
        """Start with what an earlier process exported age_s ago. Malformed entries are ignored.

        What this process knows already is kept.
        """
        if not isinstance(document, Mapping) or document.get("format") != FORMAT or age_s < 0:
            return
        servers = document.get("servers")
        if not isinstance(servers, Mapping):
            return
        for server_id, found in list(servers.items())[:MOST_SERVERS]:
            if isinstance(server_id, str) and isinstance(found, Mapping) and server_id not in self._records:
                self._restore_one(ServerId(server_id), found, age_s, now)

    def _restore_one(self, server_id: ServerId, found: Mapping[str, object], age_s: float, now: float) -> None:
        record = self._record(server_id)
        latency_s, byte_s, doubts = found.get("latency_s"), found.get("byte_s"), found.get("doubts")
        slowest_s, quickest_s = found.get("slowest_s"), found.get("quickest_s")
        if _is_seconds(latency_s):
            record.latency.latency_s, record.latency.latency_known = float(latency_s), True
            record.latency.slowest_s = float(slowest_s) if _is_seconds(slowest_s) else float(latency_s)
            record.latency.quickest_s = float(quickest_s) if _is_seconds(quickest_s) else float(latency_s)
        if _is_seconds(byte_s):
            record.latency.byte_s, record.latency.rate_known = float(byte_s), True
        if not isinstance(doubts, Mapping):
            return
        for kind, values in list(doubts.items())[:MOST_KINDS]:
            match values:
                case [int(count), bool(is_away), int() | float() as since_s] if (
                    isinstance(kind, str) and 1 <= count < 64
                ):
                    if _is_seconds(since_s) and age_s + since_s <= MOST_RESTORED_S:
                        since = now - age_s - since_s
                        record.doubts[kind] = _Doubt(since=since, count=count, is_away=is_away)

    def _doubt(self, server_id: ServerId, kind: Kind, now: float, *, is_away: bool, stalls: bool = False) -> None:
        record = self._record(server_id)
        was_doubtful = record.is_doubtful(None)
        old = record.doubts.get(kind)
        if old is None:
            record.doubts[kind] = _Doubt(since=now, is_away=is_away, count=2 if stalls else 1)
            if len(record.doubts) > MOST_KINDS:
                del record.doubts[next(iter(record.doubts))]
        elif now > old.since:
            # If it has not answered anything since, it is not known to stall on this kind of request in particular.
            old.count = min(old.count + (record.heard_at > old.since), 63)
            old.is_confirmed = record.heard_at <= old.since
            old.since, old.is_away, old.is_active = now, is_away, True
        self.revision += 1
        if not was_doubtful:
            self.on_doubt(server_id)

    def _clear_away(self, record: _Record) -> None:
        """Drop the doubts about reaching the server: an answer shows that it is there."""
        kept = {kind: doubt for kind, doubt in record.doubts.items() if not doubt.is_away}
        self.revision += len(kept) != len(record.doubts)
        record.doubts = kept

    def _record(self, server_id: ServerId) -> _Record:
        record = self._records.get(server_id)
        if record is None:
            record = self._records[server_id] = _Record()
            if len(self._records) > MOST_SERVERS:
                del self._records[next(iter(self._records))]
        return record


def _is_seconds(value: object) -> TypeGuard[float]:
    """Whether this is a plausible number of seconds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6
