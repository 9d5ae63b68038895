"""Where a get writes: stdout, or a file that appears under its name only when it is whole.

The octets go to a new file beside the target, which is made durable and renamed at the end; a get that fails leaves
nothing behind. Writes happen on the pool, never on the event loop.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grid.node.files import sync_directory
from grid.ports import Buffer, CpuPool


class DescriptorSink:
    """An open descriptor as a Sink."""

    def __init__(self, descriptor: int, cpu: CpuPool) -> None:
        self._descriptor = descriptor
        self._cpu = cpu
        self.written = 0

    async def write(self, data: Buffer) -> None:
        """Write all of the octets; OSError."""
        await self._cpu.run(self._write, data)

    def _write(self, data: Buffer) -> None:
        view = memoryview(data).cast("B")
        while view:
            count = os.write(self._descriptor, view)
            view = view[count:]
            self.written += count


@contextmanager
def open_target(name: str | None) -> Iterator[int]:
    """A descriptor to write to. None and `-` are stdout; OSError if the target cannot be made.

    When the block ends without an error, what was written is in the target; after an error the target is as before.
    """
    if name is None or name == "-":
        yield 1
        return
    target = Path(os.path.realpath(name))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG | (0o666 & ~_umask())
    if stat.S_ISREG(mode):
        with _beside(target, stat.S_IMODE(mode)) as descriptor:
            yield descriptor
    else:
        # A device or a pipe is written to, a directory refuses.
        descriptor = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def _beside(target: Path, mode: int) -> Iterator[int]:
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            yield descriptor
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
