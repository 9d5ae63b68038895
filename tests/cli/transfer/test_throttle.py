"""`--bwlimit` of copies and backups, in virtual time: how long contents take, and what is free."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from grid.cli.terminal.progress import Tally
from grid.cli.transfer.database import LocalDatabase
from grid.cli.transfer.throttle import Throttle
from grid.cli.transfer.tree import FileFacts, Leaf, LocalOrigin
from grid.cli.transfer.upload import Uploader
from grid.ports import Buffer
from grid.transfer.rates import parse_schedule
from tests.support.tree_grid import TreeGrid

RATE = 2**20


@pytest.fixture
def grid() -> TreeGrid:
    return TreeGrid()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[LocalDatabase]:
    opened = LocalDatabase(tmp_path / "db", pytest.fail)
    yield opened
    opened.close()


def seconds_to_upload(
    grid: TreeGrid, database: LocalDatabase, folder: Path, sizes: list[int], rate: str | None, *, packs: bool = False
) -> float:
    """Virtual seconds that files take, one after the other."""
    schedule = None if rate is None else parse_schedule(rate)
    throttle = Throttle(grid.runtime.clock, schedule)
    uploader = Uploader(
        grid.store, database, Tally(0.0), lambda: None, follow_links=False, packs=packs, throttle=throttle
    )
    leaves = []
    for number, size in enumerate(sizes):
        path = folder / f"file-{number}"
        path.write_bytes(b"%d" % number + bytes(size - len(b"%d" % number)))
        leaves.append(Leaf(path.name, LocalOrigin(path=str(path), facts=FileFacts.of(path.stat()))))

    async def all_of_them() -> None:
        await uploader.pack(leaves)
        for leaf in leaves:
            assert isinstance(leaf.origin, LocalOrigin)
            await uploader.upload(leaf.origin.path)

    began_at = grid.runtime.clock.now()
    grid.runtime.run(all_of_them(), limit_s=1e12)
    return grid.runtime.clock.now() - began_at


@pytest.mark.parametrize("convergence", [b"secret", None])
@pytest.mark.parametrize(
    ("sizes", "packs"), [([8 * RATE], False), ([RATE // 16] * 128, False), ([RATE // 64] * 512, True)]
)
def test_files_when_limited_take_the_time_of_their_bytes_and_not_of_their_hashes(
    grid: TreeGrid,
    database: LocalDatabase,
    tmp_path: Path,
    convergence: bytes | None,
    sizes: list[int],
    packs: bool,
) -> None:
    grid.store = evolve(grid.store, grid=evolve(grid.store.grid, convergence=convergence))
    free = seconds_to_upload(grid, database, tmp_path, sizes, None, packs=packs)
    database.flush()
    other = tmp_path / "other"
    other.mkdir()
    limited = seconds_to_upload(grid, database, other, [size + 1 for size in sizes], "1M", packs=packs)
    wanted = sum(sizes) / 1e6
    assert wanted - 1 < limited - free < wanted + 1


def test_limit_when_the_schedule_says_so_changes(grid: TreeGrid) -> None:
    throttle = Throttle(grid.runtime.clock, parse_schedule("00:00,1M 00:00,1M"))
    began_at = grid.runtime.clock.now()
    grid.runtime.run(throttle.let_pass(10_000_000))
    assert 9.5 <= grid.runtime.clock.now() - began_at <= 10
    grid.runtime.run(Throttle(grid.runtime.clock, parse_schedule("off")).let_pass(10**12))
    assert grid.runtime.clock.now() - began_at <= 10


class _ListSink:
    """Keeps everything written to it."""

    def __init__(self) -> None:
        self.data = bytearray()

    async def write(self, data: Buffer) -> None:
        self.data += data


def test_sink_when_limited_takes_all_bytes_slowly(grid: TreeGrid) -> None:
    kept = _ListSink()
    throttle = Throttle(grid.runtime.clock, parse_schedule("1M"))
    sink = throttle.sink(kept)

    async def write() -> None:
        for number in range(5):
            await sink.write(bytes([number]) * 10**6)

    began_at = grid.runtime.clock.now()
    grid.runtime.run(write())
    assert 4.5 <= grid.runtime.clock.now() - began_at <= 5
    assert bytes(kept.data) == b"".join(bytes([number]) * 10**6 for number in range(5))
