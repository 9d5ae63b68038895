"""A tree that goes through every kind of end and comes back as it was: contents, times, modes, and what S3 users noted."""

from __future__ import annotations

import asyncio
import os
import stat
import uuid
from pathlib import Path
from typing import Any

import pytest

from grid.node.local_grid import LocalGrid
from grid.transfer.ends import Entry
from grid.transfer.object_end import open_object_end
from tests.cli.command import new_directory
from tests.transfer.conftest import BUCKET
from tests.transfer.end_contract import BytesBody, listed
from tests.transfer.killed_transfer import killable_transfers
from tests.transfer.test_engine import contents

TIME_NS = 1_600_000_000 * 10**9
"""Whole seconds, for SFTP servers keep no others."""

Facts = dict[str, tuple[int, int]]


def facts_of(folder: Path) -> Facts:
    """Time and mode of each file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, stat.S_IMODE(path.stat().st_mode))
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_tree_goes_from_any_kind_of_end_to_any_other(
    s3: dict[str, str], sftp: tuple[str, Path], local_grid: LocalGrid, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / "d\u00e9ep").mkdir(parents=True)
    for name, size in (("small", 1000), ("d\u00e9ep/large", 9 * 2**20 + 5), ("d\u00e9ep/empty", 0)):
        (source / name).write_bytes(os.urandom(size))
        (source / name).chmod(0o640)
        os.utime(source / name, ns=(TIME_NS, TIME_NS))
    url, home = sftp
    ends = {
        "s3": f"s3://{BUCKET}/{uuid.uuid4()}", "sftp": f"{url}{tmp_path}/there", "grid": f"{new_directory(local_grid.client)}:new",
    }  # fmt: skip
    (tmp_path / "there").mkdir()
    # Each kind gives to each other one, and takes from it.
    way = ["s3", "sftp", "grid", "s3", "grid", "sftp", "s3"]

    def of(kind: str, number: int) -> str:
        return f"{ends[kind]}/{number}"

    with killable_transfers({**s3, "HOME": str(home)}) as transfers:

        def send(begin: str | Path, end: str | Path, name: str) -> dict[str, Any]:
            return transfers.transfer(begin, end, tmp_path / "state" / f"{name}.sqlite", client=local_grid.client)

        place: str | Path = source
        for number, kind in enumerate(way):
            done = send(place, of(kind, number), f"to-{number}")
            assert (done["copied"], done["failures"]) == (3, [])
            place = of(kind, number)
            for back in (tmp_path / f"back-{number}",):
                assert send(place, back, f"from-{number}")["copied"] == 3
                assert contents(back) == contents(source)
                assert facts_of(back) == facts_of(source)


def test_notes_of_an_object_come_with_it_to_the_grid_and_back(
    s3: dict[str, str], local_grid: LocalGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    begin, end = (f"s3://{BUCKET}/{uuid.uuid4()}" for _ in range(2))
    notes = {"Content-Type": "image/tiff", "lens": "50mm", "operator": "A. Nother"}

    async def put() -> None:
        entry = Entry(name="photo", size=3, mtime_ns=TIME_NS, attributes=notes)
        await open_object_end(begin, is_target=True).store(entry, BytesBody(b"abc"))

    async def look() -> tuple[dict[str, str], int | None]:
        target = open_object_end(end)
        opened = await target.open((await listed(target))["photo"])
        await opened.close()
        return dict(opened.entry.attributes), opened.entry.mtime_ns

    asyncio.run(put())
    place = f"{new_directory(local_grid.client)}:new"
    with killable_transfers(s3) as transfers:
        for number, (source, target) in enumerate(((begin, place), (place, end))):
            journal = tmp_path / "state" / f"{number}.sqlite"
            done = transfers.transfer(source, target, journal, client=local_grid.client)
            assert (done["copied"], done["failures"]) == (1, [])
    assert asyncio.run(look()) == (notes, TIME_NS)
