from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from grid.cli.terminal.progress import Tally
from grid.cli.transfer.database import LocalDatabase
from grid.cli.transfer.upload import Uploaded, Uploader
from grid.node.files import FileChangedError
from grid.ports import Buffer
from tests.support.tree_grid import TreeGrid

DAY = 86400.0
CONTENTS = b"contents" * 100


@pytest.fixture
def grid() -> TreeGrid:
    """A grid whose clock shows our time, so that files here are older than now."""
    made = TreeGrid()
    made.runtime.clock.task_clock.advance(time.time() + 60 - made.runtime.clock.unix_time())
    return made


@pytest.fixture
def database(tmp_path: Path) -> Iterator[LocalDatabase]:
    opened = LocalDatabase(tmp_path / "db", pytest.fail)
    yield opened
    opened.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(CONTENTS)
    return path


def upload(
    grid: TreeGrid, database: LocalDatabase, path: Path, *, trust_times: bool = True
) -> tuple[Uploaded, Uploader]:
    uploader = Uploader(grid.store, database, Tally(0.0), lambda: None, follow_links=False, trust_times=trust_times)
    done = grid.runtime.run(uploader.upload(str(path)), limit_s=1e12)
    database.flush()
    return done, uploader


def test_file_when_uploaded_twice_is_read_once(grid: TreeGrid, database: LocalDatabase, file: Path) -> None:
    first, _ = upload(grid, database, file)
    grid.sent()
    second, uploader = upload(grid, database, file)
    assert not first.reused and second.reused and first.cap == second.cap
    assert not grid.sent() and not uploader.checked
    third, _ = upload(grid, database, file, trust_times=False)
    assert not third.reused and third.cap == first.cap


def test_file_when_only_its_inside_changed_is_uploaded_again(
    grid: TreeGrid, database: LocalDatabase, file: Path
) -> None:
    first, _ = upload(grid, database, file)
    status = file.stat()
    file.write_bytes(CONTENTS[::-1])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    second, _ = upload(grid, database, file)
    assert not second.reused and second.cap != first.cap


def test_capability_when_old_is_checked_and_uploaded_again_only_if_shares_are_gone(
    grid: TreeGrid, database: LocalDatabase, file: Path
) -> None:
    upload(grid, database, file)
    grid.runtime.clock.task_clock.advance(61 * DAY)
    healthy, uploader = upload(grid, database, file)
    assert healthy.reused and uploader.checked == 1
    again, uploader = upload(grid, database, file)
    assert again.reused and not uploader.checked
    grid.runtime.clock.task_clock.advance(61 * DAY)
    other = TreeGrid()
    other.runtime.clock.task_clock.advance(grid.runtime.clock.now())
    lost, uploader = upload(other, database, file)
    assert not lost.reused and lost.cap == healthy.cap and uploader.checked == 1


def test_capability_when_of_another_size_is_not_believed(grid: TreeGrid, database: LocalDatabase, file: Path) -> None:
    from grid.cli.transfer.tree import FileFacts

    facts = FileFacts.of(file.stat())
    database.record_file(str(file), facts, "URI:LIT:onwwc3dm", read_at_ns=2**62, now=grid.runtime.clock.unix_time())
    database.flush()
    assert not upload(grid, database, file)[0].reused


class Changing:
    """A file that is written to whenever it is read, a given number of times."""

    def __init__(self, path: Path, times: int) -> None:
        self.path = path
        self.times = times

    def note_read(self) -> None:
        if self.times:
            self.times -= 1
            with self.path.open("ab") as file:
                file.write(b"more")


@pytest.mark.parametrize(("times", "succeeds"), [(1, True), (100, False)])
def test_file_when_it_changes_while_it_is_read_is_read_again_but_not_forever(
    grid: TreeGrid, database: LocalDatabase, file: Path, monkeypatch: pytest.MonkeyPatch, times: int, succeeds: bool
) -> None:
    from grid.cli.arguments.sources import FileSource

    changing = Changing(file, times)
    read_at = FileSource.read_at

    async def read_and_change(source: FileSource, offset: int, length: int) -> Buffer:
        data = await read_at(source, offset, length)
        changing.note_read()
        return data

    monkeypatch.setattr(FileSource, "read_at", read_and_change)
    if succeeds:
        done, _ = upload(grid, database, file)
        assert done.cap.size == file.stat().st_size == len(CONTENTS) + 4
    else:
        with pytest.raises(FileChangedError, match="changed each time"):
            upload(grid, database, file)


def test_link_when_links_are_not_followed_is_refused_even_if_it_was_a_file_before(
    grid: TreeGrid, database: LocalDatabase, file: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    with pytest.raises(OSError, match="link"):
        upload(grid, database, link)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="no longer a regular file"):
        upload(grid, database, tmp_path / "fifo")


@pytest.mark.parametrize("convergence", [None, b"secret"])
def test_file_when_its_key_is_random_is_read_only_once(
    grid: TreeGrid, database: LocalDatabase, tmp_path: Path, convergence: bytes | None
) -> None:
    path, size = tmp_path / "large", 12 * 2**20
    path.write_bytes(bytes(size))
    store = evolve(grid.store, grid=evolve(grid.store.grid, convergence=convergence))
    tally = Tally(0.0)
    read = [0.0]

    def changed() -> None:
        read.append(tally.byte_count)

    uploader = Uploader(store, database, tally, changed, follow_links=False)
    grid.runtime.run(uploader.upload(str(path)), limit_s=1e12)

    steps = [after - before for before, after in itertools.pairwise(read)]
    assert all(steps) and sum(steps) == tally.moved_bytes == size
