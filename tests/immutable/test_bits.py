"""Every bit that a cap vouches for: flipped in one share, in all shares, found by verify, fixed by repair."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grid.errors import GridError
from grid.immutable.share.layout import parse_header
from tests.support.depth import DEEP, spread
from tests.support.scripted_grid import ScriptedGrid, encoded, noise
from tests.support.shares import EncodedFile

# Three segments of two-of-three with a padded tail, and one of one-of-one: every section, every kind of tree.
FILES = [encoded(noise(130), 2, 3, 48), encoded(noise(57, seed=1), 1, 1, 1000), encoded(noise(101, seed=2), 3, 10, 102)]

STEP = 3
"""The smallest field has four bytes: with every third one tried, each field is."""


def vouched(share: bytes, *, verifying: bool) -> Iterator[int]:
    """Offsets of the bytes that a reader, or a verifier, depends on."""
    layout = parse_header(share)
    ignored = {*range(4, 12)}  # block size and data size
    ignored |= {*range(layout.plaintext_tree_offset, layout.crypttext_tree_offset)}
    if not verifying:
        ignored |= {*range(0x10, 0x14)}  # where the plaintext tree is
    yield from (offset for offset in range(len(share)) if offset not in ignored)


def laid(file: EncodedFile) -> ScriptedGrid:
    grid = ScriptedGrid(len(file.shares))
    grid.lay(file)
    return grid


def flip(share: bytes, offset: int, bit: int) -> bytes:
    changed = bytearray(share)
    changed[offset] ^= 1 << bit
    return bytes(changed)


TEXTS = {FILES[0].cap: noise(130), FILES[1].cap: noise(57, seed=1), FILES[2].cap: noise(101, seed=2)}


@pytest.mark.parametrize("index", range(3))
def test_get_when_any_bit_of_one_share_is_flipped_gives_the_file_or_says_so(index: int) -> None:
    file = FILES[index]
    spare = file.cap.total > file.cap.needed
    for offset in spread(range(len(file.shares[0])), STEP):
        grid = laid(file)
        grid.servers[0].shares[file.cap.storage_index][0] = flip(file.shares[0], offset, offset % 8)
        try:
            assert grid.get(file.cap) == TEXTS[file.cap]
        except GridError:
            assert not spare


@pytest.mark.parametrize("index", range(3))
def test_get_when_any_bit_is_flipped_in_all_shares_gives_the_file_or_says_so(index: int) -> None:
    file = FILES[index]
    refused = 0
    for offset in spread(range(len(file.shares[0])), STEP):
        grid = laid(file)
        for number, share in enumerate(file.shares):
            grid.servers[number].shares[file.cap.storage_index][number] = flip(share, offset, (offset * 3 + 1) % 8)
        try:
            assert grid.get(file.cap) == TEXTS[file.cap]
        except GridError:
            refused += 1
            assert grid.now < 400
    assert refused > (300 if DEEP else 300 / STEP)


def test_get_when_any_bit_of_all_shares_of_one_file_is_flipped_never_gives_wrong_bytes() -> None:
    file = FILES[1]
    for offset in spread(range(len(file.shares[0])), STEP):
        for bit in range(8):
            grid = laid(file)
            grid.servers[0].shares[file.cap.storage_index][0] = flip(file.shares[0], offset, bit)
            try:
                assert grid.get(file.cap) == TEXTS[file.cap]
            except GridError:
                pass


@pytest.mark.parametrize("index", range(3))
def test_verify_when_any_vouched_bit_is_flipped_finds_it(index: int) -> None:
    file = FILES[index]
    numbers = range(len(file.shares)) if index == 0 else [0]
    for number in numbers:
        for offset in spread(list(vouched(file.shares[number], verifying=True)), STEP):
            for bit in range(8) if index == 1 else [offset % 8]:
                grid = laid(file)
                held = grid.servers[number].shares[file.cap.storage_index]
                held[number] = flip(held[number], offset, bit)
                result = grid.check(file.cap)
                assert not result.healthy, (offset, bit)
                bad = [share for _, share in (*result.corrupt, *result.incompatible)]
                assert bad == [number], (offset, bit)
                assert set(result.sharemap) == set(range(len(file.shares))) - {number}


@pytest.mark.parametrize("index", range(3))
def test_verify_when_only_ignored_bytes_differ_is_content(index: int) -> None:
    file = FILES[index]
    ignored = set(range(len(file.shares[0]))) - set(vouched(file.shares[0], verifying=True))
    assert len(ignored) > 30
    for offset in ignored:
        grid = laid(file)
        held = grid.servers[0].shares[file.cap.storage_index]
        held[0] = flip(held[0], offset, 3) + b"bytes behind the end"
        assert grid.check(file.cap).healthy


@pytest.mark.parametrize("index", [0, 2])
def test_repair_when_any_vouched_bit_is_flipped_makes_the_same_share_again(index: int) -> None:
    file = FILES[index]
    for offset in spread(list(vouched(file.shares[1], verifying=True))[::7], STEP):
        grid = laid(file)
        held = grid.servers[1].shares[file.cap.storage_index]
        held[1] = flip(held[1], offset, offset % 8)
        result = grid.repair(file.cap.verify_cap())
        assert result.attempted and result.successful
        assert file.shares[1] in grid.shares(file.cap.storage_index)[1]
        assert all(grid.shares(file.cap.storage_index)[n] == {file.shares[n]} for n in range(2, len(file.shares)))
        assert grid.check(file.cap).healthy
        assert not grid.debris()


@pytest.mark.parametrize("cut", [0, 1, 35, 36, 60, 200, -1])
def test_verify_when_a_share_is_cut_short_finds_it(cut: int) -> None:
    file = FILES[0]
    grid = laid(file)
    held = grid.servers[2].shares[file.cap.storage_index]
    held[2] = held[2][:cut]
    result = grid.check(file.cap)
    assert [share for _, share in result.corrupt] == [2]
    assert grid.get(file.cap) == TEXTS[file.cap]
