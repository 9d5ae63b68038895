"""Files that wait to be stored: in memory or on disk, their bytes are the same, and a full disk is an error of the system."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from grid.errors import NoSpaceError
from grid.filesystem import spool as spools
from grid.filesystem.spool import Spool
from grid.gateway.shared.spool import UnnamedFile


def test_bytes_when_some_are_on_disk_and_some_in_memory_are_read_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "SPOOLED_IN_MEMORY", 1000)
    monkeypatch.setattr(spools, "BATCH_SIZE", 300)
    source, written = random.Random(1), b""
    with Spool("data/file") as spool:
        for size in (400, 500, 200, 100, 250, 90):
            piece = source.randbytes(size)
            assert spool.write(piece) == size
            written += piece
            assert spool.tell() == len(written)
        for start, length in ((0, 5000), (1099, 2), (1400, 60), (1500, 10), (1539, 9), (1540, 1), (2000, 5), (0, 0)):
            assert spool.seek(start) == start
            assert spool.read(length) == written[start : start + length]
        assert spool.seek(0, os.SEEK_END) == len(written)


def test_write_when_the_disk_is_full_raises_an_error_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NoSpaceError("full")

    monkeypatch.setattr(UnnamedFile, "append", refuse)
    with Spool("data/file") as spool, pytest.raises(OSError, match="full"):
        spool.write(bytes(spools.SPOOLED_IN_MEMORY + 1))
