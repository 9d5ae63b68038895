"""Parses share files on a storage node's disk. [spec storage-server 2, 3]"""

from __future__ import annotations

import struct
from pathlib import Path

from attrs import frozen

from grid.caps import ChkCap, parse_cap
from grid.codec import base32
from perf.processes.process_grid import ProcessGrid

_HEADER = struct.Struct(">LLL")
_LEASE_SIZE = 72


@frozen
class Container:
    """An immutable share file: header fields, the share itself, and its lease records of 72 bytes."""

    version: int
    size_field: int
    share: bytes
    leases: tuple[bytes, ...]

    @property
    def format(self) -> tuple[int, int, int]:
        """Everything outside the share that does not depend on who uploaded it and when."""
        return self.version, self.size_field, len(self.leases)


def read_container(path: Path) -> Container:
    """The share file taken apart."""
    data = path.read_bytes()
    version, size_field, lease_count = _HEADER.unpack_from(data)
    end = len(data) - _LEASE_SIZE * lease_count
    leases = tuple(data[start : start + _LEASE_SIZE] for start in range(end, len(data), _LEASE_SIZE))
    return Container(version, size_field, data[_HEADER.size : end], leases)


def share_paths(grid: ProcessGrid, cap: str) -> dict[int, list[Path]]:
    """Where the shares of a CHK file are, by share number."""
    parsed = parse_cap(cap)
    assert isinstance(parsed, ChkCap)
    return grid.shares(base32.encode(parsed.storage_index))


def read_shares(grid: ProcessGrid, cap: str) -> dict[int, Container]:
    """Every share of a CHK file by number; where a number is stored more than once, the shares must be equal."""
    found: dict[int, Container] = {}
    for number, paths in share_paths(grid, cap).items():
        containers = [read_container(path) for path in paths]
        assert {container.share for container in containers} == {containers[0].share}
        found[number] = containers[0]
    return found


def delete_shares(grid: ProcessGrid, cap: str, numbers: set[int] | None = None) -> None:
    """Remove those shares of a CHK file (None: all of them) from every node's disk."""
    for number, paths in share_paths(grid, cap).items():
        if numbers is None or number in numbers:
            for path in paths:
                path.unlink()


def flip_bit(path: Path, share_offset: int) -> None:
    """Change one bit of the share in a share file."""
    with path.open("r+b") as file:
        file.seek(_HEADER.size + share_offset)
        (value,) = file.read(1)
        file.seek(_HEADER.size + share_offset)
        file.write(bytes([value ^ 1]))
