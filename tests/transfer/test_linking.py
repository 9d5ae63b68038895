"""When the files of a transfer get their links: in batches, while others are still being stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from grid.errors import GridError
from grid.transfer.ends import Body, Entry
from grid.transfer.local_end import LocalEnd
from tests.transfer.test_engine import send


class _SlowSettlingEnd(LocalEnd):
    """A directory whose last file is stored while the others are being put in their places."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._began = asyncio.Event()
        self.settled: set[str] = set()

    def stores_together(self, size: int) -> bool:
        return False

    async def store(self, entry: Entry, body: Body) -> str:
        await super().store(entry, body)
        if entry.name == "last":
            await self._began.wait()
        return "token"

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        self._began.set()
        for _ in range(20):
            await asyncio.sleep(0)
        self.settled |= {entry.name for entry, _ in stored}
        return {}


def test_files_that_are_being_settled_when_the_last_one_is_stored_are_settled_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.transfer.engine.SETTLE_S", 0.0)
    (tmp_path / "source").mkdir()
    for name in ("first", "last"):
        (tmp_path / "source" / name).write_bytes(b"x")
    end = _SlowSettlingEnd(str(tmp_path / "target"))
    assert send(tmp_path / "source", end, tmp_path).copied == 2
    assert end.settled == {"first", "last"}
