"""Small files that the kernel has cached are read at once; no other file makes the event loop wait for a disk."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from grid.ports import Buffer
from grid.transfer import local_end, local_files
from grid.transfer.ends import Entry
from grid.transfer.local_end import MOST_UNCACHED, LocalEnd
from grid.transfer.local_files import read_all, read_cached

COUNT = 20

Preadv = Callable[[int, Sequence[bytearray], int, int], int]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number:02}").write_bytes(b"%d" % number * 1000)
    return folder


def entries_of(source: Path) -> list[Entry]:
    async def listed() -> list[Entry]:
        return [entry async for entry in LocalEnd(str(source)).entries() if isinstance(entry, Entry)]

    return asyncio.run(listed())


def as_if_cached(*, names: set[str] | None = None, most: int | None = None) -> Preadv:
    """Stands for preadv of a kernel that has only these files cached. most: bytes of each."""

    def preadv(descriptor: int, buffers: Sequence[bytearray], offset: int, flags: int) -> int:
        assert flags == local_files._CACHED_ONLY
        name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
        if names is not None and name not in names:
            raise BlockingIOError(errno.EAGAIN, "not cached")
        (buffer,) = buffers
        data = os.pread(descriptor, len(buffer) if most is None else most, offset)
        buffer[: len(data)] = data
        return len(data)

    return preadv


class _Read:
    """What is read on threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: list[Sequence[Entry]] = []

        def counted(root: str, entries: Sequence[Entry]) -> list[bytes | None]:
            self.groups.append(entries)
            return read_all(root, entries)

        monkeypatch.setattr(local_end, "read_all", counted)


def read(end: LocalEnd, entries: Sequence[Entry]) -> Sequence[Buffer | None]:
    return asyncio.run(end.read_together(entries))


def test_cached_files_are_read_without_a_thread(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries, on_threads = entries_of(source), _Read(monkeypatch)
    monkeypatch.setattr(os, "preadv", as_if_cached())
    assert read(LocalEnd(str(source)), entries) == read_all(str(source), entries)
    assert on_threads.groups == []


@pytest.mark.parametrize("cached", [0, 1, 7, COUNT - 1])
def test_thread_waits_for_one_file_while_the_kernel_fetches_the_others(
    source: Path, monkeypatch: pytest.MonkeyPatch, cached: int
) -> None:
    entries, on_threads = entries_of(source), _Read(monkeypatch)
    names, fetched = {entry.name for entry in entries[:cached]}, list[str]()

    def fetch(descriptor: int, offset: int, length: int, advice: int) -> None:
        assert (offset, length, advice) == (0, 0, os.POSIX_FADV_WILLNEED)
        fetched.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        names.add(fetched[-1])

    monkeypatch.setattr(os, "preadv", as_if_cached(names=names))
    monkeypatch.setattr(os, "posix_fadvise", fetch)
    assert read(LocalEnd(str(source)), entries) == read_all(str(source), entries)
    assert fetched == [entry.name for entry in entries[cached:]]
    assert on_threads.groups == [[entries[cached]]]


def test_files_that_cannot_be_opened_or_fetched_ahead_are_read_like_others(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = entries_of(source)

    def refuse(*arguments: object) -> None:
        raise OSError(errno.EINVAL, "not this file")

    (source / "03").unlink()
    monkeypatch.setattr(os, "preadv", as_if_cached(names=set()))
    monkeypatch.setattr(os, "posix_fadvise", refuse)
    assert read(LocalEnd(str(source)), entries) == read_all(str(source), entries)


def test_file_of_which_a_part_is_cached_is_read_on_a_thread(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries, on_threads = entries_of(source), _Read(monkeypatch)
    monkeypatch.setattr(os, "preadv", as_if_cached(most=999))
    assert read(LocalEnd(str(source)), entries) == read_all(str(source), entries)
    assert [entry for group in on_threads.groups for entry in group] == entries


def test_files_on_a_cold_disk_are_looked_for_in_the_cache_a_few_times(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries, end, asked = entries_of(source), LocalEnd(str(source)), list[Sequence[Entry]]()

    def nothing(root: str, entries: Sequence[Entry]) -> list[bytes | None]:
        asked.append(entries)
        return []

    on_threads = _Read(monkeypatch)
    monkeypatch.setattr(local_end, "read_cached", nothing)
    for _ in range(3):
        assert read(end, entries) == read_all(str(source), entries)
    singly = [group for group in on_threads.groups if len(group) == 1]
    assert len(singly) == MOST_UNCACHED < len(asked) < MOST_UNCACHED + 3
    assert on_threads.groups[-1] == entries


def test_kernel_that_cannot_tell_what_it_has_cached_has_nothing_cached(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = entries_of(source)

    def refuse(*arguments: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not on this file system")

    monkeypatch.setattr(os, "preadv", refuse)
    assert read_cached(str(source), entries) == []
    monkeypatch.setattr(local_files, "_CACHED_ONLY", None)
    assert read_cached(str(source), entries) == []


def test_files_that_are_not_as_listed_are_told_from_the_others_as_on_a_thread(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = entries_of(source)
    monkeypatch.setattr(os, "preadv", as_if_cached())
    (source / "03").write_bytes(b"longer" * 1000)
    (source / "04").write_bytes(b"short")
    (source / "05").unlink()
    (source / "06").unlink()
    (source / "06").symlink_to("07")
    (source / "08").unlink()
    os.mkfifo(source / "08")
    os.utime(source / "09", ns=(1, 1))
    entries[10] = evolve(entries[10], mode=0)
    found = read_cached(str(source), entries)
    assert [number for number, data in enumerate(found) if data is None] == [3, 4, 5, 6, 8, 9, 10]
    assert found == read_all(str(source), entries)


def test_what_the_kernel_dropped_from_its_cache_is_not_read_at_once(source: Path) -> None:
    entry = entries_of(source)[-1]
    with (source / entry.name).open("rb") as file:
        tells = read_cached(str(source), [entry]) != []
        os.fsync(file)
        deadline = time.monotonic() + 30
        found: list[bytes | None] = [None]
        while found and time.monotonic() < deadline:
            # Advice only: another processor may have the page in hand. A read that finds nothing may have the kernel fetch it.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            found = read_cached(str(source), [entry])
        assert found == []
        data = file.read()
    assert read_cached(str(source), [entry]) == ([data] if tells else []), "not every file system tells"
