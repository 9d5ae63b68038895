"""Groups of small files on a local disk: what is durable before what is renamed, and what happens if it cannot be."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from grid.transfer.ends import Entry
from grid.transfer.local_groups import LONG_S, LocalGroups, SharedSync, is_disk, sync_of_libc
from grid.transfer.local_partials import PARTIAL

MTIME_NS = 1_700_000_000_123_456_789
FILES = [(Entry(name=f"a/{number}", size=4, mtime_ns=MTIME_NS, mode=0o640), b"%4d" % number) for number in range(6)]


def scratch(name: str) -> str:
    """The name of a file's incomplete contents."""
    return hashlib.sha256(name.encode()).hexdigest()


def names(root: Path) -> list[str]:
    """All files below a directory."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def placed(root: Path) -> list[str]:
    """Those that are not incomplete."""
    return [name for name in names(root) if PARTIAL not in name]


def write(groups: LocalGroups, files: Sequence[tuple[Entry, bytes]] = FILES) -> list[str | None]:
    """Write a group and close."""
    try:
        return groups.write(files, scratch)
    finally:
        groups.close()


def test_files_are_whole_before_the_sync_and_have_their_names_after_it(tmp_path: Path) -> None:
    seen: list[tuple[list[str], set[tuple[bytes, int, int]]]] = []

    def sync(descriptor: int) -> None:
        assert os.path.samestat(os.fstat(descriptor), os.stat(tmp_path))
        incomplete = [path for path in (tmp_path / "a").iterdir() if path.name.startswith(PARTIAL)]
        facts = {(path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode & 0o777) for path in incomplete}
        seen.append((placed(tmp_path), facts))

    assert write(LocalGroups(str(tmp_path), sync)) == [""] * len(FILES)
    assert seen == [([], {(data, MTIME_NS, 0o640) for _, data in FILES})]
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == {
        entry.name: data for entry, data in FILES
    }


def test_no_file_of_a_group_that_could_not_be_synced_is_in_place_or_left(tmp_path: Path) -> None:
    def sync(descriptor: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    assert write(LocalGroups(str(tmp_path), sync)) == [None] * len(FILES)
    assert names(tmp_path) == []


def test_file_that_cannot_be_written_stops_none_of_its_group(tmp_path: Path) -> None:
    (tmp_path / "a/2").mkdir(parents=True)
    assert write(LocalGroups(str(tmp_path), lambda descriptor: None)) == ["", "", None, "", "", ""]
    assert placed(tmp_path) == names(tmp_path) == [f"a/{number}" for number in (0, 1, 3, 4, 5)]


def test_file_that_cannot_be_renamed_leaves_nothing_behind(tmp_path: Path) -> None:
    def sync(descriptor: int) -> None:
        (tmp_path / "a/3").mkdir()

    assert write(LocalGroups(str(tmp_path), sync)) == ["", "", "", None, "", ""]
    assert names(tmp_path) == [f"a/{number}" for number in (0, 1, 2, 4, 5)]


def test_nth_call_of_the_system_that_fails_leaves_no_incomplete_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for call in ("pwrite", "ftruncate", "fchmod", "utime", "replace"):
        for failing in range(len(FILES)):
            root = tmp_path / f"{call}-{failing}"
            root.mkdir()
            with monkeypatch.context() as patched:
                _fail(patched, call, failing)
                tokens = write(LocalGroups(str(root), lambda descriptor: None))
            assert tokens.count(None) == 1
            assert names(root) == [entry.name for (entry, _), token in zip(FILES, tokens, strict=True) if token == ""]


def _fail(patched: pytest.MonkeyPatch, call: str, failing: int) -> None:
    real, count = getattr(os, call), iter(range(10**6))

    def wrapped(*arguments: object, **named: object) -> object:
        if next(count) == failing:
            raise OSError(errno.ENOSPC, "no room")
        return real(*arguments, **named)

    patched.setattr(os, call, wrapped)


def test_few_files_and_file_systems_that_cannot_are_synced_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = _counted_fsyncs(monkeypatch)
    whole: list[int] = []
    assert write(LocalGroups(str(tmp_path), whole.append), FILES[:3]) == [""] * 3
    assert (len(synced), whole) == (3, [])
    monkeypatch.setattr("grid.transfer.local_groups.is_disk", lambda device: False)
    assert write(LocalGroups(str(tmp_path))) == [""] * len(FILES)
    assert len(synced) == 3 + len(FILES)


def _counted_fsyncs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return synced


def test_file_on_another_file_system_is_synced_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, whole = _counted_fsyncs(monkeypatch), list[int]()
    groups = LocalGroups(str(tmp_path), whole.append)
    assert groups.write(FILES, scratch) == [""] * len(FILES)
    assert groups._syncs is not None
    assert (len(synced), len(whole)) == (0, 1)
    groups._syncs.device += 1
    assert write(groups) == [""] * len(FILES)
    assert (len(synced), len(whole)) == (len(FILES), 2)


def test_sync_that_took_long_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def sync(descriptor: int) -> None:
        now[0] += LONG_S + 1

    monkeypatch.setattr(
        "grid.transfer.local_groups.SharedSync", lambda root, given: SharedSync(root, given, lambda: now[0])
    )
    synced = _counted_fsyncs(monkeypatch)
    groups = LocalGroups(str(tmp_path), sync)
    assert groups.write(FILES, scratch) == [""] * len(FILES)
    assert (synced, now) == ([], [LONG_S + 1])
    assert write(groups) == [""] * len(FILES)
    assert (len(synced), now) == (len(FILES), [LONG_S + 1])


def _threads(calls: Sequence[Callable[[], None]]) -> list[threading.Thread]:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def test_sync_covers_all_that_wait_when_it_begins_and_none_that_come_later(tmp_path: Path) -> None:
    began, go_on, count = threading.Event(), threading.Event(), [0]

    def sync(descriptor: int) -> None:
        count[0] += 1
        began.set()
        assert go_on.wait(60)

    syncs = SharedSync(str(tmp_path), sync)
    first = _threads([syncs.wait])
    assert began.wait(60)
    others = _threads([syncs.wait] * 5)
    while syncs._next is None:
        pass
    assert count == [1]
    go_on.set()
    for thread in first + others:
        thread.join(60)
    # A thread that came while the first sync was running waits for a later one; how many of the five share one is chance.
    assert 2 <= count[0] <= 6
    syncs.close()


def test_error_of_a_sync_reaches_all_that_waited_for_it_and_nobody_else(tmp_path: Path) -> None:
    began, go_on, count = threading.Event(), threading.Event(), [0]

    def sync(descriptor: int) -> None:
        count[0] += 1
        began.set()
        assert go_on.wait(60)
        if count[0] == 2:
            raise OSError(errno.EIO, "the disk is broken")

    found: list[str] = []

    def wait(name: str) -> None:
        try:
            syncs.wait()
        except OSError:
            found.append(name)

    syncs = SharedSync(str(tmp_path), sync)
    first = _threads([lambda: wait("first")])
    assert began.wait(60)
    second = _threads([lambda: wait("second")])
    while syncs._next is None:
        pass
    go_on.set()
    for thread in first + second:
        thread.join(60)
    wait("third")
    assert found == ["second"]
    syncs.close()


def test_groups_that_were_closed_begin_anew(tmp_path: Path) -> None:
    groups = LocalGroups(str(tmp_path), lambda descriptor: None)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        assert write(groups) == [""] * len(FILES)
    groups.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_many_threads_write_all_their_groups_with_fewer_syncs(tmp_path: Path) -> None:
    count, tokens = [0], list[str | None]()

    def sync(descriptor: int) -> None:
        count[0] += 1
        os.sched_yield()

    groups = LocalGroups(str(tmp_path), sync)

    def group(number: int) -> list[tuple[Entry, bytes]]:
        return [
            (Entry(name=f"{number}/{entry.name}", size=4, mtime_ns=MTIME_NS, mode=0o600), data) for entry, data in FILES
        ]

    def work(number: int) -> Callable[[], None]:
        return lambda: tokens.extend(groups.write(group(number), scratch))

    for thread in _threads([work(number) for number in range(40)]):
        thread.join(60)
    groups.close()
    assert tokens == [""] * 40 * len(FILES)
    assert len(placed(tmp_path)) == len(names(tmp_path)) == 40 * len(FILES)
    assert 1 <= count[0] <= 40


def test_this_machine_syncs_a_file_system_where_it_says_so(tmp_path: Path) -> None:
    sync = sync_of_libc()
    if sync is not None:
        descriptor = os.open(tmp_path, os.O_RDONLY)
        sync(descriptor)
        os.close(descriptor)
        with pytest.raises(OSError, match="Bad file descriptor"):
            sync(descriptor)
    assert write(LocalGroups(str(tmp_path))) == [""] * len(FILES)
    assert not is_disk(os.stat("/proc").st_dev)


@pytest.mark.parametrize("release", ["5.7.19", "4.19.0-27-amd64", "unknown", ""])
def test_kernel_that_tells_nothing_of_errors_is_not_asked(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.transfer.local_groups.platform.release", lambda: release)
    assert sync_of_libc.__wrapped__() is None
