"""A watch from pass to pass: what it stores, what ends it, and what it verifies."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from grid.errors import GridError
from grid.transfer.ends import Entry, LeftOut, NotThereError, PassingError
from grid.transfer.grid_session import Doubt
from grid.transfer.journal import FAILED, Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import Observer, Outcome, Plan
from grid.transfer.records import JournalError, JournalFullError
from grid.transfer.status import read_status
from grid.transfer.watching import Check, FolderWatch, Settling, Watched
from tests.support.depth import spread
from tests.transfer.test_engine import contents


class _Target(LocalEnd):
    """A directory. listings: how often it was listed; errors: with which its next listings fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), is_target=True)
        self.listings = 0
        self.errors: list[GridError] = []

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        self.listings += 1
        if self.errors:
            raise self.errors.pop(0)
        async for found in super().entries():
            yield found


class Rig:
    """A folder, a target beside it, and a clock that only `sleep` moves."""

    def __init__(self, root: Path, *, check: Check | None = None, step: Callable[[], None] = lambda: None) -> None:
        self.root, self.folder, self.target = root, root / "folder", _Target(root / "target")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.later_s = 0.0
        self.journal = Journal(root / "journal.sqlite", step)
        self.warnings: list[str] = []
        self.stored: list[str] = []
        self.settling = Settling(10.0, self.now_ns, lambda: self.now_ns() / 1e9)
        watched = Watched(
            folder=str(self.folder),
            target=self.target,
            journal=self.journal,
            plan=Plan(mode="stream", retries=0),
            settling=self.settling,
            check=check,
        )
        observer = Observer(
            warn=self.warnings.append,
            stored=lambda entry: self.stored.append(entry.name),
            began=lambda entry: self.journal.note_under_way(entry, 1.0),
            left=self.journal.note_left,
        )
        self.watch = FolderWatch(watched, observer)

    def now_ns(self) -> int:
        """Some time after the last change of a file that is there: files that were just made have the real time."""
        changes = [path.lstat().st_ctime_ns for path in self.folder.rglob("*")] if self.folder.exists() else []
        return max([0, *changes]) + round(self.later_s * 1e9)

    def write(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)

    def once(self, later_s: float = 100.0) -> Outcome:
        """One pass, some time after the last write."""
        self.later_s = later_s
        return asyncio.run(self.watch.once())

    def run(self, passes: Sequence[Callable[[], None]]) -> list[Outcome]:
        """As many passes, with something done before each but the first; the outcomes of those that had one."""
        left, outcomes = list(passes), list[Outcome]()

        async def sleep(seconds: float) -> None:
            if not left:
                raise asyncio.CancelledError
            left.pop(0)()

        self.later_s = 100.0
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(self.watch.run(5.0, outcomes.append, sleep))
        return outcomes


def test_file_when_not_quiet_yet_is_left_for_a_later_pass(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.write("early", b"complete")
    first = rig.once(9.0)
    assert (first.copied, list(first.left_out), list(first.failures), rig.warnings) == (0, [], [], [])
    assert rig.settling.waiting_count == 1
    second = rig.once(10.0)
    assert second.copied == 1
    assert contents(tmp_path / "target") == {"early": b"complete"}
    assert rig.once().unchanged == 1


def test_watch_when_files_come_and_change_stores_each_once_and_lists_the_target_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.write("a", b"first")
    outcomes = rig.run(
        [lambda: rig.write("b", b"second"), lambda: rig.write("a", b"changed"), (rig.folder / "b").unlink]
    )
    assert [each.copied for each in outcomes] == [1, 1, 1, 0]
    assert rig.stored == ["a", "b", "a"]
    assert contents(tmp_path / "target") == {"a": b"changed", "b": b"second"}
    assert rig.target.listings == 1


def test_watch_when_the_target_fails_for_a_while_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.write("a", b"first")
    rig.target.errors = [PassingError("the server is away"), PassingError("the server is away")]
    outcomes = rig.run([lambda: None, lambda: None])
    assert [each.copied for each in outcomes] == [1]
    assert len(rig.warnings) == 2 and "away" in rig.warnings[0]


def test_watch_when_it_cannot_begin_ends_with_the_error(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.folder.rename(tmp_path / "gone")
    with pytest.raises(NotThereError):
        asyncio.run(rig.watch.run(5.0, lambda outcome: None))


def test_watch_when_the_folder_is_away_for_a_while_goes_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.write("a", b"first")
    away = tmp_path / "away"
    outcomes = rig.run([lambda: _move(rig.folder, away), lambda: _move(away, rig.folder)])
    assert [each.copied + each.unchanged for each in outcomes] == [1, 1]
    assert len(rig.warnings) == 1


def _move(old: Path, new: Path) -> None:
    old.rename(new)


def test_watch_when_the_disk_of_its_journal_is_full_for_a_while_loses_nothing(tmp_path: Path) -> None:
    is_full = [False]

    def step() -> None:
        if is_full[0]:
            raise JournalError("the journal of the transfer cannot be written: the disk is full")

    rig = Rig(tmp_path, step=step)

    def fill() -> None:
        is_full[0] = True
        rig.write("b", b"second")

    def empty() -> None:
        is_full[0] = False

    outcomes = rig.run([fill, lambda: None, empty])

    assert contents(tmp_path / "target") == {"b": b"second"}
    assert len(outcomes) == 2 and len(rig.warnings) == 2


def test_watch_when_the_journal_is_full_from_any_write_on_stores_everything_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, write = [0], Journal._many

    def write_within(self: Journal, statement: str, values: Sequence[tuple[object, ...]]) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise JournalFullError("the journal of the transfer cannot be used: its disk is full; make room there")
        write(self, statement, values)

    monkeypatch.setattr(Journal, "_many", write_within)
    for count in spread(range(2, 60), 6):
        room[0] = 1000
        rig = Rig(tmp_path / str(count))
        rig.write("before", b"before")

        def fill(rig: Rig = rig, count: int = count) -> None:
            for number in range(6):
                rig.write(f"after-{number}", b"%d" % number)
            room[0] = count

        def empty() -> None:
            room[0] = 1000

        rig.run([fill, empty, lambda: None])
        assert contents(rig.root / "target") == contents(rig.folder)
        assert max(Counter(rig.stored).values()) == 1
        assert not rig.watch.missing
        assert all("make room" in warning for warning in rig.warnings)
        rig.journal.close()


def test_watch_when_it_cannot_note_what_it_stores_says_that_something_is_missing(tmp_path: Path) -> None:
    is_full = [False]

    def step() -> None:
        if is_full[0]:
            raise JournalFullError("its disk is full; make room there")

    rig = Rig(tmp_path, step=step)
    rig.run([])
    assert not rig.watch.missing
    rig.write("a", b"first")
    is_full[0] = True
    rig.run([])
    assert "make room" in rig.watch.missing


def test_watch_when_a_library_cancels_what_a_pass_waits_for_goes_on(tmp_path: Path) -> None:
    fails = [True]

    async def check(names: Sequence[str]) -> Mapping[str, Doubt]:
        if fails.pop() if fails else False:
            raise asyncio.CancelledError
        return {}

    rig = Rig(tmp_path, check=check)
    rig.write("a", b"first")
    outcomes = rig.run([lambda: None])
    assert [each.copied for each in outcomes] == [0]
    assert len(rig.warnings) == 1 and "dropped" in rig.warnings[0]
    assert contents(tmp_path / "target") == {"a": b"first"}


def checking(answers: list[Mapping[str, Doubt]], asked: list[list[str]]) -> Check:
    """A check that gives these answers, and records its requests."""

    async def check(names: Sequence[str]) -> Mapping[str, Doubt]:
        asked.append(sorted(names))
        return answers.pop(0) if answers else {}

    return check


def test_file_when_found_not_to_be_whole_is_stored_again_at_once(tmp_path: Path) -> None:
    asked: list[list[str]] = []
    rig = Rig(tmp_path, check=checking([{"b": Doubt("2 of 10 shares", True)}], asked))
    for name in "abc":
        rig.write(name, name.encode())
    outcome = rig.once()
    assert (outcome.copied, list(outcome.failures)) == (4, [])
    assert asked == [["a", "b", "c"], ["b"]]
    assert rig.stored.count("b") == 2


def test_file_when_it_stays_broken_fails_and_is_stored_again_by_the_next_pass(tmp_path: Path) -> None:
    doubt = {"b": Doubt("2 of 10 shares", True)}
    rig = Rig(tmp_path, check=checking([doubt, doubt], []))
    rig.write("b", b"x")
    outcome = rig.once()
    assert [name for name, _ in outcome.failures] == ["b"]
    assert "2 of 10" in str(outcome.failures[0][1])
    assert rig.journal.count(FAILED) == 1
    assert not rig.once().failures
    assert rig.journal.count(FAILED) == 0


def test_file_when_servers_do_not_answer_is_not_stored_again_but_checked_again(tmp_path: Path) -> None:
    doubt, asked = {"b": Doubt("no answer", False)}, list[list[str]]()
    rig = Rig(tmp_path, check=checking([doubt, doubt], asked))
    rig.write("b", b"x")
    assert len(rig.once().failures) == 1
    assert rig.stored == ["b"]
    assert not rig.once().failures
    assert asked == [["b"], ["b"], ["b"]]


def test_watch_when_started_again_checks_everything_once(tmp_path: Path) -> None:
    first = Rig(tmp_path)
    for name in "abc":
        first.write(name, b"x")
    first.once()
    first.journal.close()
    asked: list[list[str]] = []
    second = Rig(tmp_path, check=checking([], asked))
    second.once()
    second.write("d", b"y")
    second.once()
    assert asked == [["a", "b", "c"], ["d"]]


def test_warning_when_it_is_the_same_in_every_pass_is_given_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    (rig.folder / "link").symlink_to("nowhere")
    rig.once()
    rig.once()
    assert len(rig.warnings) == 1 and "symbolic link" in rig.warnings[0]


def test_status_when_asked_for_says_what_is_under_way_and_what_failed(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    path = tmp_path / "journal.sqlite"
    seen = []

    def look(count: int) -> None:
        seen.append(read_status(path))

    rig.watch._observer = Observer(
        sent=look, began=lambda entry: rig.journal.note_under_way(entry, 1.0), left=rig.journal.note_left
    )
    rig.write("a", b"contents")
    rig.once()
    assert seen[0].is_running and [(each.name, each.size) for each in seen[0].under_way] == [("a", 8)]
    after = read_status(path)
    assert (after.done, after.failed, after.under_way) == (1, 0, [])
    rig.journal.note_under_way(Entry(name="killed", size=1), 1.0)
    rig.journal.close()
    ended = read_status(path)
    assert (ended.is_running, ended.under_way, ended.done) == (False, [], 1)
    os.unlink(path)
    with pytest.raises(GridError, match="nothing has been stored"):
        read_status(path)
    path.touch()
    with pytest.raises(GridError, match="nothing has been stored"):
        read_status(path)
