"""Checks of many files at once: they all ask together, so that their questions share messages, and each pack is checked once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

from grid.caps import ChkCap, KnownCap, LitCap, SliceCap
from grid.transfer.grid_end import GridEnd
from grid.transfer.watching import CHECKED_TOGETHER


def chk(number: int) -> ChkCap:
    return ChkCap(key=b"%016d" % number, ueb_hash=bytes(32), needed=3, total=10, size=1000)


class _Session:
    """A grid whose checks end when all have begun, and which remembers what was checked. most: checks at once."""

    def __init__(self, expected: int) -> None:
        self.asked: Counter[KnownCap] = Counter()
        self._left, self._all = expected, asyncio.Event()

    async def store(self) -> _Session:
        return self

    async def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return await coroutine

    async def check(self, cap: KnownCap) -> object:
        self.asked[cap] += 1
        self._left -= 1
        if not self._left:
            self._all.set()
        await self._all.wait()
        return SimpleNamespace(healthy=True)


async def _check(files: dict[str, KnownCap], expected: int) -> _Session:
    session: Any = _Session(expected)
    end = GridEnd(session, LitCap(data=b""), [], "work:")
    for name, cap in files.items():
        end._remember(name, cap)
    async with asyncio.timeout(60):
        assert await end.check(list(files)) == {}
    assert isinstance(session, _Session)
    return session


def test_checks_of_many_files_are_all_under_way_at_once() -> None:
    files: dict[str, KnownCap] = {f"file-{number}": chk(number) for number in range(CHECKED_TOGETHER)}
    session = asyncio.run(_check(files, CHECKED_TOGETHER))
    assert session.asked == Counter(files.values())


def test_files_of_a_pack_are_checked_once_for_all_of_them() -> None:
    files: dict[str, KnownCap] = {
        f"file-{number}": SliceCap(pack=chk(number % 3), offset=number, length=1, key=bytes(16))
        for number in range(100)
    }
    session = asyncio.run(_check(files, 3))
    assert session.asked == Counter(map(chk, range(3)))
