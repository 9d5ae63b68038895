"""Targets that `get` writes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click
import pytest
from twisted.internet.defer import Deferred, succeed

from grid.cli.arguments.targets import DescriptorSink, TextSink, open_target

T = TypeVar("T")


class _SameThread:
    """A CpuPool without threads."""

    width = 1

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        return succeed(function(*arguments))


async def test_terminal_shows_a_text_and_refuses_what_looks_binary(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    with shown.open("wb") as terminal:
        for text in (b"", "résumé\n".encode(), ("é" * 5000).encode()):
            sink = TextSink(terminal.fileno(), _SameThread())
            await sink.write(text)
            assert sink.written == len(text)
        size = shown.stat().st_size
        for data in (b"a\0b", b"\xff\xd8\xff\xe0", bytes(range(256))):
            with pytest.raises(click.UsageError, match="name a FILE"):
                await TextSink(terminal.fileno(), _SameThread()).write(data)
        assert shown.stat().st_size == size


def test_target_appears_whole_at_the_end(tmp_path: Path) -> None:
    with open_target(str(tmp_path / "t")) as descriptor:
        os.write(descriptor, b"data")
        assert not (tmp_path / "t").exists()
    assert (tmp_path / "t").read_bytes() == b"data"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_failed_write_leaves_the_old_target_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"old")

    def interrupted() -> None:
        with open_target(str(tmp_path / "t")) as descriptor:
            os.write(descriptor, b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "t").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_replaced_target_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"old")
    (tmp_path / "t").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "t")
    with open_target(str(tmp_path / "link")) as descriptor:
        os.write(descriptor, b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "t").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o640


def test_new_target_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        with open_target(str(tmp_path / "t")):
            pass
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o640


def test_killed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"old")
    program = (
        "import os, signal, sys\n"
        "from grid.cli.arguments.targets import open_target\n"
        "with open_target(sys.argv[1]) as descriptor:\n"
        "    os.write(descriptor, b'new')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "t")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("t", b"old")]


def test_file_system_without_unnamed_files_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As on such a file system, where the flag is read as O_DIRECTORY: opening a directory to write is refused.
    monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY)
    with open_target(str(tmp_path / "t")) as descriptor:
        os.write(descriptor, b"data")
        assert len(list(tmp_path.iterdir())) == 1
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("t", b"data")]


def test_missing_folder_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised, open_target(str(tmp_path / "missing" / "t")):
        pass
    assert str(raised.value.filename) == str(tmp_path / "missing")


def test_device_is_written_to_and_not_replaced() -> None:
    with open_target(os.devnull) as descriptor:
        os.write(descriptor, b"data")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_directory_and_missing_folder_are_refused(tmp_path: Path) -> None:
    for name, words in ((tmp_path, "name a file in it"), (tmp_path / "missing" / "t", "No such file or directory")):
        with pytest.raises(OSError, match=words), open_target(str(name)):
            pass


def test_stdout_is_the_default() -> None:
    for name in (None, "-"):
        with open_target(name) as descriptor:
            assert descriptor == 1


def test_sink_writes_all_of_every_buffer(tmp_path: Path) -> None:
    with open_target(str(tmp_path / "t")) as descriptor:
        sink = DescriptorSink(descriptor, _SameThread())
        for data in (b"ab", bytearray(b"cd"), memoryview(b"xefx")[1:3], b""):
            Deferred.fromCoroutine(sink.write(data))
    assert (tmp_path / "t").read_bytes() == b"abcdef"
    assert sink.written == 6
