"""Files that one program puts and the other reads, bit for bit, over Foolscap, on every mixture of servers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.interop.conftest import Pair

pytestmark = pytest.mark.interop

MIB = 2**20
SIZES = [0, 55, 56, MIB - 1, MIB, MIB + 1, 3_333_337, 10 * MIB]
"""Literal and not; around one segment; a multiple of no k; many segments."""


@pytest.mark.each_pair
@pytest.mark.parametrize("size", SIZES)
def test_file_put_by_tahoe_when_read_by_grid_is_the_same(pair: Pair, size: int, tmp_path: Path) -> None:
    source, target = new_file(tmp_path, size), tmp_path / "target"
    cap = pair.tahoe.put(source)
    pair.ours.get(cap, target)
    assert target.read_bytes() == source.read_bytes()


@pytest.mark.each_pair
@pytest.mark.parametrize("size", SIZES)
def test_file_put_by_grid_when_read_by_tahoe_is_the_same(pair: Pair, size: int, tmp_path: Path) -> None:
    source, target = new_file(tmp_path, size), tmp_path / "target"
    cap = pair.ours.put(source)
    pair.tahoe.get(cap, target)
    assert target.read_bytes() == source.read_bytes()


def test_command_lines_of_both_programs_exchange_a_file(usual_pair: Pair, tmp_path: Path) -> None:
    source, target = new_file(tmp_path, 2 * MIB + 17), tmp_path / "target"
    usual_pair.tahoe.cli_get(usual_pair.ours.put(source), target)
    assert target.read_bytes() == source.read_bytes()
    source = new_file(tmp_path, 2 * MIB + 18)
    target.unlink()
    usual_pair.ours.get(usual_pair.tahoe.cli_put(source), target)
    assert target.read_bytes() == source.read_bytes()


def test_range_of_a_file_put_by_tahoe_is_that_range(usual_pair: Pair, tmp_path: Path) -> None:
    source = new_file(tmp_path, 3_333_337)
    cap = usual_pair.tahoe.put(source)
    first, last = MIB - 100, MIB + 200_000
    assert usual_pair.ours.run("get", cap, "-", "--range", f"{first}-{last}") == source.read_bytes()[first : last + 1]


def test_stdin_put_by_grid_when_read_by_tahoe_is_the_same(usual_pair: Pair, tmp_path: Path) -> None:
    data = os.urandom(200_001)
    cap = usual_pair.ours.run("put", "-", data=data).decode("ascii").strip()
    usual_pair.tahoe.get(cap, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == data


def new_file(directory: Path, size: int) -> Path:
    """A file of bytes that no grid has seen."""
    path = directory / "source"
    path.write_bytes(os.urandom(size))
    return path
