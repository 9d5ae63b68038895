"""Requests of a transfer that fail for a while, besides those for single files: they are made again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from grid.directory.pack import Child
from grid.errors import GridError, PeerError
from grid.extents.pack_writer import PackContents
from grid.transfer.ends import PENDING, Body, EndError, Entry, LeftOut, PassingError
from grid.transfer.grid_end import GridEnd
from grid.transfer.grid_listing import Linking
from grid.transfer.grid_packing import put_pack
from grid.transfer.local_end import LocalEnd
from tests.support.tree_grid import TreeGrid
from tests.transfer.test_changes_in_doubt import OLD, Session
from tests.transfer.test_engine import FAST, contents, send


class _FlakyEnd(LocalEnd):
    """A directory of which each kind of request fails a number of times. asked: how often each was made."""

    def __init__(self, path: Path, failing: int, error: type[GridError] = PassingError) -> None:
        super().__init__(str(path), is_target=True)
        self._failing, self._error = failing, error
        self.asked: dict[str, int] = {}

    def _count(self, kind: str) -> GridError | None:
        self.asked[kind] = self.asked.get(kind, 0) + 1
        return self._error(f"{kind}: lost") if self.asked[kind] <= self._failing else None

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        async for found in super().entries():
            yield found
            if (error := self._count("entries")) is not None:
                raise error

    def stores_together(self, size: int) -> bool:
        return False

    async def store(self, entry: Entry, body: Body) -> str:
        await super().store(entry, body)
        return "token"

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        error = self._count("settle")
        return {} if error is None else {entry.name: error for entry, _ in stored[:1]}

    async def remove(self, name: str) -> None:
        if (error := self._count("remove")) is not None:
            raise error
        await super().remove(name)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A source and a target with a file that the source lacks; retries do not wait."""
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    source, target = tmp_path / "source", tmp_path / "target"
    for folder, name in ((source, "a"), (source, "b"), (target, "old")):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return source, target


PLAN = evolve(FAST, delete=True, retries=2)


def test_file_that_never_gets_its_place_counts_as_failed_alone(folders: tuple[Path, Path], tmp_path: Path) -> None:
    end = _FlakyEnd(folders[1], failing=100)
    end.asked["entries"] = 100
    outcome = send(folders[0], end, tmp_path, evolve(PLAN, delete=False))
    assert (outcome.copied, outcome.linked, len(outcome.failures)) == (1, 0, 1)


def test_listing_placing_and_removing_when_they_fail_for_a_while_are_done_again(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    end = _FlakyEnd(folders[1], PLAN.retries)
    outcome = send(folders[0], end, tmp_path, PLAN)
    assert (outcome.copied, outcome.removed, list(outcome.failures)) == (2, 1, [])
    assert end.asked["settle"] == end.asked["remove"] == 3
    assert contents(folders[1]) == contents(folders[0])


@pytest.mark.parametrize(("error", "count"), [(PassingError, 3), (EndError, 1)])
def test_placing_when_it_fails_for_longer_fails_those_files_alone(
    folders: tuple[Path, Path], tmp_path: Path, error: type[GridError], count: int
) -> None:
    end = _FlakyEnd(folders[1], 10**6, error)
    end.asked["entries"] = 10**6
    outcome = send(folders[0], end, tmp_path, PLAN)
    assert (len(outcome.failures), end.asked["settle"]) == (1, count)


def test_placing_when_nothing_could_be_placed_is_tried_once_for_each_later_batch(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.transfer.engine.SETTLE_COUNT", 1)
    end = _FlakyEnd(folders[1], 10**6)
    end.asked["entries"] = 10**6
    outcome = send(folders[0], end, tmp_path, evolve(PLAN, transfers=1))
    assert (len(outcome.failures), end.asked["settle"]) == (2, PLAN.retries + 2)


def test_link_that_fails_for_a_while_is_made_again_and_undo_learns_what_was_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grid, seen = TreeGrid(), list[Any]()
    cap = grid.make(children={"a": Child(target=OLD, metadata={})}).cap
    end = GridEnd(Session(grid), cap, (), "work:", on_replaced=lambda _, found: seen.extend(found))  # type: ignore[arg-type]
    stored = [(Entry(name=name, size=3), PENDING) for name in "ab"]
    run, failures = Linking.run, [PeerError("gone")]

    async def flaky(linking: Linking) -> None:
        await run(linking)
        if failures:
            raise failures.pop()

    async def case() -> None:
        await end._packing_into(grid.store).add([(entry.name, bytes(100)) for entry, _ in stored])
        failed = await end.settle(stored)
        assert {name: str(error) for name, error in failed.items()} == dict.fromkeys("ab", "gone")
        assert await end.settle(stored) == {}
        assert set(await end.settle(stored)) == {"a", "b"}, "their pack is forgotten"

    monkeypatch.setattr(Linking, "run", flaky)
    asyncio.run(case())
    assert grid.names(cap) == ["a", "b"] and not seen


@pytest.mark.parametrize(("retries", "succeeds"), [(1, False), (3, True)])
def test_pack_when_servers_fail_for_a_while_is_stored_as_often_as_is_wanted(
    monkeypatch: pytest.MonkeyPatch, retries: int, *, succeeds: bool
) -> None:
    grid = TreeGrid()
    contents, asked = PackContents(b"secret", grid.runtime.entropy.random_bytes), list[int]()
    contents.add_all([bytes(1000)])
    put = grid.store.put_immutable

    async def flaky(*arguments: Any, **options: Any) -> Any:
        asked.append(len(asked))
        if len(asked) < 4:
            raise PeerError("gone")
        return await put(*arguments, **options)

    monkeypatch.setattr(
        type(grid.store), "put_immutable", lambda store, *arguments, **options: flaky(*arguments, **options)
    )
    if succeeds:
        grid.run(put_pack(grid.store, contents, retries))
    else:
        with pytest.raises(PeerError):
            grid.run(put_pack(grid.store, contents, retries))
    assert len(asked) == retries + 1
