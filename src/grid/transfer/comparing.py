"""Compares what a source lists with the journal and with the target's listing: which files are sent, and which can stay.

Pages of a listing are compared together. Cost: for a page, one question to each table of the journal.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from grid.errors import GridError
from grid.transfer.choices import CLOCK_NS, EXACT_NS, Comparison, is_same
from grid.transfer.ends import Entry, SourceEnd, TargetEnd
from grid.transfer.journal import DONE, FAILED, STORED, UNVERIFIED, Journal, Row
from grid.transfer.selection import Selection

PAGE_COUNT = 256
"""Files that are compared together."""
PAGE_S = 0.2
"""Seconds after which a page of a slow listing is compared although it is not full."""


@define
class Findings:
    """What becomes of a page. wanted: send them. stored: the target has their contents, but not in place, or not verified.

    failures: names, and reasons.
    """

    wanted: list[Entry] = field(factory=list)
    stored: list[tuple[Entry, Row]] = field(factory=list)
    unchanged: int = 0
    failures: list[tuple[str, GridError]] = field(factory=list)


class Comparer:
    """Compares the files of all sources with those of one target."""

    def __init__(
        self,
        journal: Journal,
        target: TargetEnd,
        selection: Selection,
        comparison: Comparison,
        *,
        keeps_times: bool,
        resumes: bool,
        verifies: bool = False,
    ) -> None:
        """keeps_times: both ends preserve times. resumes: whether stored files are put in place instead of being sent.

        verifies: whether those that are in place and not verified count as stored.
        """
        self._journal, self._target, self._selection, self._comparison = journal, target, selection, comparison
        self._keeps_times, self._resumes, self._verifies = keeps_times, resumes, verifies

    def examine(self, source: SourceEnd, entries: Sequence[Entry]) -> Findings:
        """Compare files that a source lists, and note that it has them. JournalError."""
        findings = Findings()
        taken = self._journal.listings.want([entry.name for entry in entries], source.label)
        if self._selection.is_given:
            entries = [entry for entry in entries if self._selection.takes(entry.name)]
        names = [entry.name for entry in entries]
        there, rows = self._journal.listings.there(names), self._journal.find_all(source.label, names)
        for entry in entries:
            name = entry.name
            if name in taken:
                findings.failures.append((name, _taken(name, *taken[name])))
            else:
                self._compare(entry, there.get(name), rows.get(name), findings)
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
            if row.state in (DONE, UNVERIFIED) and there is not None and self._still_holds(entry, there):
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

    def _still_holds(self, entry: Entry, there: Entry) -> bool:
        """Whether the target may still have what the journal recorded."""
        if self._keeps_times and entry.mtime_ns is not None and there.mtime_ns is not None:
            return there.size == entry.size and abs(entry.mtime_ns - there.mtime_ns) < CLOCK_NS
        return there.size in (None, entry.size)


def _taken(name: str, first: str, holder: str) -> GridError:
    """The error of a file whose place at the target another one has. first, holder: that one's name and source."""
    if first == name:
        return GridError(f"{name}: {holder} has a file of this name too")
    return GridError(f"{name}: the target cannot tell {name!a} from {first!a}, which {holder} has too")
