"""Files of a node directory: written atomically, and private if they hold secrets.

Owns the atomic write, the reading of short text files, and how a change between two readings is noticed. It never puts a file's content into an error.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from grid.errors import ConfigError, GridError

SECRET_MODE = 0o600
PUBLIC_MODE = 0o644

MAX_TEXT = 1024 * 1024
"""Bytes in a file that a node reads whole; a larger one was not written by a node."""


def write_atomically(path: Path, data: bytes, mode: int = SECRET_MODE, *, durable: bool = True) -> None:
    """Replace the file atomically: after a crash it has either its old content or all of the new. OSError.

    durable: False for data that may be lost if the machine crashes; then this does not wait for the disk.
    """
    temporary = _write_beside(path, data, mode, durable=durable)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def write_if_missing(path: Path, data: bytes, mode: int = SECRET_MODE) -> bool:
    """Create the file unless it exists; return whether it was created. Of two processes, at most one succeeds."""
    temporary = _write_beside(path, data, mode)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def read_text(path: Path) -> str | None:
    """The text of a short UTF-8 file, None if it does not exist; ConfigError if it cannot be read as such."""
    try:
        # Opening a pipe without a writer would block forever; for a regular file this flag changes nothing.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{path}: not a regular file")
            data = file.read(MAX_TEXT + 1)
    except FileNotFoundError:
        if path.is_symlink():  # Its target may be on a disk that is not mounted now.
            raise ConfigError(f"{path}: a dangling symbolic link") from None
        return None
    except OSError as problem:
        raise ConfigError(f"{path}: {problem.strerror}") from None
    if len(data) > MAX_TEXT:
        raise ConfigError(f"{path}: too large to be read")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None


def read_or_create(path: Path, make: Callable[[], str], mode: int = SECRET_MODE) -> str:
    """The text of the file; if it does not exist, make() provides it first."""
    text = read_text(path)
    if text is None:
        write_if_missing(path, make().encode("utf-8"), mode)
        text = read_text(path)
    if text is None:
        raise ConfigError(f"{path}: removed while it was being read")
    return text


def expand_home(path: str | Path) -> Path:
    """Expand a leading `~`; ConfigError for an unknown user."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{path}: there is no such user, so `~` has no meaning; write the home directory out"
        ) from None


def state_directory() -> Path:
    """Where commands keep what they remember between runs: `grid` below $XDG_STATE_HOME, or below ~/.local/state."""
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state") / "grid"


def make_private_file(path: Path, *, follow_links: bool = False) -> None:
    """Create the file if it is missing, and take it from everybody but its owner; ConfigError if it is no file. OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
    descriptor = os.open(path, flags, SECRET_MODE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # The path may lead to a device, which must not be touched.
            raise ConfigError(f"{path}: not a regular file")
        os.fchmod(descriptor, SECRET_MODE)
    finally:
        os.close(descriptor)


def make_private_directory(path: Path) -> None:
    """Create the directory with its parents; if it is new, its own mode is 0700."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock on the files of an existing directory, which other processes take for as long as they change one. Blocks; OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_beside(path: Path, data: bytes, mode: int, *, durable: bool = True) -> Path:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


class FileChangedError(GridError):
    """A file changed while it was read."""


class Rereads:
    """Watches the reads of one open file. The facts that count are its size and the time of its last change.

    A put with a convergent key reads a file twice: for the key, and to encrypt it. The key must encrypt nothing else.
    [decision 505]
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._facts = self._now()
        self._size = self._facts[0]
        self._read_to = 0
        self._is_reread = False

    def note(self, offset: int, length: int) -> None:
        """Note what was just read, before it is used. FileChangedError at the end of a second reading if the file changed."""
        self._is_reread = self._is_reread or offset < self._read_to
        self._read_to = max(self._read_to, offset + length)
        if self._is_reread and offset + length >= self._size and self._now() != self._facts:
            raise FileChangedError("the file changed while it was read; put it again when it no longer changes")

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns
