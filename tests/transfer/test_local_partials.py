"""Incomplete files on a local disk: who writes to them, who may read them, and who removes them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from grid.ports import Buffer
from grid.transfer.ends import Entry, PassingError
from grid.transfer.local_end import LocalEnd
from tests.transfer.end_contract import BytesBody
from tests.transfer.test_engine import contents

MIB = 2**20


class _HalfBody(BytesBody):
    """Two ranges, the second of which fails once the first is being written."""

    def __init__(self, data: bytes, begun: threading.Event) -> None:
        half = len(data) // 2
        super().__init__(data, ranges=[(0, half), (half, half)])
        self._begun = begun

    async def fetch(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        if offset:
            await asyncio.to_thread(self._begun.wait)
            raise PassingError("the connection was lost")
        async for piece in super().fetch(offset, length):
            yield piece


def test_file_when_one_of_its_ranges_fails_is_closed_after_the_writes_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, closed = threading.Event(), threading.Event()
    written_late: list[bool] = []
    write, close = os.pwrite, os.close

    def slow_write(descriptor: int, data: Buffer, offset: int) -> int:
        begun.set()
        written_late.append(closed.wait(0.2))
        return write(descriptor, data, offset)

    def noted_close(descriptor: int) -> None:
        close(descriptor)
        closed.set()

    monkeypatch.setattr("grid.transfer.local_files.os.pwrite", slow_write)
    monkeypatch.setattr("grid.transfer.local_end.os.close", noted_close)
    body = _HalfBody(os.urandom(MIB), begun)
    with pytest.raises(PassingError):
        asyncio.run(LocalEnd(str(tmp_path)).store(Entry(name="file", size=body.size), body))

    assert written_late == [False]
    assert contents(tmp_path) == {}
