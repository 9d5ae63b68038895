"""Sizes that a source announces, of which no byte may ever come: they cost no memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.crypto.multi_buffer import GrowingHash, grow_together
from grid.ports import Buffer
from grid.transfer.body import BLOCK, ContentDigest, Flow
from grid.transfer.choices import choose_ranges
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
        flow = Flow(mode="chunked", chunk_size=2**20, streams=4, slow=unlimited, advance=lambda count: None)
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


def test_blocks_that_are_complete_are_kept_as_digests() -> None:
    digest, data = ContentDigest(), os.urandom(3 * BLOCK + 5)
    for offset in (BLOCK, 0, 2 * BLOCK, 3 * BLOCK, BLOCK):
        for begin in range(offset, min(offset + BLOCK, len(data)), BLOCK // 2):
            digest.add(begin, data[begin : min(begin + BLOCK // 2, offset + BLOCK)])
    blocks = b"".join(hashlib.sha256(data[begin : begin + BLOCK]).digest() for begin in range(0, len(data), BLOCK))
    assert digest.hexdigest() == hashlib.sha256(blocks).hexdigest()
    assert len(digest._blocks) == 1


def test_blocks_of_one_piece_are_hashed_in_one_call_and_beside_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[int]] = []

    def grow(hashes: Sequence[GrowingHash], pieces: Sequence[Buffer]) -> None:
        calls.append([len(piece) for piece in pieces])
        grow_together(hashes, pieces)

    monkeypatch.setattr("grid.transfer.body.grow_together", grow)
    digest, whole, data = ContentDigest(), GrowingHash(), os.urandom(3 * BLOCK + 5)
    digest.add(0, data[:7])
    digest.add(7, data[7:])
    assert calls == [[7], [BLOCK - 7, BLOCK, BLOCK, 5]]
    blocks = [hashlib.sha256(data[begin : begin + BLOCK]).digest() for begin in range(0, len(data), BLOCK)]
    assert digest.of_range(0, len(data)) == b"".join(blocks)
    digest.add(BLOCK, data[BLOCK:], whole)
    assert calls[2:] == [[2 * BLOCK + 5, BLOCK, BLOCK, 5]]
    assert (digest.of_range(0, len(data)), whole.digest()) == (b"".join(blocks), hashlib.sha256(data[BLOCK:]).digest())


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
        def stream(self, offset: int = 0, *, hashes: bool = True) -> AsyncIterator[bytes]:
            raise AssertionError("it is read")

    async def case() -> None:
        with pytest.raises(EndError, match="no store takes"):
            await open_object_end("s3://bucket", is_target=True).store(Entry(name="f"), Body(b"", HUGE))

    asyncio.run(case())
