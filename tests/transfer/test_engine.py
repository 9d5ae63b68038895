"""A whole transfer: what is sent, what is not sent again, what hostile sources do, and what a kill leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Literal

import pytest
from attrs import evolve

from grid.errors import BusyError, GridError
from grid.ports import Buffer
from grid.transfer.choices import Mode
from grid.transfer.ends import Body, Entry, LeftOut, OpenedSource, PassingError, SourceEnd, TargetEnd
from grid.transfer.engine import Transfer
from grid.transfer.http_end import HttpEnd
from grid.transfer.journal import Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import Outcome, Plan
from grid.transfer.selection import parse_selection
from tests.transfer.scripted_web import WebRequest, scripted_web

FAST = Plan(chunk_size=2**20, streams=3, transfers=4, retries=2)


def send(source: SourceEnd | Path, target: Path | TargetEnd, state: Path, plan: Plan = FAST) -> Outcome:
    """One run, with its journal in the directory."""
    end = LocalEnd(str(source)) if isinstance(source, Path) else source
    to = LocalEnd(str(target), is_target=True) if isinstance(target, Path) else target

    async def case() -> Outcome:
        journal = Journal(state / "journal.sqlite")
        try:
            return await Transfer([end], to, journal, plan).run()
        finally:
            journal.close()

    return asyncio.run(case())


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small tree with a file of several chunks."""
    folder = tmp_path / "source"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "large").write_bytes(os.urandom(5 * 2**20 + 17))
    for number in range(20):
        (folder / "deep" / f"small-{number}").write_bytes(b"%d" % number * number)
    return folder


@pytest.mark.parametrize("mode", ["auto", "stream", "chunked", "chunked-stream"])
def test_tree_when_sent_in_any_mode_arrives_and_is_not_sent_again(source: Path, tmp_path: Path, mode: Mode) -> None:
    plan = evolve(FAST, mode=mode, verify=True)

    first = send(source, tmp_path / "target", tmp_path, plan)
    second = send(source, tmp_path / "target", tmp_path, plan)

    assert contents(tmp_path / "target") == contents(source)
    assert (first.copied, first.unchanged, list(first.failures)) == (21, 0, [])
    assert (second.copied, second.unchanged, list(second.failures)) == (0, 21, [])


@pytest.mark.parametrize(("chunk_size", "transfers"), [(1_500_000, 4), (None, "auto")])
def test_tree_when_chunks_are_of_any_size_or_chosen_arrives(
    source: Path, tmp_path: Path, chunk_size: int | None, transfers: int | Literal["auto"]
) -> None:
    (source / "larger").write_bytes(os.urandom(12 * 2**20))
    outcome = send(source, tmp_path / "target", tmp_path, evolve(FAST, chunk_size=chunk_size, transfers=transfers))
    assert (outcome.copied, list(outcome.failures)) == (22, [])
    assert contents(tmp_path / "target") == contents(source)


def test_file_when_changed_or_gone_from_the_target_is_sent_again(source: Path, tmp_path: Path) -> None:
    send(source, tmp_path / "target", tmp_path)
    (source / "deep" / "small-3").write_bytes(b"new contents")
    (tmp_path / "target" / "deep" / "small-5").unlink()

    outcome = send(source, tmp_path / "target", tmp_path)

    assert (outcome.copied, outcome.unchanged) == (2, 19)
    assert contents(tmp_path / "target") == contents(source)


def test_checksum_when_only_times_differ_sends_nothing(source: Path, tmp_path: Path) -> None:
    send(source, tmp_path / "target", tmp_path)
    for path in source.rglob("small-*"):
        os.utime(path, ns=(0, 0))

    outcome = send(source, tmp_path / "target", tmp_path, evolve(FAST, comparison="checksum"))

    assert (outcome.copied, outcome.unchanged) == (0, 21)


def test_delete_removes_what_no_source_has_and_only_when_asked(source: Path, tmp_path: Path) -> None:
    send(source, tmp_path / "target", tmp_path)
    (source / "deep" / "small-3").unlink()
    assert send(source, tmp_path / "target", tmp_path).removed == 0
    dry = send(source, tmp_path / "target", tmp_path, evolve(FAST, delete=True, dry_run=True))
    assert list(dry.planned) == [("remove", "deep/small-3")]
    assert (tmp_path / "target" / "deep" / "small-3").exists()

    assert send(source, tmp_path / "target", tmp_path, evolve(FAST, delete=True)).removed == 1

    assert contents(tmp_path / "target") == contents(source)


def test_delete_when_the_source_holds_nothing_removes_nothing(source: Path, tmp_path: Path) -> None:
    send(source, tmp_path / "target", tmp_path)
    (tmp_path / "unmounted").mkdir()
    outcome = send(tmp_path / "unmounted", tmp_path / "target", tmp_path, evolve(FAST, delete=True))
    assert (outcome.found, outcome.removed) == (0, 0)
    assert contents(tmp_path / "target") == contents(source)


def test_target_when_changed_without_another_size_is_made_like_the_source_again(source: Path, tmp_path: Path) -> None:
    plan = evolve(FAST, keeps_times=True)
    send(source, tmp_path / "target", tmp_path, plan)
    changed = tmp_path / "target" / "deep" / "small-3"
    changed.write_bytes(b"xxx")
    os.utime(changed, (1e9, 1e9))
    assert send(source, tmp_path / "target", tmp_path, plan).copied == 1
    assert changed.read_bytes() == b"333"


def test_dry_run_changes_nothing(source: Path, tmp_path: Path) -> None:
    outcome = send(source, tmp_path / "target", tmp_path, evolve(FAST, dry_run=True))
    assert len(outcome.planned) == 21
    assert not (tmp_path / "target").exists()


def test_patterns_choose_files(source: Path, tmp_path: Path) -> None:
    selection = parse_selection(["small-1*", "/deep/er"], ["small-7", "small-1?"])
    send(source, tmp_path / "target", tmp_path, evolve(FAST, selection=selection))
    assert set(contents(tmp_path / "target")) == {"deep/er/large", "deep/small-1"}


def test_journal_when_in_use_refuses_a_second_process(source: Path, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    with pytest.raises(BusyError):
        send(source, tmp_path / "target", tmp_path)
    journal.close()
    assert (tmp_path / "journal.sqlite").stat().st_mode & 0o777 == 0o600


class _Liar:
    """A file whose contents do not match its listing."""

    shortcut: object = None

    def __init__(self, entry: Entry, pieces: list[bytes], after: PassingError | None = None) -> None:
        self.entry, self._pieces, self._after = entry, pieces, after

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        for piece in self._pieces:
            yield piece

    async def require_unchanged(self) -> None:
        if self._after is not None:
            raise self._after

    async def close(self) -> None:
        """Nothing to close."""


class LyingEnd:
    """A source of one lie; opened: how often it was asked for."""

    label = "liar"

    def __init__(self, size: int, pieces: list[bytes], after: PassingError | None = None) -> None:
        self._size, self._pieces, self._after = size, pieces, after
        self.opened = 0

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        yield Entry(name="lie", size=self._size, mtime_ns=1)

    async def open(self, entry: Entry) -> OpenedSource:
        self.opened += 1
        return _Liar(entry, self._pieces, self._after)

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    ("size", "pieces"), [(10, [b"short"]), (10, []), (3, [b"much too long"]), (10, [b"12345", b"678901"])]
)
def test_source_when_it_lies_about_its_size_fails_and_leaves_nothing(
    size: int, pieces: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    liar = LyingEnd(size, pieces)

    outcome = send(liar, tmp_path / "target", tmp_path)

    assert [name for name, _ in outcome.failures] == ["lie"]
    assert liar.opened == 1 + FAST.retries
    assert not contents(tmp_path / "target")


class _FullEnd(LocalEnd):
    """A directory on a disk that is full."""

    def stores_together(self, size: int) -> bool:
        return False

    async def store(self, entry: Entry, body: Body) -> str:
        async for _ in body.stream():
            raise OSError(28, "No space left on device", entry.name)
        return await super().store(entry, body)


def test_target_when_full_is_not_tried_again_and_each_file_says_why(source: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    outcome = send(source, _FullEnd(str(tmp_path / "target")), tmp_path)
    assert outcome.failures
    assert all("No space" in str(error) for _, error in outcome.failures)


class _NamingEnd(LyingEnd):
    """A source that gives names which lead elsewhere."""

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        for name in ("../out", "a/../../out", "n" * 300, "good"):
            yield Entry(name=name, size=2, mtime_ns=1)


def test_names_that_a_target_cannot_hold_fail_by_themselves(tmp_path: Path) -> None:
    outcome = send(_NamingEnd(2, [b"ok"]), tmp_path / "target", tmp_path)
    assert len(outcome.failures) == 3
    assert contents(tmp_path / "target") == {"good": b"ok"}
    assert not (tmp_path / "out").exists()


class _HugeEnd(LyingEnd):
    """A listing of 25,000 files."""

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        for number in range(25_000):
            yield Entry(name=f"folder/{number:06}", size=2, mtime_ns=1)


def test_listing_of_very_many_files_takes_bounded_memory(tmp_path: Path) -> None:
    import tracemalloc

    plan = evolve(FAST, selection=parse_selection(["*/0000*"], []))
    tracemalloc.start()
    try:
        outcome = send(_HugeEnd(2, [b"ok"]), tmp_path / "target", tmp_path, plan)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome.copied == 100
    assert peak < 2 * 2**20, peak


def _flaky(statuses: Iterator[int], data: bytes, asked: list[str]) -> object:
    def serve(request: WebRequest) -> None:
        asked.append(request.path)
        status = next(statuses, 200)
        if status == 0:
            request.connection.close()
        elif status == 1:
            request.answer(200, data[: len(data) // 2], len(data), ETag='"one"')
        else:
            request.answer(status, data if status == 200 else b"", ETag='"one"')

    return serve


@pytest.mark.parametrize("faults", [[500, 503], [0], [1], [429, 1]])
def test_server_when_it_fails_for_a_while_is_asked_again(
    faults: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    data, asked = os.urandom(200_000), list[str]()
    script = _flaky(iter([200, *faults]), data, asked)

    with scripted_web(script) as url:  # type: ignore[arg-type]
        outcome = send(HttpEnd(f"{url}/file"), tmp_path / "target", tmp_path, evolve(FAST, mode="stream"))

    assert not outcome.failures
    assert contents(tmp_path / "target") == {"file": data}
    assert len(asked) == 2 + len(faults)


def test_server_when_it_refuses_is_asked_once(tmp_path: Path) -> None:
    asked = list[str]()
    with scripted_web(_flaky(iter([200, 403]), b"x" * 100, asked)) as url:  # type: ignore[arg-type]
        outcome = send(HttpEnd(f"{url}/file"), tmp_path / "target", tmp_path)
    assert len(outcome.failures) == 1
    assert len(asked) == 2


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from grid.transfer.engine import Transfer
from grid.transfer.outcome import Plan
from grid.transfer.journal import Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.selection import parse_selection
source, target, state, fatal = *map(Path, sys.argv[1:4]), int(sys.argv[4])
left = [fatal]
def step():
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
async def main():
    journal = Journal(state / "journal.sqlite", step)
    await Transfer([LocalEnd(str(source))], LocalEnd(str(target)), journal, Plan(chunk_size=2**20)).run()
asyncio.run(main())
"""


def test_kill_at_each_step_of_the_journal_loses_nothing_and_sends_nothing_twice(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(3):
        (source / f"file-{number}").write_bytes(os.urandom(1000 + number))
    ended = False
    for fatal in range(1, 40):
        target, state = tmp_path / f"target-{fatal}", tmp_path / f"state-{fatal}"
        state.mkdir()
        command = [sys.executable, "-c", _KILLED, str(source), str(target), str(state), str(fatal)]
        done = subprocess.run(command, check=False, capture_output=True)
        arrived = len([name for name in contents(target) if "partial" not in name]) if target.exists() else 0
        outcome = send(source, target, state)
        again = send(source, target, state)
        assert contents(target) == contents(source)
        assert outcome.unchanged == arrived, "a file that had arrived was sent again"
        assert (again.copied, again.unchanged) == (0, 3)
        if done.returncode == 0:
            ended = True
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert ended


def test_two_transfers_to_one_target_at_once_both_arrive(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_bytes(b"mine")

    async def one(folder: Path, state: str) -> Outcome:
        (tmp_path / state).mkdir()
        journal = Journal(tmp_path / state / "journal.sqlite")
        try:
            return await Transfer([LocalEnd(str(folder))], LocalEnd(str(tmp_path / "target")), journal, FAST).run()
        finally:
            journal.close()

    async def both() -> list[Outcome]:
        return list(await asyncio.gather(one(source, "a"), one(other, "b")))

    outcomes = asyncio.run(both())

    assert not any(outcome.failures for outcome in outcomes)
    assert contents(tmp_path / "target") == contents(source) | {"mine": b"mine"}


def test_errors_of_sources_that_are_missing_end_the_transfer(tmp_path: Path) -> None:
    with pytest.raises(GridError, match="no such file"):
        send(tmp_path / "nothing", tmp_path / "target", tmp_path)


def test_files_of_odd_folders_and_of_distant_times_stop_no_other(source: Path, tmp_path: Path) -> None:
    odd = source.rename(tmp_path / os.fsdecode(b"source-\xff"))
    for name in ("deep/small-1", "deep/er/large"):
        os.utime(odd / name, ns=(2**63 + 10**9, 2**63 + 10**9))
    for _ in range(2):
        outcome = send(odd, tmp_path / "target", tmp_path)
        assert not outcome.failures and outcome.copied + outcome.unchanged == 21
        assert contents(tmp_path / "target") == contents(odd)
