"""One transfer from its listing to its end: sends what is new, as many files in parallel as there are workers.

It owns the order of the steps: what exists, what is wanted, sending, journal, settling, verifying, removing. A file
that fails stops nothing else. Memory: the queue and the budget for files in transit; listings are kept on disk.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from grid.errors import GridError
from grid.transfer.body import FileBody, Flow, require_contents
from grid.transfer.choices import may_pass, pause_before
from grid.transfer.comparing import PAGE_COUNT, PAGE_S, Comparer, confirm
from grid.transfer.ends import (
    PENDING,
    EndError,
    Entry,
    LeftOut,
    NoFileError,
    NotThereError,
    OpenedSource,
    OverlappingTarget,
    SourceEnd,
    TargetEnd,
    cancelled_as_error,
    first_error,
    listed,
)
from grid.transfer.jobs import Put, Workers, choose_jobs
from grid.transfer.journal import DONE, FAILED, STORED, UNSENT, UNVERIFIED, Journal, Row
from grid.transfer.memory import ByteBudget, Holding, Needs, steady
from grid.transfer.outcome import Counted, Observer, Outcome, Plan, failure_of
from grid.transfer.rates import Slow, unlimited
from grid.transfer.records import JournalError
from grid.transfer.repeating import Settling, patiently
from grid.transfer.together import Together
from grid.transfer.traits import as_listed, identity_of
from grid.values import field, frozen

SETTLE_COUNT = 256
"""Files moved into place together."""
SETTLE_S = 5.0
NOTED_AT_ONCE = 1000
RESUMED_SIZE = 16 * 2**20
"""The size in bytes from which an interrupted file is resumed, if its target supports that."""
FILE_MEMORY = 256 * 2**10
"""Memory that any file in transit takes in addition to its contents."""


@frozen
class _Stored:
    """A file whose contents the target has. counts_as: once it is in place."""

    source: SourceEnd
    listed: Entry
    entry: Entry
    token: str = field(repr=False)
    digest: str
    counts_as: Counted = "copied"


_Wanted = tuple[SourceEnd, Together, Sequence[Entry]]
"""Files to send together, or a single one."""


class Transfer:
    """One run. slow: limits its rate."""

    def __init__(
        self,
        sources: Sequence[SourceEnd],
        target: TargetEnd,
        journal: Journal,
        plan: Plan,
        *,
        observer: Observer | None = None,
        slow: Slow = unlimited,
        lists_target: bool = True,
    ) -> None:
        """lists_target: list the target first; otherwise the journal of an earlier run tells what it has."""
        self._lists_target = lists_target
        self._sources, self._target, self._journal, self._plan = sources, target, journal, plan
        self._observer = observer or Observer()
        self._flow = Flow(
            mode=plan.mode, chunk_size=plan.chunk_size, streams=plan.streams, slow=slow, advance=self._advance,
            max_memory=plan.max_memory, digest_key=journal.digest_key,
        )  # fmt: skip
        self._ended = self._moved = 0
        self._budget = ByteBudget(plan.max_memory)
        self._stored: list[_Stored] = []
        self._pending: list[_Stored] = []
        self._settling = Settling(target, plan.retries, _pause)
        self.outcome = Outcome(is_dry_run=plan.dry_run)

    async def run(self) -> Outcome:
        """Send what is new. Raises the errors of listing a source; GridError, OSError."""
        self._journal.listings.tell_apart_by(self._target.place_of)
        if self._lists_target:
            await self._patiently(self._note_target)
        try:
            async with asyncio.TaskGroup() as group:
                settler = group.create_task(self._settle_in_time())
                jobs = choose_jobs(self._plan.transfers, lambda: (self._ended, self._moved))
                complete = await Workers(jobs, self._work).run(self._list)
                async with self._settling.turn:  # Otherwise files that are being settled now would end up nowhere.
                    settler.cancel()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        await self._settle(is_last=True)
        if complete and self.outcome.found:
            if not self._plan.dry_run:
                self._journal.forget_unwanted_parts()
            if self._plan.delete and not self.outcome.failures:
                await self._remove_unwanted()
        return self.outcome

    async def _note_target(self) -> None:
        """Record the target's files in the journal's temporary table; a missing target has none."""
        entries: list[Entry] = []
        if not self._plan.dry_run:
            self._target.spare(self._journal.part_tokens(), self._journal.mark)
        try:
            async for found in listed(self._target):
                if isinstance(found, Entry):
                    entries.append(found)
                if len(entries) == NOTED_AT_ONCE:
                    self._journal.listings.note_there(entries)
                    entries.clear()
        except NotThereError:
            pass
        self._journal.listings.note_there(entries)

    async def _list(self, put: Put[_Wanted]) -> bool:
        """Pass every new file to the workers; return whether all sources were listed without a gap."""
        complete = True
        for source in self._sources:
            scratch = partial(self._journal.scratch_name, identity_of(source))
            together = Together(source, self._target, self._flow, scratch)
            page, since = list[Entry](), 0.0
            async for found in listed(source):
                if isinstance(found, LeftOut):
                    if found.is_later:
                        continue
                    if found.is_file:
                        self._journal.listings.want([found.name], identity_of(source))
                    complete = self._leave_out(found) and complete
                    continue
                since = since if page else time.monotonic()
                page.append(found)
                if len(page) == PAGE_COUNT or time.monotonic() - since > PAGE_S:
                    await self._offer(source, together, page, put)
                    page = []
            await self._offer(source, together, page, put)
        return complete

    def _leave_out(self, found: LeftOut) -> bool:
        """Tell of it. Return whether no file is missing because of it that would be sent, or kept from removal."""
        if (failure := failure_of(found, self._plan.selection)) is not None:
            self.outcome.fail(found.name, failure)
            return not found.is_gap
        self.outcome.left_out.append(found)
        self._observer.warn(f"{found.name}: left out: {found.why}")
        return True

    async def _offer(self, source: SourceEnd, together: Together, page: Sequence[Entry], put: Put[_Wanted]) -> None:
        """Compare a page of a listing, and pass on what is new."""
        self.outcome.found += len(page)
        findings = self._comparer.examine(source, page)
        await confirm(self._target, findings)
        self.outcome.unchanged += findings.unchanged
        for name, error in findings.failures:
            self.outcome.fail(name, error)
        self._stored += [
            _Stored(source, entry, entry, row.token, row.digest, "linked" if row.token else "unchanged")
            for entry, row in findings.stored
        ]
        if len(self._stored) >= SETTLE_COUNT:
            await self._settle()
        if self._plan.dry_run:
            for entry in findings.wanted:
                self.outcome.plan_to_send(entry.name)
            return
        for entry in findings.wanted:
            self._observer.found(entry.size or 0)
        single = self._plan.comparison == "checksum"  # That reads a file before it is sent.
        for group in ([entry] for entry in findings.wanted) if single else together.groups(findings.wanted):
            await put((source, together, group))

    @property
    def _comparer(self) -> Comparer:
        return Comparer(self._journal, self._target, self._plan, self._sources, self._flow.slow)

    async def _work(self, item: _Wanted) -> None:
        source, together, group = item
        for entry in group if len(group) == 1 else await self._send_together(source, together, group):
            self._observer.began(entry)
            try:
                await self._send_patiently(source, entry)
            finally:
                self._observer.left(entry)
            self._note_ended(entry)
        if len(self._stored) >= SETTLE_COUNT:
            await self._settle()

    def _note_ended(self, entry: Entry) -> None:
        self._ended += 1
        self._observer.ended(entry.size or 0)

    async def _send_together(self, source: SourceEnd, together: Together, group: Sequence[Entry]) -> Sequence[Entry]:
        """Send a group of small files; return those that must be sent by themselves."""
        for entry in group:
            self._observer.began(entry)
        try:
            async with self._budget.hold(steady(FILE_MEMORY + together.memory_of(group))):
                sent, others = await together.send(group)
            await self._keep([_Stored(source, each.entry, each.entry, each.token, each.digest) for each in sent])
        except (GridError, OSError, TimeoutError, ValueError, OverflowError) as error:
            if isinstance(error, JournalError):
                raise
            return group
        finally:
            for entry in group:
                self._observer.left(entry)
        for each in sent:
            self.outcome.sent_bytes += each.entry.size or 0
            self._note_ended(each.entry)
        return others

    def _advance(self, count: int) -> None:
        self._moved += count
        self._observer.sent(count)

    async def _send_patiently(self, source: SourceEnd, entry: Entry) -> None:
        """Send a file, retrying if that may help; the last error counts."""
        try:
            await self._patiently(partial(self._try_to_send, source, entry))
        except JournalError:
            raise
        except (GridError, OSError) as error:
            self._note_failure(source, entry, error, UNSENT)

    async def _patiently(self, call: Callable[[], Awaitable[None]]) -> None:
        await patiently(call, self._plan.retries, _pause)

    def _note_failure(self, source: SourceEnd, entry: Entry, error: GridError | OSError, state: str) -> None:
        self._journal.note([Row(source=identity_of(source), entry=entry, state=state, error=str(error)[:500])])
        self.outcome.fail(entry.name, error)

    async def _try_to_send(self, source: SourceEnd, entry: Entry) -> None:
        try:
            async with self._budget.hold(self._needs_of(entry.size or 0)) as memory:
                with cancelled_as_error(entry.name):
                    opened = await source.open(entry)
                    try:
                        await self._send(source, entry, opened, memory)
                    finally:
                        await opened.close()
        except NoFileError as error:
            self._leave_out(LeftOut(entry.name, str(error)))
        except (ValueError, OverflowError) as error:  # Odd facts of one file must not end the others.
            raise EndError(f"{entry.name}: {error}") from None
        except BaseExceptionGroup as errors:
            first = first_error(errors)
            if isinstance(first, ValueError | OverflowError):
                raise EndError(f"{entry.name}: {first}") from None
            raise first from None

    def _needs_of(self, size: int) -> Needs:
        """The memory of a file of this size: what is read ahead, until all of it is read, and what the target holds."""
        ahead, stored = self._flow.memory_of(size), self._target.memory_of(size)
        first, last = self._target.edges_of(size) if isinstance(self._target, OverlappingTarget) else (stored, stored)
        return Needs(whole=FILE_MEMORY + ahead + stored, first=FILE_MEMORY + ahead + first, last=FILE_MEMORY + last)

    async def _send(self, source: SourceEnd, listed: Entry, opened: OpenedSource, memory: Holding) -> None:
        entry = opened.entry
        if entry.size is None:
            raise GridError(f"{entry.name}: its size is not known")
        if self._plan.comparison == "checksum" and (row := await self._comparer.known(source, listed, opened)):
            self._journal.note([row])
            self.outcome.unchanged += 1
            return
        token = await self._target.adopt(opened)
        if token is not None:
            stored = _Stored(source, listed, entry, token, "", "linked")
        else:
            identity = identity_of(source)
            # What was larger when it was interrupted has left something at the target.
            resumes = entry.size >= RESUMED_SIZE or self._journal.has_parts(identity, entry.name)
            parts = self._journal.parts_of(identity, entry) if resumes else None
            scratch = self._journal.scratch_name(identity, entry.name)
            body = FileBody(opened, entry.size, self._flow, parts, scratch, memory)
            token = await self._target.store(entry, body)
            self.outcome.sent_bytes += entry.size - body.resumed
            stored = _Stored(source, listed, entry, token, body.digest.text())
        await self._keep([stored])
        if self._journal.has_parts(identity_of(source), entry.name):
            self._journal.forget_parts(identity_of(source), entry)

    async def _keep(self, sent: Sequence[_Stored]) -> None:
        """Record files whose contents the target has."""
        self._pending += [each for each in sent if each.token == PENDING]
        stored = [each for each in sent if each.token not in ("", PENDING)]
        if stored:
            self._journal.note([self._row(each, STORED) for each in stored])
            self._stored += stored
        await self._note_done([each for each in sent if not each.token])

    async def _settle_in_time(self) -> None:
        while True:
            await asyncio.sleep(SETTLE_S)
            await self._settle()

    async def _settle(self, *, is_last: bool = False) -> None:
        """Move stored files into place, and record that. is_last: include those that wait for more files."""
        async with self._settling.turn:
            pending, self._pending = self._pending, []
            for each in pending:
                is_ready = is_last or self._target.is_stored(each.entry.name)
                (self._stored if is_ready else self._pending).append(each)
            batch, self._stored = self._stored, []
            if not batch:
                return
            tokens = [(each.entry, each.token) for each in batch if each.token]
            failed = await self._settling.settle(tokens)
            for each in batch:
                if (error := failed.get(each.entry.name)) is not None:
                    self.outcome.fail(each.entry.name, error)
            await self._note_done([each for each in batch if each.entry.name not in failed])

    async def _note_done(self, settled: Sequence[_Stored]) -> None:
        """Record settled files, and verify them if wanted. Those that a kill leaves unverified are verified by the next run."""
        if settled:
            verifies, there = self._plan.verify, as_listed(self._target, [each.entry for each in settled])
            self._journal.note([
                self._row(each, UNVERIFIED if verifies and each.digest else DONE, found.facts[1:])
                for each, found in zip(settled, there, strict=True)
            ])  # fmt: skip
            self._journal.listings.note_there(there)
        for each in settled:
            self.outcome.count(each.counts_as)
            if not self._plan.verify or await self._verify(each):
                self._observer.stored(each.entry)

    async def _verify(self, stored: _Stored) -> bool:
        """Whether the file reads back as sent. If not, the next run sends it again; if it cannot be read now, that verifies it."""
        if not stored.digest:
            return True
        try:
            await self._patiently(partial(self._read_back, stored))
        except (GridError, OSError) as error:
            why = GridError(f"{stored.entry.name}: read back at the target: {error}")
            if may_pass(error):
                self.outcome.fail(stored.entry.name, why)
            else:
                self._note_failure(stored.source, stored.listed, why, FAILED)
            return False
        self._journal.note([self._row(stored, DONE)])
        return True

    async def _read_back(self, stored: _Stored) -> None:
        with cancelled_as_error(stored.entry.name):
            opened = await self._target.open(Entry(name=stored.entry.name))
            try:
                await require_contents(opened, stored.entry.size, stored.digest, self._flow)
            finally:
                await opened.close()

    def _row(self, stored: _Stored, state: str, there: tuple[int | None, str] | None = None) -> Row:
        """The row of a file, with the facts of the listing, which the next run compares. there: as in Row."""
        return Row(
            source=identity_of(stored.source), entry=stored.listed, state=state, token=stored.token if state == STORED else "",
            digest=stored.digest, there=there,
        )  # fmt: skip

    async def _remove_unwanted(self) -> None:
        for name in self._journal.listings.unwanted():
            if not self._plan.selection.takes(name):
                continue
            if self._plan.dry_run:
                self.outcome.plan_to_remove(name)
                continue
            try:
                await self._patiently(partial(self._remove, name))
                self.outcome.removed += 1
            except (GridError, OSError) as error:
                self.outcome.fail(name, error)

    async def _remove(self, name: str) -> None:
        with cancelled_as_error(name):
            await self._target.remove(name)


def _pause(attempt: int) -> float:
    return pause_before(attempt, random.random())
