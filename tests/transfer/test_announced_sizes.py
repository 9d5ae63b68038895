"""Sizes that a source announces, of which no byte may ever come: they cost no memory."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.transfer.body import Flow
from grid.transfer.choices import choose_ranges
from grid.transfer.digest import DigestKey
from grid.transfer.ends import EndError, Entry, KeptPart, SourceChangedError
from grid.transfer.object_end import open_object_end
from grid.transfer.partial_files import fill
from grid.transfer.rates import unlimited
from tests.transfer.conftest import require
from tests.transfer.end_contract import BytesBody
from tests.transfer.test_engine import FAST, LyingEnd, contents, send
from tests.transfer.test_resuming import Noted, resume

HUGE = 9 * 10**18


@given(st.integers(1, 60), st.integers(1, 20))
def test_ranges_are_a_sequence(size: int, chunk: int) -> None:
    ranges, whole = choose_ranges("chunked", size, chunk), list(choose_ranges("chunked", size, chunk))
    assert len(ranges) == len(whole) and ranges[:2] == whole[:2]
    assert [ranges[index] for index in range(len(ranges))] == whole
    assert not whole or ranges[-1] == whole[-1]
    with pytest.raises(IndexError):
        ranges[len(ranges)]


def test_memory_of_a_huge_file_is_that_of_some_ranges() -> None:
    tracemalloc.start()
    try:
        flow = Flow(
            mode="chunked",
            chunk_size=2**20,
            streams=4,
            slow=unlimited,
            advance=lambda count: None,
            digest_key=DigestKey(bytes(32)),
        )
        assert flow.memory_of(10**12) == flow.memory_of(2**30) == 2 * 4 * 2**20
        assert flow.memory_of(HUGE) > 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20, peak


def test_huge_file_that_never_comes_fails_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    outcome = send(LyingEnd(HUGE, [b"x"]), tmp_path / "target", tmp_path, FAST)
    assert [name for name, _ in outcome.failures] == ["lie"]
    assert not contents(tmp_path / "target")


def test_ranges_are_begun_as_others_end() -> None:
    tasks: list[int] = []

    class Counted:
        scratch, is_new = "", True

        async def write(self, offset: int, piece: object) -> None:
            tasks.append(len(asyncio.all_tasks()))
            await asyncio.sleep(0)

    data = bytes(1000)
    body = BytesBody(data, ranges=[(offset, 1) for offset in range(1000)])
    asyncio.run(fill(Counted(), body, []))  # type: ignore[arg-type]
    assert len(tasks) == 1000 and max(tasks) <= 65


def test_range_of_a_resumed_file_is_compared_with_the_end_of_the_others_only() -> None:
    class Counted(dict[int, KeptPart]):
        def values(self) -> Any:
            raise AssertionError("all ranges are compared")

    body = BytesBody(b"")
    body.parts = Noted()
    first = resume(body)
    first._known = Counted()
    for offset in range(3):
        first.examine(offset, b"x")
    with pytest.raises(SourceChangedError):
        first.examine(0, b"y")


def test_object_that_no_store_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    require("obstore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")

    class Body(BytesBody):
        def stream(self, offset: int = 0) -> AsyncIterator[bytes]:
            raise AssertionError("it is read")

    async def case() -> None:
        with pytest.raises(EndError, match="no store takes"):
            await open_object_end("s3://bucket", is_target=True).store(Entry(name="f"), Body(b"", HUGE))

    asyncio.run(case())
