"""Incomplete files on a local disk: who writes to them, who may read them, and who removes them."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from grid.ports import Buffer
from grid.transfer.ends import EndError, Entry, PassingError
from grid.transfer.local_end import LocalEnd
from grid.transfer.local_groups import write_whole
from grid.transfer.local_partials import KEPT_S, PARTIAL, Leftovers, begin, refuse_path
from tests.transfer.end_contract import BytesBody
from tests.transfer.test_engine import contents

MIB = 2**20


class _HalfBody(BytesBody):
    """Two ranges, the second of which fails once the first is being written."""

    def __init__(self, data: bytes, begun: threading.Event) -> None:
        half = len(data) // 2
        super().__init__(data, ranges=[(0, half), (half, half)])
        self._begun = begun

    async def fetch(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        if offset:
            await asyncio.to_thread(self._begun.wait)
            raise PassingError("the connection was lost")
        async for piece in super().fetch(offset, length):
            yield piece


def test_file_when_one_of_its_ranges_fails_is_closed_after_the_writes_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, closed = threading.Event(), threading.Event()
    written_late: list[bool] = []
    write, close = os.pwrite, os.close

    def slow_write(descriptor: int, data: Buffer, offset: int) -> int:
        begun.set()
        written_late.append(closed.wait(0.2))
        return write(descriptor, data, offset)

    def noted_close(descriptor: int) -> None:
        close(descriptor)
        closed.set()

    monkeypatch.setattr("grid.transfer.local_partials.os.pwrite", slow_write)
    monkeypatch.setattr("grid.transfer.local_end.os.close", noted_close)
    body = _HalfBody(os.urandom(MIB), begun)
    with pytest.raises(PassingError):
        asyncio.run(LocalEnd(str(tmp_path)).store(Entry(name="file", size=body.size), body))

    assert written_late == [False]
    assert contents(tmp_path) == {}


SMALL = Entry(name="file", size=4)


def test_file_when_moved_into_place_is_still_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the listing of another transfer could remove it just before."""
    replace = os.replace

    def checked(path: str, place: str) -> None:
        with open(path, "rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        replace(path, place)

    monkeypatch.setattr("grid.transfer.local_partials.os.replace", checked)
    write_whole(str(tmp_path), "0" * 24, SMALL, b"text")
    asyncio.run(LocalEnd(str(tmp_path)).store(Entry(name="large", size=MIB), BytesBody(bytes(MIB))))
    assert contents(tmp_path) == {"file": b"text", "large": bytes(MIB)}


@pytest.mark.parametrize("resumes", [False, True])
def test_file_when_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resumes: bool
) -> None:
    path = tmp_path / f"{PARTIAL}{'0' * 24}"
    if resumes:
        path.write_bytes(b"of an earlier attempt")
    lock, removed = fcntl.flock, list[bool]()

    def late(descriptor: int, kind: int) -> None:
        if not removed:
            path.unlink()
            removed.append(True)
        lock(descriptor, kind)

    monkeypatch.setattr("grid.transfer.local_partials.fcntl.flock", late)
    partial = begin(str(tmp_path), "file", "0" * 24, resumes=resumes)
    partial.place_now(SMALL, 4)
    os.close(partial.descriptor)
    assert partial.is_new
    assert contents(tmp_path) == {"file": bytes(4)}


def test_leftovers_are_files_of_this_journal_and_old_ones_of_others(tmp_path: Path) -> None:
    now = time.time()
    names = {
        PARTIAL + "aaaaaaaa" + "0" * 24: now,  # To be resumed.
        PARTIAL + "aaaaaaaa" + "1" * 24: now,
        PARTIAL + "bbbbbbbb" + "0" * 24: now,
        PARTIAL + "bbbbbbbb" + "1" * 24: now - KEPT_S - 60,
        PARTIAL + "notes": 0,
    }
    for name, moment in names.items():
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (moment, moment))
    leftovers = Leftovers({"aaaaaaaa" + "0" * 24}, "aaaaaaaa")
    removed = [leftovers.remove(str(tmp_path / name)) for name in names]
    assert removed == [False, True, False, True, False]
    assert set(contents(tmp_path)) == {name for name, gone in zip(names, removed, strict=True) if not gone}


def test_name_of_incomplete_files_is_refused_at_any_level() -> None:
    assert refuse_path(f"{PARTIAL}x") and refuse_path(f"a/{PARTIAL}x/b")
    assert refuse_path(f"a{PARTIAL}x") is None and refuse_path("a/b") is None
    assert LocalEnd("/").refuse(f"{PARTIAL}x")


@pytest.mark.parametrize("resumes", [False, True])
def test_file_when_it_arrives_is_private_until_it_is_complete(tmp_path: Path, resumes: bool) -> None:
    path = tmp_path / f"{PARTIAL}{'0' * 24}"
    if resumes:
        path.touch(0o644)
    for mode, final in ((0o640, 0o640), (None, 0o666 & ~_mask(tmp_path))):
        partial = begin(str(tmp_path), "file", "0" * 24, resumes=resumes)
        assert path.stat().st_mode & 0o777 == 0o600
        partial.place_now(Entry(name="file", size=4, mode=mode), 4)
        os.close(partial.descriptor)
        assert (tmp_path / "file").stat().st_mode & 0o777 == final


def _mask(folder: Path) -> int:
    (folder / "new").touch(0o666)
    return 0o666 & ~((folder / "new").stat().st_mode & 0o777)


def test_file_when_its_path_leads_through_a_symbolic_link_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "target" / "deep").mkdir(parents=True)
    (tmp_path / "target" / "deep" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "alias").symlink_to(tmp_path / "target")
    end = LocalEnd(str(tmp_path / "alias"), is_target=True)
    for size in (10, MIB):
        with pytest.raises(EndError, match="symbolic link"):
            asyncio.run(end.store(Entry(name="deep/link/new/x", size=size), BytesBody(bytes(size))))
    files = [(Entry(name="deep/link/x", size=1), b"x"), (Entry(name="deep/x", size=1), b"x")]
    assert asyncio.run(end.store_together(files, lambda name: "0" * 24)) == [None, ""]
    assert contents(tmp_path / "elsewhere") == {} and contents(tmp_path / "target") == {"deep/x": b"x"}
