"""Contents being written, in any order: the same as those of an ordinary file."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.errors import DataTooLargeError, GridError, NoSpaceError
from grid.gateway.shared.spool import BATCH_SIZE, LEAST_BATCH, SpoolFolder
from grid.ports import Buffer
from grid.sftp.scratch import FEW_PIECES, MOST_HOLE, PIECE_COST, OldContents, PieceRoom, Scratch
from tests.support.virtual_time import InlineCpu

OLD = bytes(range(100))
UNIT = 2**12
"""Bytes for one, where contents are to be large."""

T = TypeVar("T")
Step = tuple[str, int, bytes]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 300), st.binary(max_size=60)),
        st.tuples(st.just("truncate"), st.integers(0, 300), st.just(b"")),
        st.tuples(st.just("settle"), st.just(0), st.just(b"")),
    ),
    max_size=20,
)


def old_contents(data: bytes) -> OldContents:
    async def fetch(offset: int, length: int) -> Buffer:
        assert offset >= 0 and offset + length <= len(data) and length
        return data[offset : offset + length]

    return OldContents(len(data), fetch)


def stretched(data: bytes, unit: int) -> bytes:
    """Each byte as often as that."""
    return b"".join(bytes([byte]) * unit for byte in data)


def result(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine that never waits returns."""
    found: list[T] = []
    failed: list[Failure] = []
    Deferred.fromCoroutine(work).addCallbacks(found.append, failed.append)
    if failed:
        failed[0].raiseException()
    return found[0]


def apply(wanted: bytearray, step: Step) -> None:
    """The same on bytes."""
    kind, offset, data = step
    if kind == "truncate":
        del wanted[offset:]
        wanted.extend(bytes(offset - len(wanted)))
    elif kind == "write" and data:
        wanted.extend(bytes(max(0, offset - len(wanted))))
        wanted[offset : offset + len(data)] = data


@pytest.mark.parametrize("unit", [1, UNIT], ids=["in memory", "on the disk"])
@pytest.mark.parametrize("is_new", [True, False])
def test_contents_when_written_in_any_order_are_those_of_a_file(unit: int, is_new: bool, tmp_path: Path) -> None:
    before = b"" if is_new else stretched(OLD, unit)

    @given(STEPS)
    def check(steps: list[Step]) -> None:
        wanted = bytearray(before)
        scratch = Scratch(SpoolFolder(tmp_path, 0), InlineCpu(), room, None if is_new else old_contents(before))
        for kind, place, some in steps:
            offset, data = place * unit, stretched(some, unit)
            apply(wanted, (kind, offset, data))
            if kind == "write":
                result(scratch.write(offset, data))
            elif kind == "truncate":
                scratch.truncate(offset)
            else:
                result(scratch.settle())
            assert scratch.size == len(wanted)
        assert bytes(result(scratch.read_at(0, len(wanted))) if wanted else b"") == wanted
        for start, stop in scratch.written:
            assert 0 <= start < stop <= len(wanted)
        scratch.close()
        assert room.taken == 0

    room = PieceRoom()
    check()


def test_contents_when_they_are_large_leave_memory_for_the_disk(tmp_path: Path) -> None:
    folder = SpoolFolder(tmp_path)
    scratch = Scratch(folder, InlineCpu(), PieceRoom())
    for index in range(5):
        result(scratch.write(index * BATCH_SIZE, bytes([index]) * BATCH_SIZE))
    assert folder.held_size <= BATCH_SIZE
    assert bytes(result(scratch.read_at(BATCH_SIZE - 1, 2))) == b"\0\1"
    assert scratch.written == [(0, 5 * BATCH_SIZE)]
    scratch.close()
    assert folder.held_size == 0


def test_hole_when_it_is_huge_is_refused(tmp_path: Path) -> None:
    scratch = Scratch(SpoolFolder(tmp_path), InlineCpu(), PieceRoom())
    with pytest.raises(DataTooLargeError):
        result(scratch.write(MOST_HOLE + 1, b"x"))
    with pytest.raises(DataTooLargeError):
        scratch.truncate(MOST_HOLE + 1)
    assert scratch.size == 0
    scratch.close()
    with pytest.raises(GridError, match="closed"):
        result(scratch.write(0, b"x"))


def test_writes_when_of_single_bytes_take_no_more_memory_than_others(tmp_path: Path) -> None:
    folder = SpoolFolder(tmp_path)
    scratch = Scratch(folder, InlineCpu(), PieceRoom())
    for offset in range(20_000):
        result(scratch.write(offset, b"x"))
        assert folder.held_size <= BATCH_SIZE + PIECE_COST
    assert bytes(result(scratch.read_at(0, 20_000))) == b"x" * 20_000
    scratch.close()
    assert folder.held_size == 0


def test_file_when_it_is_in_too_many_pieces_is_refused_while_others_go_on(tmp_path: Path) -> None:
    folder, room = SpoolFolder(tmp_path), PieceRoom(size=1000)
    scattered, orderly = (Scratch(folder, InlineCpu(), room) for _ in range(2))
    for offset in range(1000):
        result(scattered.write(2 * offset, b"x"))
    with pytest.raises(DataTooLargeError, match="pieces"):
        result(scattered.write(2000, b"x"))
    assert room.taken == room.size
    for offset in range(1000):
        result(orderly.write(offset, b"y"))
    for number in range(1, FEW_PIECES):
        result(orderly.write(1000 + 2 * number, b"y"))
    with pytest.raises(DataTooLargeError, match="pieces"):
        result(orderly.write(5000, b"y"))
    scattered.close()
    result(orderly.write(5000, b"y"))
    orderly.close()
    assert room.taken == 0


class Seen:
    """A hasher that keeps what it is given."""

    def __init__(self) -> None:
        self.data = b""

    def update(self, data: Buffer) -> None:
        self.data += data


@pytest.mark.parametrize("size", [1, BATCH_SIZE - 1, BATCH_SIZE, 3 * BATCH_SIZE + 5])
def test_file_when_it_is_written_in_order_is_hashed_as_it_arrives(tmp_path: Path, size: int) -> None:
    key: Any = Seen()
    contents = random.Random(size).randbytes(size)
    scratch = Scratch(SpoolFolder(tmp_path), InlineCpu(), PieceRoom(), None, key)
    for offset in range(0, size, 200_000):
        result(scratch.write(offset, contents[offset : offset + 200_000]))
    assert len(key.data) >= size - BATCH_SIZE - 200_000
    assert [result(scratch.finish())] == [key]
    assert key.data == contents
    result(scratch.write(size, b"more"))
    assert [result(scratch.finish())] == [key]
    assert key.data == contents + b"more"
    scratch.close()


@pytest.mark.parametrize("change", ["gap", "overwritten", "cut", "in the middle of old contents"])
def test_file_when_it_is_not_written_in_order_has_no_hash_yet(tmp_path: Path, change: str) -> None:
    key: Any = Seen()
    old = old_contents(OLD) if "old" in change else None
    scratch = Scratch(SpoolFolder(tmp_path), InlineCpu(), PieceRoom(), old, key)
    result(scratch.write(0 if change in ("overwritten", "cut") else 10, b"first part"))
    if change == "overwritten":
        result(scratch.write(3, b"again"))
    if change == "cut":
        scratch.truncate(4)
    result(scratch.settle())
    assert result(scratch.finish()) is None
    scratch.close()


def test_file_when_old_contents_follow_what_was_written_is_hashed_whole(tmp_path: Path) -> None:
    key: Any = Seen()
    scratch = Scratch(SpoolFolder(tmp_path), InlineCpu(), PieceRoom(), old_contents(OLD), key)
    result(scratch.write(0, b"first part"))
    result(scratch.settle())
    assert [result(scratch.finish())] == [key]
    assert key.data == b"first part" + OLD[10:]
    scratch.close()


@define
class SlowCpu:
    """A pool that does nothing until the test says so."""

    width: int = 1
    calls: list[tuple[Deferred[Any], Callable[[], Any]]] = field(factory=list)

    def run(self, function: Callable[..., Any], *arguments: object) -> Deferred[Any]:
        self.calls.append((Deferred(), lambda: function(*arguments)))
        return self.calls[-1][0]

    def do(self, error: Exception | None = None) -> None:
        """The first of the calls."""
        answer, call = self.calls.pop(0)
        answer.errback(error) if error else answer.callback(call())


def begun(work: Coroutine[Any, Any, T]) -> list[Any]:
    """What a coroutine returns or raises, once it does."""
    found: list[Any] = []
    Deferred.fromCoroutine(work).addCallbacks(found.append, lambda failure: found.append(failure.value))
    return found


def test_writes_when_a_batch_is_being_written_go_on_until_the_next_one_is_complete(tmp_path: Path) -> None:
    key: Any = Seen()
    cpu, folder, part = SlowCpu(), SpoolFolder(tmp_path), BATCH_SIZE // 4
    scratch = Scratch(folder, cpu, PieceRoom(), None, key)
    contents = random.Random(1).randbytes(12 * part)
    written = [offset for offset in range(0, 12 * part, part) if scratch.write_now(offset, contents[offset:][:part])]
    assert written == [index * part for index in range(8)] and len(cpu.calls) == 1
    assert folder.held_size <= 2 * BATCH_SIZE + 8 * PIECE_COST
    waiting = begun(scratch.write(8 * part, contents[8 * part :][:part]))
    assert waiting == [] and scratch.size == 8 * part
    assert bytes(result(scratch.read_at(0, 8 * part))) == contents[: 8 * part]
    cpu.do()
    assert waiting == [None] and len(cpu.calls) == 1
    assert folder.held_size <= 2 * BATCH_SIZE + 8 * PIECE_COST
    assert all(scratch.write_now(offset, contents[offset:][:part]) for offset in range(9 * part, 12 * part, part))
    finished = begun(scratch.finish())
    while cpu.calls:
        cpu.do()
    assert finished == [key] and key.data == contents
    reading = begun(scratch.read_at(0, 12 * part))
    while cpu.calls:
        cpu.do()
    assert bytes(reading[0]) == contents
    scratch.close()
    assert folder.held_size == 0


def test_batch_when_it_cannot_be_written_fails_whatever_comes_later(tmp_path: Path) -> None:
    cpu, folder = SlowCpu(), SpoolFolder(tmp_path)
    scratch = Scratch(folder, cpu, PieceRoom())
    assert scratch.write_now(0, bytes(BATCH_SIZE + 1)) and scratch.write_now(BATCH_SIZE + 1, bytes(BATCH_SIZE + 1))
    waiting, finished = begun(scratch.write(0, b"x")), begun(scratch.finish())
    cpu.do(NoSpaceError("the disk is full"))
    outcomes = [*waiting, *finished, *begun(scratch.write(0, b"x")), *begun(scratch.read_at(0, 1))]
    assert [type(outcome) for outcome in outcomes] == [NoSpaceError] * 4
    assert not scratch.write_now(0, b"x")
    scratch.close()
    assert folder.held_size == 0


def test_file_when_it_is_closed_while_a_batch_is_being_written_leaves_nothing(tmp_path: Path) -> None:
    cpu, folder = SlowCpu(), SpoolFolder(tmp_path)
    scratch = Scratch(folder, cpu, PieceRoom())
    assert scratch.write_now(0, bytes(BATCH_SIZE + 1))
    waiting = begun(scratch.finish())
    scratch.close()
    while cpu.calls:
        cpu.do()
    assert [str(error) for error in waiting] == ["the file was closed"]
    assert folder.held_size == 0 and list(tmp_path.iterdir()) == []


def test_writes_when_all_files_hold_too_much_wait_for_the_disk(tmp_path: Path) -> None:
    cpu, folder = SlowCpu(), SpoolFolder(tmp_path, 0)
    scratch = Scratch(folder, cpu, PieceRoom())
    assert begun(scratch.write(0, b"x")) == [None]
    assert not scratch.write_now(1, b"y")
    waiting = begun(scratch.write(1, bytes(LEAST_BATCH)))
    assert waiting == []
    cpu.do()
    assert waiting == [None] and folder.held_size == 0
    scratch.close()
