"""Small files of a transfer in packs: when packs are stored, and what happens if that fails."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from grid.caps import ChkCap, SliceCap
from grid.errors import GridError, NoServersError
from grid.extents.pack_writer import PackContents
from grid.transfer.ends import PENDING, Body, EndError, Entry
from grid.transfer.engine import Transfer
from grid.transfer.grid_packing import LEAST_ON_THREAD, Packing
from grid.transfer.journal import DONE, Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import Plan


class _Servers:
    """Where packs go. stored: the contents of each; fails: the numbers of those that cannot be stored."""

    def __init__(self, *fails: int) -> None:
        self.stored: list[bytes] = []
        self._fails = fails

    async def put(self, contents: PackContents) -> ChkCap:
        """A capability that nobody reads."""
        self.stored.append(bytes(contents.data))
        if len(self.stored) in self._fails:
            raise NoServersError("nobody is there")
        return ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=1, total=1, size=contents.size)


def packing(servers: _Servers) -> Packing:
    """An empty one."""
    return Packing(lambda: PackContents(None, os.urandom), servers.put)


async def _add(packing: Packing, count: int, size: int) -> None:
    for number in range(count):
        await packing.add([(f"file-{number}", os.urandom(size))])


def test_files_of_a_pack_are_stored_when_it_is_full_and_the_others_at_the_end() -> None:
    async def case() -> None:
        servers = _Servers()
        files = packing(servers)
        await _add(files, 100, 2**18)
        await asyncio.sleep(0)
        assert [files.is_stored(f"file-{number}") for number in (0, 63, 64, 99)] == [True, True, False, False]
        await files.finish()
        found = [files.find(f"file-{number}") for number in range(100)]
        assert all(isinstance(each, SliceCap) and each.length == 2**18 for each in found)
        assert [len(each) for each in servers.stored] == [64 * 2**18, 36 * 2**18]
        files.forget([f"file-{number}" for number in range(99)])
        assert isinstance(files.find("file-0"), GridError) and isinstance(files.find("file-99"), SliceCap)
        await files.finish()
        assert len(servers.stored) == 2

    asyncio.run(case())


@pytest.mark.parametrize(
    ("size", "calls_of_a_group"), [(1024, 0), (LEAST_ON_THREAD // 32, 0), (LEAST_ON_THREAD // 32 + 1, 1)]
)
def test_files_added_together_are_encrypted_at_once_or_in_one_call_on_a_thread(
    monkeypatch: pytest.MonkeyPatch, size: int, calls_of_a_group: int
) -> None:
    calls: list[str] = []
    to_thread = asyncio.to_thread

    def counted(function: Callable[..., object], *arguments: object) -> object:
        calls.append(function.__name__)
        return to_thread(function, *arguments)

    monkeypatch.setattr("grid.transfer.grid_packing.asyncio.to_thread", counted)

    async def case() -> None:
        servers = _Servers()
        files = packing(servers)
        for begin in range(0, 320, 32):
            await files.add([(f"file-{number}", os.urandom(size)) for number in range(begin, begin + 32)])
        await files.finish()
        found = [files.find(f"file-{number}") for number in range(320)]
        assert [each.offset for each in found if isinstance(each, SliceCap)] == [number * size for number in range(320)]
        assert [len(each) for each in servers.stored] == [320 * size]

    asyncio.run(case())
    assert calls == ["add_all"] * 10 * calls_of_a_group


def test_pack_that_cannot_be_stored_is_an_error_of_its_files_alone() -> None:
    async def case() -> None:
        files = packing(_Servers(1))
        await _add(files, 70, 2**18)
        await files.finish()
        error = files.find("file-0")
        assert isinstance(error, EndError) and "nobody is there" in str(error)
        assert isinstance(files.find("file-69"), SliceCap)

    asyncio.run(case())


def test_pack_that_is_old_is_stored_though_it_is_not_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.transfer.grid_packing.LONGEST_S", -1.0)

    async def case() -> None:
        servers = _Servers()
        files = packing(servers)
        await _add(files, 2, 100)
        await asyncio.sleep(0)
        assert [len(each) for each in servers.stored] == [100, 100]

    asyncio.run(case())


class _HoldingEnd(LocalEnd):
    """A directory in which files wait for each other. settled: names, as they came together."""

    def __init__(self, path: str, is_stored: Callable[[str], bool]) -> None:
        super().__init__(path)
        self._is_stored = is_stored
        self.settled: list[list[str]] = []

    def stores_together(self, size: int) -> bool:
        return False

    async def store(self, entry: Entry, body: Body) -> str:
        await super().store(entry, body)
        return PENDING

    def is_stored(self, name: str) -> bool:
        return self._is_stored(name)

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        self.settled.append(sorted(entry.name for entry, _ in stored))
        return {}


def test_files_that_wait_for_others_are_done_only_when_they_are_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("early", "late"):
        (source / name).write_bytes(b"x")
    end = _HoldingEnd(str(tmp_path / "target"), lambda name: name == "early")

    async def case() -> None:
        journal = Journal(tmp_path / "journal.sqlite")
        run = Transfer([LocalEnd(str(source))], end, journal, Plan())
        settle = run._settle

        async def twice(*, is_last: bool = False) -> None:
            await settle()
            assert (journal.count(DONE), end.settled) == (1, [["early"]])
            await settle(is_last=is_last)

        monkeypatch.setattr(run, "_settle", twice)
        outcome = await run.run()
        assert (outcome.copied, list(outcome.failures), journal.count(DONE)) == (2, [], 2)
        assert end.settled == [["early"], ["late"]]
        journal.close()

    asyncio.run(case())
