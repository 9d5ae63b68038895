"""Large files whose sending was interrupted, to local disks and SFTP servers: what is sent again, and what is not believed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from grid.ports import Buffer
from grid.transfer.choices import Mode
from grid.transfer.ends import EndError, Entry, OpenedSource, PassingError, SourceChangedError, TargetEnd
from grid.transfer.engine import Transfer
from grid.transfer.journal import Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.local_partials import PARTIAL
from grid.transfer.outcome import Outcome, Plan
from grid.transfer.partial_files import missing
from grid.transfer.sftp_end import open_sftp_end
from tests.transfer.test_engine import contents

MIB = 2**20
SIZE = 6 * MIB + 5
PLAN = Plan(chunk_size=2 * MIB, streams=2, retries=0)


class _Interrupted:
    """An open file whose reading fails once a number of bytes have been read."""

    def __init__(self, opened: OpenedSource, end: InterruptedEnd) -> None:
        self._opened, self._end, self.entry, self.shortcut = opened, end, opened.entry, None

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        if offset and self._end.only_from_start:
            raise EndError("no ranges here")
        async for piece in self._opened.read(offset, length):
            if self._end.left <= 0:
                raise self._end.error
            self._end.left -= len(piece)
            self._end.count += len(piece)
            yield piece

    async def require_unchanged(self) -> None:
        await self._opened.require_unchanged()

    async def close(self) -> None:
        await self._opened.close()


class InterruptedEnd(LocalEnd):
    """A source that yields a number of bytes, and then fails. count: bytes that were read."""

    def __init__(self, folder: Path, left: int = 10**9, error: Exception | None = None) -> None:
        super().__init__(str(folder))
        self.left, self.error, self.count = left, error or PassingError("the connection was lost"), 0
        self.only_from_start = False

    async def open(self, entry: Entry) -> OpenedSource:
        return _Interrupted(await super().open(entry), self)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one MiB, of every file."""
    monkeypatch.setattr("grid.transfer.partial_files.PART_SIZE", MIB)
    monkeypatch.setattr("grid.transfer.engine.RESUMED_SIZE", 2 * MIB)
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with one file of several parts, zeros in its middle."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "large").write_bytes(os.urandom(3 * MIB) + bytes(MIB) + os.urandom(SIZE - 4 * MIB))
    return folder


@pytest.fixture(params=["local", "sftp"])
def open_target(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], TargetEnd]:
    """Opens the directory `target`."""
    (tmp_path / "target").mkdir()
    if request.param == "local":
        return lambda: LocalEnd(str(tmp_path / "target"), is_target=True)
    url, home = request.getfixturevalue("sftp")
    monkeypatch.setenv("HOME", str(home))
    return lambda: open_sftp_end(f"{url}{tmp_path}/target")


def send(source: InterruptedEnd, target: TargetEnd, state: Path, plan: Plan = PLAN) -> Outcome:
    """One run."""

    async def case() -> Outcome:
        journal = Journal(state / "journal.sqlite")
        try:
            return await Transfer([source], target, journal, plan).run()
        finally:
            journal.close()
            await target.close()

    return asyncio.run(case())


def partial_of(tmp_path: Path) -> Path:
    """The only incomplete file."""
    (found,) = (tmp_path / "target").glob(f"{PARTIAL}*")
    return found


@pytest.mark.parametrize("mode", ["stream", "chunked", "chunked-stream"])
def test_file_when_interrupted_goes_on_with_the_parts_that_the_target_has(
    open_target: Callable[[], TargetEnd], source: Path, tmp_path: Path, mode: Mode
) -> None:
    first = InterruptedEnd(source, 4 * MIB)
    plan = evolve(PLAN, mode=mode, verify=True)
    assert len(send(first, open_target(), tmp_path, plan).failures) == 1
    assert list(contents(tmp_path / "target")) == [partial_of(tmp_path).name]

    second = InterruptedEnd(source)
    outcome = send(second, open_target(), tmp_path, plan)

    assert (outcome.copied, list(outcome.failures)) == (1, [])
    assert outcome.sent_bytes == second.count <= SIZE - 2 * MIB
    assert contents(tmp_path / "target") == contents(source)
    assert send(InterruptedEnd(source), open_target(), tmp_path, plan).unchanged == 1


def test_file_when_it_changed_after_the_interruption_is_sent_from_its_start(
    open_target: Callable[[], TargetEnd], source: Path, tmp_path: Path
) -> None:
    send(InterruptedEnd(source, 4 * MIB), open_target(), tmp_path)
    (source / "large").write_bytes(os.urandom(SIZE))

    second = InterruptedEnd(source)
    assert not send(second, open_target(), tmp_path).failures

    assert second.count == SIZE
    assert contents(tmp_path / "target") == contents(source)


def test_file_when_its_interruption_is_of_no_use_leaves_nothing(
    open_target: Callable[[], TargetEnd], source: Path, tmp_path: Path
) -> None:
    for error in (EndError("refused"), SourceChangedError("changed")):
        send(InterruptedEnd(source, 4 * MIB, error), open_target(), tmp_path)
        assert contents(tmp_path / "target") == {}


def test_incomplete_local_file_when_its_disk_is_full_leaves_its_room(source: Path, tmp_path: Path) -> None:
    end = InterruptedEnd(source, 4 * MIB, OSError(28, "No space left on device"))
    assert len(send(end, LocalEnd(str(tmp_path / "target")), tmp_path).failures) == 1
    assert contents(tmp_path / "target") == {}


def test_source_that_is_only_read_from_its_start_is_sent_from_there(
    open_target: Callable[[], TargetEnd], source: Path, tmp_path: Path
) -> None:
    plan = evolve(PLAN, mode="stream", retries=1)
    send(InterruptedEnd(source, 4 * MIB), open_target(), tmp_path, evolve(plan, retries=0))
    second = InterruptedEnd(source)
    second.only_from_start = True

    assert not send(second, open_target(), tmp_path, plan).failures

    assert second.count == SIZE
    assert contents(tmp_path / "target") == contents(source)


def test_incomplete_file_when_cut_or_gone_is_written_again(
    open_target: Callable[[], TargetEnd], source: Path, tmp_path: Path
) -> None:
    for spoil in (lambda path: os.truncate(path, MIB // 2), os.unlink, _replace_by_link):
        send(InterruptedEnd(source, 4 * MIB), open_target(), tmp_path)
        spoil(partial_of(tmp_path))
        assert not send(InterruptedEnd(source), open_target(), tmp_path).failures
        assert contents(tmp_path / "target") == contents(source)
        (tmp_path / "target" / "large").unlink()
    assert (tmp_path / "elsewhere").read_bytes() == b"mine"


def _replace_by_link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    elsewhere.write_bytes(b"mine")
    path.unlink()
    path.symlink_to(elsewhere)


def test_incomplete_local_file_when_its_bytes_differ_is_written_again_there(source: Path, tmp_path: Path) -> None:
    """A crash of the machine may lose what was written, and leave zeros."""
    target = LocalEnd(str(tmp_path / "target"), is_target=True)
    send(InterruptedEnd(source, 5 * MIB), target, tmp_path)
    path = partial_of(tmp_path)
    with path.open("r+b") as file:
        file.write(b"other")
        file.seek(3 * MIB + 7)  # Where the source has zeros.
        file.write(b"other")

    assert not send(InterruptedEnd(source), target, tmp_path, evolve(PLAN, verify=True)).failures

    assert contents(tmp_path / "target") == contents(source)


def test_incomplete_local_file_when_its_source_is_gone_is_removed_by_a_later_listing(
    source: Path, tmp_path: Path
) -> None:
    (source / "small").write_bytes(b"stays")
    target = LocalEnd(str(tmp_path / "target"), is_target=True)
    send(InterruptedEnd(source, 4 * MIB), target, tmp_path)
    assert partial_of(tmp_path).exists()
    (source / "large").unlink()
    for _ in range(2):
        send(InterruptedEnd(source), target, tmp_path)
    assert contents(tmp_path / "target") == {"small": b"stays"}


def test_incomplete_local_file_stays_when_another_transfer_lists_the_target(source: Path, tmp_path: Path) -> None:
    target, other = LocalEnd(str(tmp_path / "target"), is_target=True), tmp_path / "other"
    other.mkdir()
    (other / "small").write_bytes(b"of another journal")
    send(InterruptedEnd(source, 4 * MIB), target, tmp_path)

    assert send(InterruptedEnd(other), target, tmp_path / "state").copied == 1

    second = InterruptedEnd(source)
    assert not send(second, target, tmp_path).failures
    assert second.count <= SIZE - 2 * MIB
    assert contents(tmp_path / "target") == contents(source) | {"small": b"of another journal"}


def test_dry_run_removes_no_incomplete_file(open_target: Callable[[], TargetEnd], source: Path, tmp_path: Path) -> None:
    send(InterruptedEnd(source, 4 * MIB), open_target(), tmp_path)
    incomplete, large = partial_of(tmp_path), (source / "large").rename(tmp_path / "large")
    (source / "small").write_bytes(b"stays")
    for _ in range(2):
        send(InterruptedEnd(source), open_target(), tmp_path, evolve(PLAN, dry_run=True))
    assert list(contents(tmp_path / "target")) == [incomplete.name]

    large.rename(source / "large")
    second = InterruptedEnd(source)
    assert not send(second, open_target(), tmp_path).failures
    assert second.count <= SIZE - 2 * MIB + 5


def test_attempt_within_one_run_resumes_too(open_target: Callable[[], TargetEnd], source: Path, tmp_path: Path) -> None:
    end = InterruptedEnd(source, 4 * MIB)

    opened = end.open

    async def reopen(entry: Entry) -> OpenedSource:
        if end.count:
            end.left = 10**9
        return await opened(entry)

    end.open = reopen  # type: ignore[method-assign]
    outcome = send(end, open_target(), tmp_path, evolve(PLAN, retries=1))
    assert (list(outcome.failures), outcome.copied) == ([], 1)
    assert end.count < SIZE + 3 * MIB
    assert contents(tmp_path / "target") == contents(source)


ranges = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=6)


@given(ranges, ranges)
def test_missing_ranges_are_those_wanted_that_are_not_held(
    wanted: list[tuple[int, int]], held: list[tuple[int, int]]
) -> None:
    def covered(found: list[tuple[int, int]]) -> set[int]:
        return {at for offset, length in found for at in range(offset, offset + length)}

    left = list(missing(wanted, held))
    assert covered(left) == covered(wanted) - covered(held)
    with suppress(ValueError):
        assert min(length for _, length in left) > 0
