"""An SFTP server in this process whose answers a test can spoil: it stalls, drops the connection, lies, or gives odd names."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from attrs import define, field

Fault = Literal["stall", "drop"]


@define
class SftpScript:
    """What the server does. fault: what happens to the next requests of the kind `at`, as often as `count` says.

    stalled, dropped: what has happened; connections: how many there were; sessions: how many there are. lie: bytes by
    which it overstates sizes. names: what it lists besides. closed: the code of the error for listing directories of
    these names. before_read: called before each read.
    """

    at: str = ""
    fault: Fault = "stall"
    count: int = 0
    stalled: int = 0
    dropped: int = 0
    connections: int = 0
    sessions: int = 0
    lie: int = 0
    names: list[bytes] = field(factory=list)
    closed: dict[bytes, int] = field(factory=dict)
    before_read: Callable[[], None] = lambda: None


def make_home(folder: Path) -> Any:
    """A home directory below the folder with a key, which is the user's and the host's."""
    import asyncssh

    ssh = folder / "home" / ".ssh"
    ssh.mkdir(parents=True, mode=0o700)
    made = asyncssh.generate_private_key("ssh-ed25519")
    made.write_private_key(str(ssh / "id_ed25519"))
    made.write_public_key(str(ssh / "id_ed25519.pub"))
    return made


@asynccontextmanager
async def scripted_sftp(folder: Path, key: Any, script: SftpScript | Callable[..., Any]) -> AsyncIterator[str]:
    """The URL of a server in this event loop that follows the script, or answers by what it makes for a channel."""
    import asyncssh

    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[key],
        authorized_client_keys=str(folder / "home" / ".ssh" / "id_ed25519.pub"),
        sftp_factory=_faulty_server(script) if isinstance(script, SftpScript) else script,
    )
    port = server.get_port()
    kind, text = key.export_public_key().decode().split()[:2]
    (folder / "home" / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {text}\n")
    try:
        yield f"sftp://127.0.0.1:{port}"
    finally:
        server.close()
        await server.wait_closed()
        while isinstance(script, SftpScript) and script.sessions:
            await asyncio.sleep(0.01)


def _faulty_server(script: SftpScript) -> Callable[..., Any]:
    import asyncssh

    class Faulty(asyncssh.SFTPServer):
        def __init__(self, channel: Any) -> None:
            super().__init__(channel)
            script.connections += 1
            script.sessions += 1

        def exit(self) -> None:
            script.sessions -= 1

        async def read(self, file_obj: object, offset: int, size: int) -> bytes:
            script.before_read()
            await self._spoil("read")
            data = super().read(file_obj, offset, size)
            assert isinstance(data, bytes)
            return data

        async def write(self, file_obj: object, offset: int, data: bytes) -> int:
            await self._spoil("write")
            count = super().write(file_obj, offset, data)
            assert isinstance(count, int)
            return count

        async def posix_rename(self, oldpath: bytes, newpath: bytes) -> None:
            await self._spoil("rename")
            os.replace(oldpath, newpath)

        async def scandir(self, path: bytes) -> AsyncIterator[Any]:
            if (code := script.closed.get(path.rpartition(b"/")[2])) is not None:
                raise asyncssh.SFTPError(code, "refused")
            async for found in super().scandir(path):
                await self._spoil("list")
                if script.lie and found.attrs.size is not None and found.filename not in (b".", b".."):
                    found.attrs.size += script.lie
                yield found
            for name in script.names:
                yield asyncssh.SFTPName(name, attrs=asyncssh.SFTPAttrs(permissions=0o100644, size=2, mtime=1))

        def fstat(self, file_obj: object) -> Any:
            facts = asyncssh.SFTPAttrs.from_local(os.fstat(file_obj.fileno()))  # type: ignore[attr-defined]
            assert facts.size is not None
            facts.size += script.lie
            return facts

        async def _spoil(self, at: str) -> None:
            if script.at != at or not script.count:
                return
            script.count -= 1
            if script.fault == "drop":
                script.dropped += 1
                self.connection.abort()
            else:
                script.stalled += 1
            while not self.connection.is_closed():  # It answers nothing else meanwhile, as OpenSSH does.
                await asyncio.sleep(0.02)
            raise asyncssh.SFTPFailure("too late")

    return Faulty
