"""Transfers that read every file back: what a target has damaged is found, counts as failed, and is sent again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from grid.ports import Buffer
from grid.transfer.choices import Comparison
from grid.transfer.ends import Body, Entry, OpenedSource, PassingError
from grid.transfer.engine import Transfer
from grid.transfer.journal import Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import Plan
from grid.transfer.rates import Left, unlimited
from tests.transfer.test_engine import FAST, contents, send

LARGE = 3 * 2**20 + 5


class _DamagingEnd(LocalEnd):
    """A directory on a disk that damages the files of these names, without their times: by a byte, or in length."""

    def __init__(self, path: Path, damaged: set[str], *, cuts: bool) -> None:
        super().__init__(str(path), is_target=True)
        self._root, self._damaged, self._cuts = path, damaged, cuts

    async def store(self, entry: Entry, body: Body) -> str:
        token = await super().store(entry, body)
        self._damage(entry.name)
        return token

    async def store_together(
        self, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str]
    ) -> Sequence[str | None]:
        tokens = await super().store_together(files, scratch)
        for entry, _ in files:
            self._damage(entry.name)
        return tokens

    def _damage(self, name: str) -> None:
        path = self._root / name
        if name not in self._damaged:
            return
        status = path.stat()
        with path.open("r+b") as file:
            if self._cuts:
                file.truncate(status.st_size - 1)
            else:
                file.seek(status.st_size // 2)
                (byte,) = file.read(1)
                file.seek(-1, 1)
                file.write(bytes([byte ^ 1]))
        os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("cuts", [False, True])
def test_file_that_the_target_damages_fails_and_is_sent_again_by_the_next_run(tmp_path: Path, *, cuts: bool) -> None:
    (tmp_path / "source").mkdir()
    for name, size in (("small", 100), ("large", LARGE), ("good", 100), ("fine", LARGE)):
        (tmp_path / "source" / name).write_bytes(os.urandom(size))
    plan = evolve(FAST, verify=True)
    damaging = _DamagingEnd(tmp_path / "target", {"small", "large"}, cuts=cuts)

    outcome = send(tmp_path / "source", damaging, tmp_path, plan)

    assert {name for name, _ in outcome.failures} == {"small", "large"}
    assert all("read back at the target" in str(error) for _, error in outcome.failures)
    again = send(tmp_path / "source", tmp_path / "target", tmp_path, plan)
    assert (again.copied, again.unchanged, list(again.failures)) == (2, 2, [])
    assert contents(tmp_path / "target") == contents(tmp_path / "source")


class _Reading(LocalEnd):
    """A directory that cannot be read a number of times. reads: names of files that were."""

    def __init__(self, path: Path, failing: int = 0) -> None:
        super().__init__(str(path), is_target=True)
        self.failing, self.reads = failing, list[str]()

    async def open(self, entry: Entry) -> OpenedSource:
        self.failing -= 1
        if self.failing >= 0:
            raise PassingError("the connection was lost")
        self.reads.append(entry.name)
        return await super().open(entry)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two files; retries do not wait."""
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    (tmp_path / "source").mkdir()
    for name, size in (("small", 100), ("large", LARGE)):
        (tmp_path / "source" / name).write_bytes(os.urandom(size))
    return tmp_path / "source"


PLAN = evolve(FAST, verify=True, transfers=1)


def test_file_whose_verification_was_killed_is_verified_by_the_next_run(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("grid.transfer.engine.Transfer._verify", _kill)
        with pytest.raises(RuntimeError, match="killed"):
            send(source, tmp_path / "target", tmp_path, PLAN)
    there = set(contents(tmp_path / "target"))
    assert there
    assert send(source, tmp_path / "target", tmp_path, evolve(PLAN, dry_run=True)).unchanged == len(there)

    target = _Reading(tmp_path / "target")
    outcome = send(source, target, tmp_path, PLAN)

    assert (outcome.copied, list(outcome.failures)) == (2 - len(there), [])
    assert set(target.reads) == {"small", "large"}
    target.reads.clear()
    assert send(source, target, tmp_path, PLAN).unchanged == 2 and not target.reads


async def _kill(*arguments: object) -> bool:
    raise RuntimeError("killed")


def test_file_that_was_damaged_when_its_verification_was_killed_is_found(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("grid.transfer.engine.Transfer._verify", _kill)
        with pytest.raises(RuntimeError, match="killed"):
            send(source, _DamagingEnd(tmp_path / "target", {"small", "large"}, cuts=False), tmp_path, PLAN)
    there = set(contents(tmp_path / "target"))
    outcome = send(source, tmp_path / "target", tmp_path, PLAN)
    assert {name for name, _ in outcome.failures} == there
    assert not send(source, tmp_path / "target", tmp_path, PLAN).failures
    assert contents(tmp_path / "target") == contents(source)


def test_file_that_cannot_be_read_back_for_a_while_is_read_later_and_not_sent_again(
    source: Path, tmp_path: Path
) -> None:
    target = _Reading(tmp_path / "target", failing=FAST.retries)
    assert not send(source, target, tmp_path, PLAN).failures
    (source / "new").write_bytes(b"x")
    target.failing = FAST.retries + 1
    assert {name for name, _ in send(source, target, tmp_path, PLAN).failures} == {"new"}
    target.reads.clear()
    outcome = send(source, target, tmp_path, PLAN)
    assert (outcome.copied, list(outcome.failures), target.reads) == (0, [], ["new"])


@pytest.mark.parametrize("comparison", ["time", "checksum"])
def test_bytes_that_are_read_to_be_compared_count_against_the_rate(
    source: Path, tmp_path: Path, comparison: Comparison
) -> None:
    total, slowed = sum(map(len, contents(source).values())), list[int]()

    def slow(count: int) -> Left:
        slowed.append(count)
        return unlimited(count)

    def run(plan: Plan) -> None:
        async def case() -> None:
            journal, target = Journal(tmp_path / "journal.sqlite"), LocalEnd(str(tmp_path / "target"))
            try:
                await Transfer([LocalEnd(str(source))], target, journal, plan, slow=slow).run()
            finally:
                journal.close()

        asyncio.run(case())

    run(evolve(PLAN, comparison=comparison))
    assert sum(slowed) == 2 * total
    if comparison == "checksum":
        for path in source.iterdir():
            os.utime(path, ns=(1, 1))
        run(evolve(PLAN, comparison=comparison))
        assert sum(slowed) == 3 * total
