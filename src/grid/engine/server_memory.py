"""What a client remembers of its servers from one operation to the next: speed, silence, failures.

The first operation that meets a silent server may pay for it; the next ones know. A server in doubt is asked last, serves
as a spare, and is waited for no longer than SHORT_PATIENCE_S. One answer clears it. Doubt is kept for each kind
of request, because a server may take reads and stall on writes; until it has answered anything, it is in doubt for all of
them. It never decides what a share is worth: a server in doubt is slow or away, not a liar.

Pure: time enters as `now`. Cost: memory: a few hundred bytes a server, for MOST_SERVERS at most.
See docs/decisions/0170-memory-of-servers.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeGuard

from attrs import define, field

from grid.engine.latency import Latency
from grid.ports import ServerId

SHORT_PATIENCE_S = 0.1
"""How long a server in doubt may keep anybody waiting."""

SILENCE_FLOOR_S = 0.15
SILENCE_FACTOR = 4.0
"""An abandoned request marks its server as silent if it is older than this, and this many times as old as the slowest answer
of its operation, and as the answer that was expected."""

PROBATION_S = 15.0
MOST_PROBATION_S = 600.0
"""A server that falls silent on the same kind of request again and again stays in doubt for that kind so long, doubled
each time, although it answers other questions."""

MOST_RESTORED_S = 300.0
"""A doubt that is older than this when a process begins is forgotten."""

MOST_SERVERS = 4096
MOST_KINDS = 16
"""More servers, or kinds of request of one server, are not remembered: those longest known go first."""

Kind = str
"""The name of a request's class."""

CONNECTING: Kind = "Connecting"
"""Stands for the requests of a server to which no connection could be made so far."""

MANY_BYTES = " of many bytes"
"""Ends the kind of requests that move many bytes: an answer to a small one says nothing of them."""

FORMAT = 1


@define(kw_only=True)
class _Doubt:
    """since: when the server was silent or away last. count: how often, with answers to other questions alone in between.

    is_away: it could not be reached at all. is_active: no probe has lifted it since. A doubt that was lifted is remembered: if
    the server falls silent again, it counts on.
    """

    since: float
    count: int = 1
    is_away: bool = False
    is_active: bool = True

    def outlasts_probe(self, now: float) -> bool:
        """Whether an answer to another question leaves this doubt as it is."""
        if self.is_away or self.count == 1:
            return False
        return now - self.since < min(MOST_PROBATION_S, PROBATION_S * (1 << min(self.count - 2, 10)))


@define(kw_only=True, eq=False)
class _Record:
    latency: Latency = field(factory=Latency)
    heard_at: float = float("-inf")
    heard_of: dict[Kind, float] = field(factory=dict)
    doubts: dict[Kind, _Doubt] = field(factory=dict)

    @property
    def has_doubts(self) -> bool:
        """In doubt for anything at all."""
        return any(doubt.is_active for doubt in self.doubts.values())

    def is_doubtful(self, kind: Kind | None) -> bool:
        """In doubt for that kind of request; None: for any that it was not silent on."""
        kinds = () if kind is None else (kind, kind + MANY_BYTES)
        if any(doubt.is_active for doubt in map(self.doubts.get, kinds) if doubt is not None):
            return True
        return any(doubt.is_active and doubt.since >= self.heard_at for doubt in self.doubts.values())


def _ignore(server_id: ServerId) -> None:
    """Nobody probes servers in doubt."""


class ServerMemory:
    """The servers of one client, as their answers have shown them."""

    def __init__(self) -> None:
        self._records: dict[ServerId, _Record] = {}
        self.on_doubt: Callable[[ServerId], None] = _ignore
        self.revision = 0

    def latency(self, server_id: ServerId) -> Latency:
        """How fast that server is; shared by all operations, which teach it."""
        return self._record(server_id).latency

    def is_doubtful(self, server_id: ServerId, kind: Kind | None = None) -> bool:
        """Whether the server was silent or away, and has not answered such a request since."""
        record = self._records.get(server_id)
        return record is not None and record.is_doubtful(kind)

    def is_doubtful_for_any(self, server_id: ServerId, kinds: Iterable[Kind]) -> bool:
        """Whether the server is in doubt for one of those kinds: for work that takes them all."""
        return any(self.is_doubtful(server_id, kind) for kind in kinds)

    def trusted_first(self, server_ids: Iterable[ServerId], kinds: Iterable[Kind]) -> list[ServerId]:
        """The servers in their order, those in doubt for one of these kinds after all others."""
        kinds = tuple(kinds)
        return sorted(server_ids, key=lambda server_id: self.is_doubtful_for_any(server_id, kinds))

    def has_doubts(self, server_id: ServerId) -> bool:
        """Whether there is anything at all that the server is in doubt for."""
        record = self._records.get(server_id)
        return record is not None and record.has_doubts

    def in_doubt(self) -> list[ServerId]:
        """The servers that are in doubt for anything."""
        return [server_id for server_id, record in self._records.items() if record.has_doubts]

    def heard_at(self, server_id: ServerId, kind: Kind) -> float:
        """When the server last answered such a request; -inf if never."""
        record = self._records.get(server_id)
        return record.heard_of.get(kind, float("-inf")) if record is not None else float("-inf")

    def answered(self, server_id: ServerId, kind: Kind, now: float) -> None:
        """The server has answered such a request, were it with a refusal."""
        record = self._record(server_id)
        record.heard_at = now
        record.heard_of[kind] = now
        if record.doubts:
            for answered in {kind, kind.removesuffix(MANY_BYTES)}:
                self.revision += record.doubts.pop(answered, None) is not None
            self._clear_away(record)
        if len(record.heard_of) > MOST_KINDS:
            del record.heard_of[next(iter(record.heard_of))]

    def silent_on(self, server_id: ServerId) -> frozenset[Kind]:
        """The kinds of request that the server did not answer, although it could be reached."""
        record = self._records.get(server_id)
        doubts = {} if record is None else record.doubts
        return frozenset(kind for kind, doubt in doubts.items() if doubt.is_active and not doubt.is_away)

    def heard(self, server_id: ServerId, now: float, asked_apart: Collection[Kind] = ()) -> None:
        """The server has answered a probe, or was announced again: trust it, but for what it keeps failing at.

        asked_apart: kinds of which it is also asked a question, whose answer decides about them.
        """
        record = self._record(server_id)
        record.heard_at = now
        for kind, doubt in record.doubts.items():
            if kind in asked_apart and not doubt.is_away:
                continue
            if doubt.is_active and not doubt.outlasts_probe(now):
                doubt.is_active = False
                self.revision += 1

    def silent(self, server_id: ServerId, kind: Kind, now: float, sent_at: float | None = None) -> None:
        """A request of that kind is no longer waited for, although its answer is overdue.

        sent_at: when it was sent. A server that answered other questions while this one waited stalls on this kind
        in particular, and a probe will not lift the doubt.
        """
        stalls = sent_at is not None and self._record(server_id).heard_at > (sent_at + now) / 2
        self._doubt(server_id, kind, now, is_away=False, stalls=stalls)

    def failed(self, server_id: ServerId, kind: Kind, now: float) -> None:
        """The server could not be reached, or was lost before it answered."""
        self._doubt(server_id, kind, now, is_away=True)

    def unreached(self, server_id: ServerId, since: float, now: float) -> None:
        """Nothing has come of an attempt to connect, begun then, for longer than from any honest server; it goes on."""
        if self._record(server_id).heard_at < since:
            self._doubt(server_id, CONNECTING, now, is_away=True)

    def is_unreached(self, server_id: ServerId) -> bool:
        """Whether the last that is known of the server is that nothing came of connecting to it."""
        record = self._records.get(server_id)
        doubt = record.doubts.get(CONNECTING) if record is not None else None
        return doubt is not None and doubt.is_active

    def is_overdue(
        self, server_id: ServerId, kind: Kind, size: int, sent_at: float, slowest_s: float, now: float
    ) -> bool:
        """Whether a request that nobody waits for any more tells of a silent server, and not of a quicker one beside it.

        size: bytes to move. slowest_s: the slowest answer that the same operation has had.
        """
        waited_s = now - max(sent_at, self.heard_at(server_id, kind))
        latency = self._record(server_id).latency
        expected_s = latency.time_of(size) if size and latency.rate_known else slowest_s
        return waited_s >= max(SILENCE_FLOOR_S, SILENCE_FACTOR * max(slowest_s, expected_s))

    def export(self, now: float) -> dict[str, Any]:
        """What a later process may begin with, as plain values; see restore."""
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
                    "byte_s": latency.byte_s if latency.rate_known else None,
                }
        return {"format": FORMAT, "servers": servers}

    def restore(self, document: object, age_s: float, now: float) -> None:
        """Begin with what an earlier process exported age_s ago. What is not of the right form is left out.

        Nothing that is known already is replaced.
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
        if _is_seconds(latency_s):
            record.latency.latency_s, record.latency.latency_known = float(latency_s), True
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
            # A server that has said nothing at all since is not known to stall on this kind of request in particular.
            old.count = min(old.count + (record.heard_at > old.since), 63)
            old.since, old.is_away, old.is_active = now, is_away, True
        self.revision += 1
        if not was_doubtful:
            self.on_doubt(server_id)

    def _clear_away(self, record: _Record) -> None:
        """An answer shows that the server is there, whatever it could not be reached for."""
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
