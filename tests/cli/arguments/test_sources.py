"""Sources that `put` reads."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

import pytest
from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.python.failure import Failure

from grid.cli.arguments.sources import FileSource, SpooledFile, open_source
from grid.errors import GridError
from grid.ports import Buffer

T = TypeVar("T")


class _SameThread:
    """A CpuPool without threads."""

    width = 1

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        return maybeDeferred(function, *arguments) if arguments else succeed(function())


def _read(file: BinaryIO | SpooledFile, offset: int, length: int) -> Buffer:
    outcome: list[Buffer | Failure] = []
    source = FileSource(file, _SameThread())
    Deferred.fromCoroutine(source.read_at(offset, length)).addBoth(outcome.append)
    (result,) = outcome
    if isinstance(result, Failure):
        result.raiseException()
    assert not isinstance(result, Failure)
    return result


def test_file_is_read_at_any_offset(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(range(100)))
    with open_source(str(tmp_path / "f"), tmp_path / "spool") as file:
        assert FileSource(file, _SameThread()).size == 100
        assert _read(file, 90, 10) == bytes(range(90, 100))
        assert _read(file, 0, 3) == bytes(range(3))
        assert _read(file, 100, 0) == b""
    assert not (tmp_path / "spool").exists()


def test_file_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(100))
    with open_source(str(tmp_path / "f"), tmp_path / "spool") as file:
        os.truncate(tmp_path / "f", 50)
        with pytest.raises(GridError, match="shorter"):
            _read(file, 40, 20)


def test_pipe_is_spooled_where_nobody_else_can_see_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    data = os.urandom(3_000_000)
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(data))
    writer.start()
    with open_source(str(tmp_path / "pipe"), tmp_path / "spool") as file:
        writer.join()
        assert list((tmp_path / "spool").iterdir()) == []
        assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o700
        assert _read(file, 0, len(data)) == data


def test_missing_file_and_directory_are_os_errors(tmp_path: Path) -> None:
    for name, words in ((tmp_path / "missing", "No such file or directory"), (tmp_path, "directory; `grid cp -r`")):
        with pytest.raises(OSError, match=words), open_source(str(name), tmp_path / "spool"):
            pass


def test_spool_on_disk_reveals_nothing_of_the_contents(tmp_path: Path) -> None:
    text = b"a line that nobody else is to read\n" * 50_000
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(text))
    writer.start()
    with open_source(str(tmp_path / "pipe"), tmp_path / "spool") as file:
        writer.join()
        stored = os.pread(file.fileno(), len(text), 0)
        assert len(stored) == len(text) and b"nobody" not in stored
        assert _read(file, 1_000_003, 500) == text[1_000_003:1_000_503]
        assert _read(file, 0, len(text)) == text
