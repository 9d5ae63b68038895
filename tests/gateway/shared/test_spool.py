"""Request bodies kept in memory or in an encrypted file."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.errors import GridError, NoSpaceError
from grid.gateway.shared.spool import BATCH_SIZE, LEAST_BATCH, PART_SIZE, Spool, SpoolFolder, in_parts
from grid.ports import Buffer
from tests.support.scripted_grid import noise
from tests.support.virtual_time import VirtualRuntime


def spool(directory: Path, pieces: list[bytes], observe: Callable[[Buffer], None] | None = None) -> bytes:
    """What can be read of a body that came in these pieces, in two parts."""
    runtime = VirtualRuntime()
    size = sum(map(len, pieces))

    async def body() -> bytes:
        with Spool(SpoolFolder(directory), runtime.cpu, observe) as kept:
            for piece in pieces:
                await kept.write(piece)
            await kept.finish()
            assert kept.size == size
            assert list(directory.iterdir()) == []
            first = await kept.read_at(0, size // 3)
            return bytes(first) + bytes(await kept.read_at(size // 3, size - size // 3))

    return runtime.run(body())


@pytest.mark.parametrize("size", [0, 1, BATCH_SIZE - 1, BATCH_SIZE, BATCH_SIZE + 1, 3 * BATCH_SIZE + 5])
@pytest.mark.parametrize("step", [1000, 65536, 5 * BATCH_SIZE])
def test_body_when_it_came_in_any_pieces_then_is_read_back(tmp_path: Path, size: int, step: int) -> None:
    data = noise(size)
    seen = bytearray()
    assert spool(tmp_path, [data[start : start + step] for start in range(0, size, step)], seen.extend) == data
    assert seen == (data if size > BATCH_SIZE else b"")


def test_body_when_it_comes_in_pieces_is_encrypted_written_and_hashed_in_larger_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, seen = [], []
    write = os.write

    def count(descriptor: int, data: Buffer) -> int:
        written.append(len(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", count)
    data = noise(4 * BATCH_SIZE)
    pieces = [data[start : start + 30_000] for start in range(0, len(data), 30_000)]
    assert spool(tmp_path, pieces, lambda part: seen.append(len(part))) == data
    assert written == seen and sum(written) == len(data)
    assert sorted(written, reverse=True)[: len(data) // PART_SIZE - 4] == [PART_SIZE] * (len(data) // PART_SIZE - 4)
    assert len(written) <= len(data) // PART_SIZE + 4


def test_body_when_the_system_writes_only_a_part_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: len(data) // 2 + 1]))
    data = noise(2 * BATCH_SIZE)
    assert spool(tmp_path, [data]) == data


@given(st.lists(st.binary(max_size=9)), st.integers(1, 7))
def test_parts_when_pieces_have_any_sizes_have_all_bytes_and_one_size(pieces: list[bytes], size: int) -> None:
    parts = [bytes(part) for part in in_parts(pieces, size)]
    assert b"".join(parts) == b"".join(pieces)
    assert all(len(part) == size for part in parts[:-1]) and all(0 < len(part) <= size for part in parts)


def test_body_when_it_comes_in_tiny_pieces_then_is_read_back(tmp_path: Path) -> None:
    assert spool(tmp_path, [b"ab"] * 5000) == b"ab" * 5000


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, BATCH_SIZE), max_size=8))
def test_body_when_pieces_have_any_sizes_then_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    pieces = [noise(BATCH_SIZE, seed % 3)[:size] for seed, size in enumerate(sizes)]
    assert spool(tmp_path_factory.mktemp("spool"), pieces) == b"".join(pieces)


def test_spool_when_left_then_its_file_is_closed(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    spool(tmp_path, [noise(2 * BATCH_SIZE)])
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_spool_when_it_was_closed_then_takes_and_gives_nothing_more(tmp_path: Path) -> None:
    runtime = VirtualRuntime()

    async def body() -> None:
        with Spool(SpoolFolder(tmp_path), runtime.cpu) as kept:
            await kept.write(noise(2 * BATCH_SIZE))
            await kept.finish()
            file = kept._file
        assert file is not None
        with pytest.raises(GridError, match="abandoned"):
            file.read(0, 10)

    runtime.run(body())


def test_spool_when_the_disk_has_no_room_then_says_so_before_anything_comes(tmp_path: Path) -> None:
    runtime = VirtualRuntime()
    room = os.statvfs(tmp_path)
    free = room.f_bavail * room.f_frsize

    async def body() -> None:
        with Spool(SpoolFolder(tmp_path), runtime.cpu) as kept:
            await kept.expect(None)
            await kept.expect(BATCH_SIZE + 1)
            for size in (free, 2**62):
                with pytest.raises(NoSpaceError):
                    await kept.expect(size)

    runtime.run(body())


def test_spool_when_its_folder_is_missing_then_says_so(tmp_path: Path) -> None:
    with pytest.raises(GridError, match="cannot be spooled"):
        spool(tmp_path / "missing", [noise(2 * BATCH_SIZE)])


def test_spool_when_its_file_is_inspected_then_reveals_nothing_of_the_body(tmp_path: Path) -> None:
    """Read through /proc, as somebody would find the file on disk after the process was killed."""
    runtime = VirtualRuntime()
    data = b"the same words again and again. " * (3 * BATCH_SIZE // 32)

    async def body() -> bytes:
        with Spool(SpoolFolder(tmp_path), runtime.cpu) as kept:
            await kept.write(data)
            await kept.finish()
            found = [
                Path(f"/proc/self/fd/{entry}").read_bytes()
                for entry in os.listdir("/proc/self/fd")
                if os.path.realpath(f"/proc/self/fd/{entry}").startswith(f"{tmp_path}/")
            ]
            assert [len(content) for content in found] == [len(data)]
            return found[0]

    on_disk = runtime.run(body())
    assert b"the same words" not in on_disk
    assert len({on_disk[start : start + 32] for start in range(0, 32000, 32)}) == 1000


def test_spools_of_many_slow_clients_when_their_memory_is_taken_keep_little_more_in_it(tmp_path: Path) -> None:
    runtime = VirtualRuntime()
    folder = SpoolFolder(tmp_path, shared=2 * BATCH_SIZE)
    piece, count = LEAST_BATCH // 2, 20

    async def body() -> None:
        with ExitStack() as closing:
            kept = [closing.enter_context(Spool(folder, runtime.cpu)) for _ in range(count)]
            for _ in range(BATCH_SIZE // piece):
                for each in kept:
                    await each.write(noise(piece))
                    assert folder.held_size <= 2 * BATCH_SIZE + count * (LEAST_BATCH + piece)
            for each in kept:
                await each.finish()
                assert await each.read_at(0, BATCH_SIZE) == noise(piece) * (BATCH_SIZE // piece)
        assert folder.held_size == 0

    runtime.run(body())
