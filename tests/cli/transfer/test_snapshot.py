from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from attrs import define, field

from grid.caps import DirectoryCap
from grid.cli.terminal.progress import TransferDisplay
from grid.cli.transfer.database import LocalDatabase
from grid.cli.transfer.endpoints import RemoteEndpoint
from grid.cli.transfer.local_tree import ScanRules
from grid.cli.transfer.snapshot import Snapshotter, back_up, metadata_of
from grid.cli.transfer.tree import FileFacts, Leaf
from grid.cli.transfer.upload import Uploader
from grid.directory.node import Directory
from grid.errors import AuthorityError, GridError
from tests.support.tree_grid import TreeGrid

DAY = 86400.0
RULES = ScanRules(follow_links=False)


@define
class Backups:
    """Backs one directory up, again and again; warnings: of the last time. uploader: of the files."""

    grid: TreeGrid
    target: Directory
    source: Path
    database: LocalDatabase
    warnings: list[str] = field(factory=list)
    uploader: type[Uploader] = Uploader

    def run(self, target: DirectoryCap | None = None) -> Snapshotter:
        display = TransferDisplay(as_json=False)
        store = self.grid.store
        uploader = self.uploader(store, self.database, display.tally, display.update, follow_links=False)
        self.warnings.clear()
        snapshotter = Snapshotter(
            store, uploader, self.database, display, jobs=3, warn=self.warnings.append, say=lambda line: None,
            remark=lambda line: None,
        )  # fmt: skip
        endpoint = RemoteEndpoint(target or self.target.cap, (), "w:")
        work = back_up(store, snapshotter, str(self.source), endpoint, RULES, lambda *counts: None)
        self.grid.runtime.run(work, limit_s=1e12)
        self.database.flush()
        return snapshotter

    def latest(self) -> DirectoryCap:
        cap = self.grid.runtime.run(self.target.list(), limit_s=1e12)["Latest"].target
        assert isinstance(cap, DirectoryCap)
        return cap


@pytest.fixture
def backups(tmp_path: Path) -> Iterator[Backups]:
    grid = TreeGrid()
    target = grid.make()
    grid.runtime.clock.task_clock.advance(time.time() + 60 - grid.runtime.clock.unix_time())
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "a").write_bytes(b"a" * 1000)
    (source / "sub" / "b").write_bytes(b"b" * 1000)
    database = LocalDatabase(tmp_path / "db", pytest.fail)
    yield Backups(grid, target, source, database)
    database.close()


def counts(snapshotter: Snapshotter) -> tuple[int, ...]:
    made = snapshotter.counts
    return (
        made.files_uploaded,
        made.files_reused,
        made.files_skipped,
        made.directories_created,
        made.directories_reused,
    )


def test_tree_when_unchanged_gives_the_same_snapshot_and_sends_only_links(backups: Backups) -> None:
    assert counts(backups.run()) == (2, 0, 0, 2, 0)
    first = backups.latest()
    backups.grid.sent()
    backups.grid.runtime.clock.task_clock.advance(1)
    assert counts(backups.run()) == (0, 2, 0, 0, 2)
    kinds = backups.grid.sent()
    assert kinds["WriteSlot"] == dict.fromkeys((f"s{index}" for index in range(10)), 2)
    assert not {"Allocate", "WriteShares", "StoreShares"} & set(kinds)
    assert backups.latest() == first


def test_snapshots_when_nothing_is_known_are_the_same_for_the_same_tree(backups: Backups, tmp_path: Path) -> None:
    backups.run()
    first = backups.latest()
    backups.database.close()
    backups.database = LocalDatabase(tmp_path / "other", pytest.fail)
    assert counts(backups.run()) == (2, 0, 0, 2, 0)
    assert backups.latest() == first


def test_old_capabilities_when_their_shares_are_there_are_checked_and_used_again(backups: Backups) -> None:
    backups.run()
    backups.grid.runtime.clock.task_clock.advance(61 * DAY)
    again = backups.run()
    assert counts(again) == (0, 2, 0, 0, 2) and again.counts.directories_checked == 2


def test_file_when_it_vanishes_or_cannot_be_read_is_left_out_and_the_rest_is_stored(
    backups: Backups, monkeypatch: pytest.MonkeyPatch
) -> None:
    (backups.source / "gone").write_bytes(b"gone")
    (backups.source / "denied").write_bytes(b"denied")
    opened = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        if str(path).endswith("gone"):
            os.unlink(path)
        if str(path).endswith("denied"):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", refuse)
    assert counts(backups.run()) == (2, 0, 2, 2, 0)
    monkeypatch.undo()
    assert sorted(backups.warnings) == [
        f"cannot backup file '{backups.source}/gone': {backups.source}/gone: No such file or directory",
        f"permission denied on file '{backups.source}/denied'",
    ]
    stored = backups.grid.store.directory(backups.latest())
    assert list(backups.grid.runtime.run(stored.list(), limit_s=1e12)) == ["a", "sub"]


def test_packs_when_they_fail_leave_no_snapshot_and_the_warning_says_so(backups: Backups) -> None:
    class Unpacked(Uploader):
        async def pack(self, leaves: Iterable[Leaf]) -> None:
            assert len(list(leaves)) == 2
            raise GridError("no packs today")

    backups.uploader = Unpacked
    with pytest.raises(GridError, match="no packs today"):
        backups.run()
    assert backups.warnings == ["no snapshot was stored; the next backup sends only what is still missing"]


def test_target_when_it_can_only_be_read_is_refused_before_anything_is_stored(backups: Backups) -> None:
    backups.grid.sent()
    with pytest.raises(AuthorityError, match="is read-only"):
        backups.run(backups.target.cap.read_cap())
    assert not backups.grid.sent()


def test_metadata_when_made_has_the_order_and_the_times_of_stat(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"")
    os.utime(file, ns=(1, 1_500_000_000_123_456_789))
    status = file.stat()
    made = metadata_of(FileFacts.of(status))
    assert list(made) == ["ctime", "mtime", "st_mode", "st_ino", "st_dev", "st_uid", "st_gid"]
    assert (made["ctime"], made["mtime"]) == (status.st_ctime, status.st_mtime)
