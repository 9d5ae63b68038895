"""An incomplete file on an SFTP server. [decision 355]

Ranges count once the server says that they are durable: servers without fsync@openssh.com cannot resume. Until a file is
complete, only its owner may read it.
"""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from grid.ports import Buffer
from grid.transfer.ends import Body, KeptPart
from grid.transfer.local_partials import MODES, PRIVATE

Answer = Callable[[Awaitable[Any]], Coroutine[Any, Any, Any]]
"""Awaits the answer to one request; TimeoutError."""


async def open_partial(client: Any, path: str, body: Body, answer: Answer) -> RemotePartial:  # noqa: ANN401
    """Open the incomplete file of an earlier attempt, or make a new one. Raises asyncssh's errors, TimeoutError."""
    import asyncssh

    if body.parts.load():
        with suppress(asyncssh.SFTPError):
            facts = await answer(client.lstat(path))
            if stat.S_ISREG(facts.permissions or 0):
                await answer(client.setstat(path, asyncssh.SFTPAttrs(permissions=PRIVATE)))
                file = await answer(client.open(path, "r+b"))
                return RemotePartial(file, body.scratch, facts.size or 0, answer)
    # A killed process made it: only one process at a time knows this name.
    with suppress(asyncssh.SFTPNoSuchFile):
        await answer(client.remove(path))
    file = await answer(client.open(path, "xb", asyncssh.SFTPAttrs(permissions=PRIVATE)))
    return RemotePartial(file, body.scratch, None, answer)


async def new_mode(client: Any, path: str, answer: Answer) -> int | None:  # noqa: ANN401
    """The mode that the server gives to new files of a directory: that of one made at this path for a moment.

    None if it does not say. Raises asyncssh's errors, TimeoutError.
    """
    import asyncssh

    with suppress(asyncssh.SFTPNoSuchFile):
        await answer(client.remove(path))
    file = await answer(client.open(path, "xb"))
    try:
        mode = (await answer(file.stat())).permissions
    finally:
        await answer(file.close())
        await answer(client.remove(path))
    return None if mode is None else stat.S_IMODE(mode) & MODES


class RemotePartial:
    """A file being written."""

    def __init__(self, file: Any, scratch: str, size: int | None, answer: Answer) -> None:  # noqa: ANN401
        """size: of a file that an earlier attempt left; None for a new one."""
        self._file, self.scratch, self._size, self._answer = file, scratch, size, answer
        self.is_new = size is None

    async def holds(self, part: KeptPart, body: Body) -> bool:
        """Whether the file is long enough: parts are recorded once they are durable."""
        return part.offset + part.length <= (self._size or 0)

    async def write(self, offset: int, piece: Buffer) -> None:
        """Write bytes in place."""
        await self._answer(self._file.write(bytes(piece), offset))

    async def sync(self) -> bool:
        """Make what was written durable; False if the server cannot."""
        import asyncssh

        try:
            await self._answer(self._file.fsync())
        except asyncssh.SFTPOpUnsupported:
            return False
        return True

    async def finish(self) -> None:
        """Make it durable, if the server can, and close it."""
        await self.sync()
        await self._answer(self._file.close())

    async def abandon(self) -> None:
        """Close it."""
        import asyncssh

        with suppress(asyncssh.Error, OSError, TimeoutError):
            await self._answer(self._file.close())
