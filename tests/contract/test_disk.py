"""The contract of the Disk port: a directory of the operating system, one in memory, and one that models crashes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from grid.storage.files.disk import Disk, RealDisk
from grid.storage.files.memory_disk import MemoryDisk
from tests.support.crash_disk import CrashDisk
from tests.support.faulty_disk import FaultyDisk

MAKERS: dict[str, Callable[[Path], Disk]] = {
    "real": lambda root: RealDisk(str(root / "disk")),
    "memory": lambda _: MemoryDisk(),
    "crash": lambda _: CrashDisk(),
    "faulty": lambda _: FaultyDisk(MemoryDisk()),
}


@pytest.fixture(params=MAKERS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return MAKERS[request.param](tmp_path)


def store(disk: Disk, path: str, data: bytes) -> None:
    handle = disk.create_file(path)
    disk.write(handle, 0, [data])
    disk.close_file(handle)


def load(disk: Disk, path: str) -> bytes:
    handle = disk.open_file(path)
    try:
        return disk.read(handle, 0, disk.size(handle) + 10)
    finally:
        disk.close_file(handle)


def test_file_when_written_is_read_back(disk: Disk) -> None:
    handle = disk.create_file("file")
    disk.write(handle, 0, [b"abc", memoryview(b"def"), b"", bytearray(b"gh")])
    disk.start_writeback(handle)
    disk.sync_file(handle)
    assert disk.size(handle) == 8
    assert disk.read(handle, 2, 3) == b"cde"
    assert disk.read(handle, 6, 100) == b"gh"
    assert disk.read(handle, 8, 1) == b""
    assert disk.read(handle, 100, 1) == b""
    disk.close_file(handle)
    disk.sync_directory(".")
    assert load(disk, "file") == b"abcdefgh"


def test_write_when_past_the_end_leaves_zeros_between(disk: Disk) -> None:
    handle = disk.create_file("file")
    disk.write(handle, 5, [b"x"])
    assert disk.read(handle, 0, 10) == b"\0\0\0\0\0x"
    disk.write(handle, 2, [b"yy"])
    assert disk.read(handle, 0, 10) == b"\0\0yy\0x"
    disk.close_file(handle)


def test_write_when_of_no_bytes_changes_nothing(disk: Disk) -> None:
    handle = disk.create_file("file")
    disk.write(handle, 5, [b"", b""])
    disk.write(handle, 5, [])
    assert disk.size(handle) == 0
    disk.close_file(handle)


def test_write_when_of_very_many_pieces_is_whole(disk: Disk) -> None:
    pieces = [bytes([number % 251]) * (number % 7) for number in range(3000)]
    handle = disk.create_file("file")
    disk.write(handle, 3, pieces)
    data = b"".join(pieces)
    assert disk.read(handle, 3, len(data) + 1) == data
    disk.close_file(handle)


def test_truncate_when_shorter_and_longer_again_has_zeros(disk: Disk) -> None:
    handle = disk.create_file("file")
    disk.write(handle, 0, [b"0123456789"])
    disk.truncate(handle, 4)
    disk.truncate(handle, 6)
    assert disk.read(handle, 0, 10) == b"0123\0\0"
    disk.close_file(handle)


def test_usage_when_asked_is_size_and_space(disk: Disk) -> None:
    store(disk, "file", b"x" * 5000)
    size, space = disk.usage("file")
    assert size == 5000
    assert space % 512 == 0
    with pytest.raises(FileNotFoundError):
        disk.usage("nothing")


def test_create_when_the_name_is_taken_is_refused(disk: Disk) -> None:
    store(disk, "file", b"kept")
    with pytest.raises(FileExistsError):
        disk.create_file("file")
    assert load(disk, "file") == b"kept"
    with pytest.raises(FileNotFoundError):
        disk.create_file("no/file")


def test_open_when_there_is_no_file_is_refused(disk: Disk) -> None:
    for path in ("nothing", "no/thing"):
        with pytest.raises(FileNotFoundError):
            disk.open_file(path)
        assert not disk.exists(path)


def test_open_when_writable_changes_the_file(disk: Disk) -> None:
    store(disk, "file", b"old!")
    handle = disk.open_file("file", writable=True)
    disk.write(handle, 0, [b"new"])
    disk.close_file(handle)
    assert load(disk, "file") == b"new!"


def test_open_file_when_unlinked_can_still_be_used(disk: Disk) -> None:
    store(disk, "file", b"still here")
    handle = disk.open_file("file", writable=True)
    disk.unlink("file")
    assert disk.read(handle, 0, 5) == b"still"
    disk.close_file(handle)
    assert not disk.exists("file")
    with pytest.raises(FileNotFoundError):
        disk.unlink("file")


def test_rename_when_the_name_is_taken_replaces_the_file(disk: Disk) -> None:
    disk.make_directory("a")
    disk.make_directory("b")
    store(disk, "a/old", b"new data")
    store(disk, "b/new", b"old data")
    disk.rename("a/old", "b/new")
    assert load(disk, "b/new") == b"new data"
    assert disk.list_directory("a") == []
    with pytest.raises(FileNotFoundError):
        disk.rename("a/old", "b/new")
    store(disk, "a/old", b"x")
    with pytest.raises(FileNotFoundError):
        disk.rename("a/old", "c/new")
    assert disk.exists("a/old")


def test_directories_when_made_are_listed(disk: Disk) -> None:
    disk.make_directory("a")
    disk.make_directory("a/b")
    store(disk, "a/file", b"")
    assert sorted(disk.list_directory("a")) == [("b", True), ("file", False)]
    assert disk.list_directory("a/b") == []
    disk.sync_directory("a")
    with pytest.raises(FileExistsError):
        disk.make_directory("a")
    with pytest.raises(FileNotFoundError):
        disk.make_directory("x/y")
    for refused in (disk.list_directory, disk.sync_directory, disk.remove_directory):
        with pytest.raises(FileNotFoundError):
            refused("nothing")


def test_directory_when_not_empty_stays(disk: Disk) -> None:
    disk.make_directory("a")
    store(disk, "a/file", b"")
    with pytest.raises(OSError, match="not empty"):
        disk.remove_directory("a")
    disk.unlink("a/file")
    disk.remove_directory("a")
    assert not disk.exists("a")


def test_free_space_when_asked_is_a_number(disk: Disk) -> None:
    disk.make_directory("shares")
    free = disk.free_space()
    assert free is not None
    assert free > 10**6
    space = disk.space()
    assert space is not None
    assert space.total >= space.free_for_root >= space.free > 10**6


def test_memory_disk_when_full_takes_no_more_and_counts_what_is_freed() -> None:
    disk = MemoryDisk(capacity=100)
    store(disk, "one", bytes(60))
    handle = disk.create_file("two")
    with pytest.raises(OSError) as caught:
        disk.write(handle, 0, [bytes(41)])
    assert caught.value.errno == errno.ENOSPC
    disk.write(handle, 0, [bytes(40)])
    assert disk.free_space() == 0
    disk.truncate(handle, 10)
    assert disk.free_space() == 30
    disk.unlink("one")
    assert disk.free_space() == 90
    disk.close_file(handle)
    with pytest.raises(OSError):
        disk.close_file(handle)
    assert MemoryDisk(capacity=None).free_space() is None
    assert MemoryDisk(capacity=None).space() is None


def test_real_disk_when_a_share_is_a_link_does_not_follow_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"elsewhere")
    disk = RealDisk(str(tmp_path / "disk"))
    os.symlink(tmp_path / "secret", tmp_path / "disk" / "link")
    os.symlink(tmp_path, tmp_path / "disk" / "folder")
    with pytest.raises(OSError):
        disk.open_file("link")
    assert sorted(disk.list_directory(".")) == [("folder", False), ("link", False)]


def test_real_disk_when_it_may_not_be_written_to_has_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(str(tmp_path))
    disk.make_directory("shares")
    assert disk.free_space()
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (str(tmp_path / "shares"), os.W_OK))
    assert disk.free_space() == 0


def test_real_disk_when_the_shares_directory_is_gone_has_no_space(tmp_path: Path) -> None:
    assert RealDisk(str(tmp_path)).free_space() == 0
    assert RealDisk(str(tmp_path)).space() is None


def test_real_disk_when_writes_are_cut_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(str(tmp_path))
    whole_write, whole_read = os.pwritev, os.pread
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, offset: whole_write(fd, [b"".join(parts)[:7]], offset))
    monkeypatch.setattr(os, "pread", lambda fd, length, offset: whole_read(fd, min(length, 5), offset))
    handle = disk.create_file("file")
    disk.write(handle, 0, [b"0123456789", b"abc", b"def", b"", b"ghijklmnopqrstuvwxyz"])
    assert disk.read(handle, 0, 100) == b"0123456789abcdefghijklmnopqrstuvwxyz"
    disk.close_file(handle)
