"""Compares what a source lists with the journal and with the target's listing: which files are sent, and which can stay.

Pages of a listing are compared together. Cost: for a page, one question to each table of the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from attrs import evolve, field

from grid.errors import GridError
from grid.transfer.body import digest_of
from grid.transfer.choices import CLOCK_NS, EXACT_NS, is_same
from grid.transfer.ends import Entry, NotThereError, OpenedSource, SourceEnd, TargetEnd
from grid.transfer.journal import DONE, FAILED, STORED, UNVERIFIED, Journal, Row
from grid.transfer.outcome import Plan
from grid.transfer.rates import Slow
from grid.transfer.traits import CheckingTarget, identity_of
from grid.values import define

PAGE_COUNT = 256
"""Files that are compared together."""
PAGE_S = 0.2
"""Seconds after which a page of a slow listing is compared although it is not full."""


@define
class Findings:
    """What becomes of a page. wanted: send them. stored: the target has their contents, but not in place, or not verified.

    failures: names, and reasons. seen: unchanged files of the target, whose facts are to be recorded.
    """

    wanted: list[Entry] = field(factory=list)
    stored: list[tuple[Entry, Row]] = field(factory=list)
    unchanged: int = 0
    failures: list[tuple[str, GridError]] = field(factory=list)
    seen: list[Entry] = field(factory=list)


class Comparer:
    """Compares the files of all sources with those of one target."""

    def __init__(
        self, journal: Journal, target: TargetEnd, plan: Plan, sources: Sequence[SourceEnd], slow: Slow
    ) -> None:
        """Compare by the options of a plan; a dry run puts no stored files in place, and verifies none. slow: as in Flow."""
        self._journal, self._target = journal, target
        self._digest_of = partial(digest_of, key=journal.digest_key, slow=slow)
        self._selection, self._comparison, self._keeps_times = plan.selection, plan.comparison, plan.keeps_times
        self._resumes, self._verifies = not plan.dry_run, plan.verify and not plan.dry_run
        self._labels = {identity_of(source): source.label for source in sources}

    def examine(self, source: SourceEnd, entries: Sequence[Entry]) -> Findings:
        """Compare files that a source lists, and note that it has them. JournalError."""
        findings, identity = Findings(), identity_of(source)
        taken = self._journal.listings.want([entry.name for entry in entries], identity)
        if self._selection.is_given:
            entries = [entry for entry in entries if self._selection.takes(entry.name)]
        names = [entry.name for entry in entries]
        there, rows = self._journal.listings.there(names), self._journal.find_all(identity, names)
        for entry in entries:
            name = entry.name
            if name in taken:
                first, holder = taken[name]
                findings.failures.append((name, _taken(name, first, self._labels.get(holder, holder))))
            else:
                self._compare(entry, there.get(name), rows.get(name), findings)
        if self._resumes:
            self._journal.note_seen(identity, findings.seen)
        return findings

    def _compare(self, entry: Entry, there: Entry | None, row: Row | None, findings: Findings) -> None:
        failed = row is not None and row.state == FAILED
        accuracy_ns = EXACT_NS if self._keeps_times else CLOCK_NS
        if row is not None and row.state == DONE and self._comparison in ("time", "update") and not self._keeps_times:
            accuracy_ns = 0  # An earlier version was sent, perhaps just before the change.
        is_there = there is not None and not failed and is_same(entry, there, self._comparison, accuracy_ns)
        if row is not None and row.entry.facts == entry.facts:
            stays = is_there and self._comparison in ("size", "update")  # Another program may have put it there.
            if row.state == STORED and self._resumes and not stays:
                findings.stored.append((entry, row))
                return
            if row.state in (DONE, UNVERIFIED) and there is not None and self._still_holds(row, entry, there):
                if row.there is None or (row.there[0] is None and there.mtime_ns) or (there.tag and not row.there[1]):
                    findings.seen.append(there)
                if row.state == UNVERIFIED and self._verifies:
                    findings.stored.append((entry, row))
                else:
                    findings.unchanged += 1
                return
        if is_there:
            findings.unchanged += 1
            return
        refusal = self._target.refuse(entry.name)
        if refusal is None:
            findings.wanted.append(entry)
        else:
            why = GridError(f"{entry.name!r}: {self._target.label} cannot hold it: {refusal}")
            findings.failures.append((entry.name, why))

    async def known(self, source: SourceEnd, listed: Entry, opened: OpenedSource) -> Row | None:
        """The new row of a file whose contents are those sent before, and still there, although times differ.

        JournalError; raises the errors of reading.
        """
        name, size = listed.name, opened.entry.size
        row, there = self._journal.find(identity_of(source), name), self._journal.listings.there([name]).get(name)
        if row is None or row.state != DONE or not row.digest or row.entry.size != size or there is None:
            return None
        if there.size not in (None, size) or size is None or await self._digest_of(opened, size) != row.digest:
            return None
        if not is_as_noted(row, there) and not await self._reads_back(name, size, row.digest):
            return None
        return evolve(row, entry=listed, there=there.facts[1:])

    async def _reads_back(self, name: str, size: int, digest: str) -> bool:
        """Whether the target has these contents."""
        try:
            opened = await self._target.open(Entry(name=name))
        except NotThereError:
            return False
        try:
            return opened.entry.size == size and await self._digest_of(opened, size) == digest
        finally:
            await opened.close()

    def _still_holds(self, row: Row, entry: Entry, there: Entry) -> bool:
        """Whether the target may still have what the journal recorded."""
        kept = is_as_noted(row, there)
        if row.there is None and self._keeps_times and entry.mtime_ns is not None and there.mtime_ns is not None:
            kept = abs(entry.mtime_ns - there.mtime_ns) < CLOCK_NS
        return kept is not False and there.size in (None, entry.size)


def is_as_noted(row: Row, there: Entry) -> bool | None:
    """Whether the target's file has the tag that was noted, or else the time; None if neither is known."""
    mtime_ns, tag = row.there or (None, "")
    if tag and there.tag:
        return tag == there.tag
    if mtime_ns is None or there.mtime_ns is None:
        return None
    return abs(mtime_ns - there.mtime_ns) < CLOCK_NS


async def confirm(target: TargetEnd, findings: Findings) -> None:
    """Have the target check the files that an earlier run stored; those that it may not have are sent again. GridError."""
    if not findings.stored or not isinstance(target, CheckingTarget):
        return
    doubted = await target.doubted([row.token for _, row in findings.stored if row.token])
    findings.wanted += [entry for entry, row in findings.stored if row.token in doubted]
    findings.stored = [(entry, row) for entry, row in findings.stored if row.token not in doubted]


def _taken(name: str, first: str, holder: str) -> GridError:
    """The error of a file whose place at the target another one has. first, holder: that one's name and its source's label."""
    if first == name:
        return GridError(f"{name}: {holder} has a file of this name too")
    return GridError(f"{name}: the target cannot tell {name!a} from {first!a}, which {holder} has too")
