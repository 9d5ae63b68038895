"""What POSIX says of files and directories, tried with system calls in a directory that sshfs mounts from the door.

These are the cases of pjdfstest's groups open, mkdir, rmdir, unlink, rename, truncate, ftruncate, utimensat, and chmod that a client of
version 3 of SFTP can have, written anew. docs/sftp.md lists the others, with the reasons.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.doors.sftp_grid import Door, mounted, opened_door

pytestmark = [pytest.mark.doors, pytest.mark.timeout(600)]

ONE_FAILURE = errno.EPERM
"""How sshfs shows SFTP's only status for a failure without a status of its own."""


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with opened_door(tmp_path_factory.mktemp("door")) as opened:
        yield opened


@pytest.fixture(scope="module")
def mount(door: Door, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with mounted(door, tmp_path_factory.mktemp("mounted")) as found:
        yield found


@pytest.fixture
def home(mount: Path, request: pytest.FixtureRequest) -> Path:
    """A directory of the test's own, with a file, an empty directory, and one that is not empty."""
    made: Path = mount / str(request.node.name)
    made.mkdir()
    (made / "file").write_bytes(b"contents")
    (made / "empty").mkdir()
    (made / "full").mkdir()
    (made / "full" / "inside").write_bytes(b"inside")
    return made


def refused(operation: Callable[..., object], *arguments: object, **options: object) -> int | None:
    """The number of the error that the operation raises; None if it succeeds."""
    try:
        operation(*arguments, **options)
    except OSError as error:
        return error.errno
    return None


def test_open_creates_truncates_appends_and_refuses_as_posix_says(home: Path) -> None:
    descriptor = os.open(home / "new", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640)
    assert os.write(descriptor, b"abc") == 3
    assert refused(os.read, descriptor, 1) == errno.EBADF
    os.close(descriptor)
    found = (home / "new").stat()
    assert stat.S_ISREG(found.st_mode) and (found.st_mode & 0o777, found.st_size) == (0o640, 3)
    with (home / "new").open("ab", buffering=0) as file:
        file.write(b"de")
    assert (home / "new").read_bytes() == b"abcde"
    os.close(os.open(home / "new", os.O_WRONLY | os.O_TRUNC))
    assert (home / "new").read_bytes() == b""
    assert refused(os.open, home / "file", os.O_CREAT | os.O_EXCL | os.O_WRONLY) == errno.EEXIST
    assert refused(os.open, home / "empty", os.O_CREAT | os.O_EXCL | os.O_WRONLY) == errno.EEXIST
    assert refused(os.open, home / "none", os.O_RDONLY) == errno.ENOENT
    assert refused(os.open, home / "none" / "below", os.O_CREAT | os.O_WRONLY) == errno.ENOENT
    assert refused(os.open, home / "file" / "below", os.O_RDONLY) == errno.ENOTDIR
    assert refused(os.open, home / "empty", os.O_WRONLY) == errno.EISDIR
    assert refused(os.open, home / "file", os.O_RDONLY | os.O_DIRECTORY) == errno.ENOTDIR
    assert (home / "file").read_bytes() == b"contents"


def test_mkdir_makes_an_empty_directory_with_the_mode_and_refuses_as_posix_says(home: Path) -> None:
    (home / "made").mkdir(0o750)
    found = (home / "made").stat()
    assert stat.S_ISDIR(found.st_mode) and found.st_mode & 0o777 == 0o750
    assert os.listdir(home / "made") == []
    for name in ("file", "empty", "full"):
        assert refused((home / name).mkdir) == errno.EEXIST
    assert refused((home / "none" / "below").mkdir) == errno.ENOENT
    assert refused((home / "file" / "below").mkdir) == errno.ENOTDIR


def test_rmdir_removes_an_empty_directory_and_refuses_as_posix_says(home: Path) -> None:
    (home / "empty").rmdir()
    assert not (home / "empty").exists()
    assert refused((home / "empty").rmdir) == errno.ENOENT
    assert refused((home / "file").rmdir) == errno.ENOTDIR
    assert refused((home / "file" / "below").rmdir) == errno.ENOTDIR
    assert refused((home / "full").rmdir) in (errno.ENOTEMPTY, ONE_FAILURE)
    assert refused(os.rmdir, f"{home}/full/.") == errno.EINVAL
    assert refused(os.rmdir, f"{home}/full/..") == errno.ENOTEMPTY
    assert (home / "full" / "inside").read_bytes() == b"inside"


def test_unlink_removes_a_file_and_refuses_as_posix_says(home: Path) -> None:
    with (home / "file").open("rb") as file:
        (home / "file").unlink()
        assert file.read() == b"contents"
    assert refused((home / "file").unlink) == errno.ENOENT
    assert refused((home / "none" / "below").unlink) == errno.ENOENT
    assert refused((home / "full" / "inside" / "below").unlink) == errno.ENOTDIR
    assert refused((home / "empty").unlink) in (errno.EISDIR, errno.EPERM)
    assert sorted(os.listdir(home)) == ["empty", "full"]


def test_rename_moves_and_replaces_files_and_refuses_as_posix_says(home: Path) -> None:
    (home / "other").write_bytes(b"other")
    (home / "file").rename(home / "other")
    assert (home / "other").read_bytes() == b"contents" and not (home / "file").exists()
    (home / "other").rename(home / "other")
    (home / "other").rename(home / "full" / "moved")
    assert (home / "full" / "moved").read_bytes() == b"contents" and not (home / "other").exists()
    assert refused((home / "none").rename, home / "new") == errno.ENOENT
    assert refused((home / "full" / "moved").rename, home / "none" / "new") == errno.ENOENT
    assert refused((home / "full" / "moved").rename, home / "full" / "inside" / "new") == errno.ENOTDIR
    assert refused((home / "full" / "moved").rename, home / "empty") == errno.EISDIR
    assert sorted(os.listdir(home / "full")) == ["inside", "moved"]


def test_rename_moves_and_replaces_directories_and_refuses_as_posix_says(home: Path) -> None:
    (home / "away").mkdir()
    (home / "full").rename(home / "away" / "moved")
    assert (home / "away" / "moved" / "inside").read_bytes() == b"inside"
    (home / "away" / "moved").rename(home / "empty")
    assert os.listdir(home / "empty") == ["inside"] and os.listdir(home / "away") == []
    assert refused((home / "away").rename, home / "empty") in (errno.ENOTEMPTY, errno.EEXIST, ONE_FAILURE)
    assert refused((home / "away").rename, home / "file") == errno.ENOTDIR
    assert refused((home / "empty").rename, home / "empty" / "below") == errno.EINVAL
    assert sorted(os.listdir(home)) == ["away", "empty", "file"]


def test_truncate_cuts_and_extends_a_file_and_refuses_as_posix_says(home: Path) -> None:
    os.truncate(home / "file", 3)
    assert (home / "file").read_bytes() == b"con"
    os.truncate(home / "file", 5)
    assert (home / "file").read_bytes() == b"con\0\0"
    with (home / "file").open("r+b", buffering=0) as file:
        os.ftruncate(file.fileno(), 100_000)
        os.pwrite(file.fileno(), b"end", 99_997)
        os.ftruncate(file.fileno(), 99_999)
    assert (home / "file").read_bytes() == b"con" + bytes(99_994) + b"en"
    with (home / "file").open("rb") as file:
        assert refused(os.ftruncate, file.fileno(), 0) in (errno.EINVAL, errno.EBADF)
    assert refused(os.truncate, home / "none", 0) == errno.ENOENT
    assert refused(os.truncate, home / "file" / "below", 0) == errno.ENOTDIR
    assert refused(os.truncate, home / "empty", 0) == errno.EISDIR
    assert refused(os.truncate, home / "file", -1) == errno.EINVAL


def test_times_and_modes_that_are_set_are_kept(home: Path) -> None:
    for name in ("file", "empty"):
        os.utime(home / name, (1_000_000_000, 1_234_567_890))
        (home / name).chmod(0o511)
        found = (home / name).stat()
        assert (found.st_atime, found.st_mtime, found.st_mode & 0o777) == (1_000_000_000, 1_234_567_890, 0o511)
    before = (home / "file").stat().st_mtime
    os.utime(home / "file")
    assert (home / "file").stat().st_mtime > before
    (home / "file").chmod(0o644)
    assert (home / "file").read_bytes() == b"contents"
    assert refused(os.utime, home / "none") == errno.ENOENT
    assert refused((home / "file" / "below").chmod, 0o600) == errno.ENOTDIR
