"""Targets of a get: stdout, or a file that appears under its name only once it is complete.

The bytes go to an anonymous file in the target's directory; at the end it is synced, named, and moved into place. A get
that fails or is killed leaves nothing behind. File systems without anonymous files get a temporary name beside the
target, which only a killed get leaves behind. Writes happen on the pool, never on the event loop.
"""

from __future__ import annotations

import codecs
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from grid.node.files import sync_directory
from grid.ports import Buffer, CpuPool

_NO_UNNAMED_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
"""Errors from file systems and kernels without anonymous files."""


_LOOKED_AT = 4096
"""Bytes examined to tell text from binary data."""


class DescriptorSink:
    """A sink that writes to an open descriptor."""

    def __init__(self, descriptor: int, cpu: CpuPool) -> None:
        self._descriptor = descriptor
        self._cpu = cpu
        self.written = 0

    async def write(self, data: Buffer) -> None:
        """Write all bytes; OSError."""
        await self._cpu.run(self._write, data)

    def _write(self, data: Buffer) -> None:
        view = memoryview(data).cast("B")
        while view:
            count = os.write(self._descriptor, view)
            view = view[count:]
            self.written += count


class TextSink(DescriptorSink):
    """A sink for a terminal. It refuses a file that looks binary, with click.UsageError, before showing any of it."""

    async def write(self, data: Buffer) -> None:
        """Write all bytes; OSError."""
        if not self.written and _looks_binary(bytes(memoryview(data)[:_LOOKED_AT])):
            raise click.UsageError(
                "this file looks binary and could upset your terminal: name a FILE to write it to, or - to show it anyway"
            )
        await super().write(data)


def _looks_binary(beginning: bytes) -> bool:
    """Whether a file that begins with these bytes cannot be UTF-8 text."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return True
    return b"\0" in beginning


@contextmanager
def open_target(name: str | None) -> Iterator[int]:
    """Open a descriptor for writing. None and `-` mean stdout; OSError if the target cannot be created.

    If the block ends without an error, the target gets the bytes; otherwise it stays as it was.
    """
    if name is None or name == "-":
        yield 1
        return
    target, mode = _examine(name)
    if stat.S_ISREG(mode):
        with _beside(target, stat.S_IMODE(mode), name) as descriptor:
            yield descriptor
    else:
        # Devices and pipes are written directly.
        descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def require_target(name: str) -> None:
    """Raise OSError if no file can be created here: the name is a directory, or its parent does not exist."""
    target, _ = _examine(name)
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target.parent))


def _examine(name: str) -> tuple[Path, int]:
    """The real path of the target and its mode; the default mode if it does not exist."""
    target = Path(os.path.realpath(name))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG | (0o666 & ~_umask())
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory; name a file in it", name)
    return target, mode


@contextmanager
def _beside(target: Path, mode: int, name: str) -> Iterator[int]:
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
    descriptor = open_unnamed(target.parent)
    has_name = descriptor is None
    if descriptor is None:
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as problem:  # The user did not choose the temporary name, so the error must not show it.
            raise OSError(problem.errno, f"cannot be written: {problem.strerror}", name) from None
    try:
        try:
            yield descriptor
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
            if not has_name:
                give_name(descriptor, temporary)
        finally:
            os.close(descriptor)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def open_unnamed(directory: Path | str) -> int | None:
    """Create an anonymous file of mode 0600; None if unsupported. OSError, which names the directory."""
    if not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(directory, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        if problem.errno in _NO_UNNAMED_FILES:
            return None
        raise


def give_name(descriptor: int, path: Path) -> None:
    """Link an anonymous file to a path that does not exist yet; OSError."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # With a directory descriptor, Python calls linkat, which follows the link to the open file.
        os.link(f"/proc/self/fd/{descriptor}", path.name, src_dir_fd=directory, dst_dir_fd=directory)
    finally:
        os.close(directory)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
