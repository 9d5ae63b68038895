"""Full disks, files that change while they are read, and special files."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from grid.transfer import local_end
from grid.transfer.choices import Mode
from grid.transfer.ends import EndError, Entry, LeftOut
from grid.transfer.local_end import LocalEnd
from grid.transfer.selection import parse_selection
from tests.transfer.end_contract import BytesBody
from tests.transfer.test_engine import FAST, contents, send

SIZE = 5 * 2**20 + 3


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory with one file of several chunks."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "large").write_bytes(os.urandom(SIZE))
    return folder


class _Writes:
    """`os.pwrite`, which something happens before."""

    def __init__(self, before: object, at: int) -> None:
        self._before, self._left, self._write = before, at, os.pwrite

    def __call__(self, descriptor: int, data: bytes, offset: int) -> int:
        self._left -= 1
        if self._left == 0:
            assert callable(self._before)
            self._before()
        return self._write(descriptor, data, offset)


def _no_space() -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("at", [1, 3, 6])
def test_target_when_its_disk_fills_keeps_the_older_file_and_goes_on_later(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "large").write_bytes(b"older")
    with monkeypatch.context() as patch:
        patch.setattr("grid.transfer.local_end.os.pwrite", _Writes(_no_space, at))
        outcome = send(source, target, tmp_path)
    assert ["No space" in str(error) for _, error in outcome.failures] == [True]
    assert contents(target) == {"large": b"older"}

    assert send(source, target, tmp_path).copied == 1

    assert contents(target) == contents(source)


def test_target_on_a_disk_that_is_full_has_whole_files_only_and_all_of_them_once_there_is_room(
    tmp_path: Path, small_disk: Path
) -> None:
    source, filler = tmp_path / "source", small_disk / "filler"
    source.mkdir()
    for number, size in enumerate((10, 90_000, 120_000, 150_000, 300_000)):
        (source / f"file-{number}").write_bytes(os.urandom(size))
    filler.write_bytes(bytes(700_000))

    outcome = send(source, small_disk / "target", tmp_path)

    assert outcome.failures and all("No space" in str(error) for _, error in outcome.failures)
    arrived = contents(small_disk / "target")
    assert arrived == {name: data for name, data in contents(source).items() if name in arrived}
    assert len(arrived) + len(outcome.failures) == 5
    filler.unlink()
    assert send(source, small_disk / "target", tmp_path).copied == len(outcome.failures)
    assert contents(small_disk / "target") == contents(source)


@pytest.mark.parametrize("failing", ["fsync", "replace", "ftruncate"])
@pytest.mark.parametrize("size", [100, SIZE])
def test_target_when_a_file_cannot_be_finished_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, failing: str
) -> None:
    (source / "large").write_bytes(os.urandom(size))
    with monkeypatch.context() as patch:
        patch.setattr(f"grid.transfer.local_end.os.{failing}", lambda *_: _no_space())
        outcome = send(source, tmp_path / "target", tmp_path)
    assert len(outcome.failures) == 1
    assert not contents(tmp_path / "target")


@pytest.mark.parametrize("mode", ["stream", "chunked", "chunked-stream"])
@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite"])
def test_file_when_it_changes_while_it_is_read_is_sent_as_it_is_in_the_end(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, change: str
) -> None:
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    path = source / "large"
    final = {"grow": path.read_bytes() + b"more", "shrink": b"short", "rewrite": os.urandom(SIZE)}[change]

    def alter() -> None:
        with path.open("r+b", buffering=0) as file:  # Never empty: other threads may read it meanwhile.
            file.write(final)
            file.truncate()
        os.utime(path, ns=(10**18, 10**18))

    with monkeypatch.context() as patch:
        patch.setattr("grid.transfer.local_end.os.pwrite", _Writes(alter, 3))
        first = send(source, tmp_path / "target", tmp_path, evolve(FAST, mode=mode))
    assert not first.failures
    assert contents(tmp_path / "target") == {"large": final}


def test_file_when_it_never_stops_changing_never_appears(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    write, times = os.pwrite, iter(range(1, 10**6))

    def restless(descriptor: int, data: bytes, offset: int) -> int:
        os.utime(source / "large", ns=(0, next(times)))
        return write(descriptor, data, offset)

    monkeypatch.setattr("grid.transfer.local_end.os.pwrite", restless)
    outcome = send(source, tmp_path / "target", tmp_path)
    assert "changed while it was read" in str(outcome.failures[0][1])
    assert not contents(tmp_path / "target")


def test_sockets_and_devices_are_left_out_and_say_why(tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))

    async def case() -> list[Entry | LeftOut]:
        inside = [each async for each in LocalEnd(str(folder)).entries()]
        alone = [each async for each in LocalEnd("/dev/null").entries()]
        with pytest.raises(EndError, match="not a regular file"):
            await LocalEnd("/dev").open(Entry(name="null"))
        return inside + alone

    assert asyncio.run(case()) == [LeftOut("socket", "not a regular file"), LeftOut("null", "not a regular file")]


def test_sparse_file_when_copied_stays_sparse(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with (tmp_path / "source" / "sparse").open("wb") as file:
        file.truncate(30 * 2**20)
        file.seek(17 * 2**20)
        file.write(b"island")
    send(tmp_path / "source", tmp_path / "target", tmp_path)
    assert contents(tmp_path / "target") == contents(tmp_path / "source")
    assert (tmp_path / "target" / "sparse").stat().st_blocks * 512 <= 2 * 2**20


def test_name_when_a_file_of_the_target_is_in_its_way_fails_by_itself(tmp_path: Path) -> None:
    (tmp_path / "source" / "taken").mkdir(parents=True)
    (tmp_path / "source" / "taken" / "below").write_bytes(b"x")
    (tmp_path / "source" / "folder").write_bytes(b"y")
    (tmp_path / "source" / "good").write_bytes(b"z")
    (tmp_path / "target" / "folder").mkdir(parents=True)
    (tmp_path / "target" / "taken").write_bytes(b"file")

    outcome = send(tmp_path / "source", tmp_path / "target", tmp_path)

    assert {name for name, _ in outcome.failures} == {"taken/below", "folder"}
    assert contents(tmp_path / "target") == {"taken": b"file", "good": b"z"}


def test_small_file_when_sent_by_itself_costs_one_call_on_a_thread_at_either_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 20
    (tmp_path / "source").mkdir()
    for number in range(count):
        (tmp_path / "source" / str(number)).write_bytes(os.urandom(1024 * number))
    calls = 0
    to_thread = asyncio.to_thread

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return to_thread(*arguments, **options)

    monkeypatch.setattr("grid.transfer.local_end.asyncio.to_thread", counted)
    monkeypatch.setattr(LocalEnd, "stores_together", lambda end, size: False)
    send(tmp_path / "source", tmp_path / "target", tmp_path)
    assert contents(tmp_path / "target") == contents(tmp_path / "source")
    listings = 5
    assert calls <= 2 * count + listings


def test_new_file_has_the_mode_that_the_process_gives_and_changes_none_of_other_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr("os.umask", lambda mask: pytest.fail("two threads that do this leave the mask at zero"))
            for size in (10, SIZE):
                asyncio.run(_store(LocalEnd(str(tmp_path)), Entry(name=f"new-{size}", size=size)))
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


async def _store(end: LocalEnd, entry: Entry) -> None:
    assert entry.size is not None
    await end.store(entry, BytesBody(os.urandom(entry.size)))


class _Found:
    """An entry of a directory that gives no facts."""

    def __init__(self, found: os.DirEntry[str], code: int) -> None:
        self.name, self.path, self._code = found.name, found.path, code

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        raise OSError(self._code, os.strerror(self._code))

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        raise OSError(self._code, os.strerror(self._code))


@pytest.mark.parametrize(("code", "is_gap"), [(errno.EIO, True), (errno.EACCES, True), (errno.ENOENT, False)])
def test_file_whose_facts_cannot_be_read_fails_and_its_copy_stays(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, is_gap: bool
) -> None:
    (source / "bad").write_bytes(b"x")
    send(source, tmp_path / "target", tmp_path)
    in_order = local_end._in_order

    def spoiled(scan: Iterator[os.DirEntry[str]]) -> Iterator[Any]:
        for found in in_order(scan):
            yield _Found(found, code) if "source/bad" in found.path else found

    monkeypatch.setattr(local_end, "_in_order", spoiled)
    outcome = send(source, tmp_path / "target", tmp_path, evolve(FAST, delete=True))
    assert (len(outcome.failures), outcome.removed) == ((1, 0) if is_gap else (0, 1))
    assert ("bad" in contents(tmp_path / "target")) is is_gap


@pytest.mark.parametrize("excluded", [True, False])
def test_directory_that_cannot_be_listed_is_a_failure_unless_it_is_excluded(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excluded: bool
) -> None:
    (source / "closed").mkdir()
    opened = local_end._opened
    monkeypatch.setattr(local_end, "_opened", lambda path: "closed to you" if "closed" in path else opened(path))
    plan = evolve(FAST, selection=parse_selection([], ["closed"] if excluded else []))
    outcome = send(source, tmp_path / "target", tmp_path, plan)
    assert [str(error) for _, error in outcome.failures] == (
        [] if excluded else ["closed: it could not be listed: closed to you"]
    )
    assert contents(tmp_path / "target") == contents(source)


def test_removal_when_a_directory_that_is_left_out_cannot_be_listed_spares_only_what_lies_there(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    (source / "closed").mkdir()
    (target / "closed").mkdir(parents=True)
    (target / "closed" / "kept").write_bytes(b"kept")
    (target / "old").write_bytes(b"old")
    opened = local_end._opened
    monkeypatch.setattr(
        local_end, "_opened", lambda path: "closed to you" if path.endswith("source/closed") else opened(path)
    )
    outcome = send(source, target, tmp_path, evolve(FAST, delete=True, selection=parse_selection([], ["/closed"])))
    assert (outcome.removed, list(outcome.failures)) == (1, [])
    assert contents(target) == {**contents(source), "closed/kept": b"kept"}


@pytest.mark.parametrize("size", [100, SIZE])
def test_transfer_that_is_canceled_during_a_rename_ends(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    (source / "large").write_bytes(os.urandom(size))
    replace = os.replace

    async def case() -> None:
        loop = asyncio.get_running_loop()

        def replace_slowly(source: str, target: str) -> None:
            replace(source, target)
            loop.call_soon_threadsafe(task.cancel)

        monkeypatch.setattr("grid.transfer.local_end.os.replace", replace_slowly)
        end = LocalEnd(str(tmp_path / "target"))
        body = BytesBody((source / "large").read_bytes())
        task = asyncio.create_task(end.store(Entry(name="large", size=size), body))
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(case())
    assert contents(tmp_path / "target") == contents(source)
