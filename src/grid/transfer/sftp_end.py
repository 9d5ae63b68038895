"""Files of SFTP servers as an end of a transfer, through asyncssh.

Keys, the agent, known hosts and jump hosts come from ~/.ssh, as for `ssh`; it never asks for a password. A file appears
under its name complete, with its time and mode, or not at all.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from grid.errors import GridError
from grid.ports import Buffer
from grid.transfer.ends import (
    PIECE_SIZE,
    Body,
    EndError,
    Entry,
    LeftOut,
    MissingExtraError,
    NotThereError,
    OpenedSource,
    PassingError,
    SourceChangedError,
    cancelled_as_error,
)
from grid.transfer.local_partials import MODES, PARTIAL, refuse_path
from grid.transfer.partial_files import can_resume, fill, held_parts
from grid.transfer.sftp_partial import Answer, new_mode, open_partial
from grid.transfer.spool import Stack

if TYPE_CHECKING:
    import asyncssh

CONNECT_S = 30
SILENCE_S = 60.0
"""Seconds that a server may take to answer one request."""
GIVE_UP_S = 5.0
"""Seconds after which nobody waits any more for a request that was given up."""

LATEST_S = 2**32 - 1
"""The last time that the protocol expresses."""


def open_sftp_end(url: str, *, is_target: bool = False) -> SftpEnd:
    """The end for `sftp://user@host:port/path`; MissingExtraError, EndError. is_target: it is a directory."""
    try:
        import asyncssh  # noqa: F401
    except ImportError:
        raise MissingExtraError("sftp://", "asyncssh") from None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise EndError(f"this is no URL: {error}") from None
    if not parts.hostname:
        raise EndError("name a host, as in sftp://USER@HOST/PATH")
    if parts.password:
        raise EndError(f"{parts.hostname}: passwords in URLs are not supported; use a key or the agent")
    path = unquote(parts.path)
    # As in curl and lftp, /~/ is the home directory; anything else is absolute.
    path = path.removeprefix("/~/") if path.startswith("/~/") else path or "/"
    shown = f"sftp://{parts.hostname}{parts.path}"
    return SftpEnd(parts.hostname, port, parts.username, path.rstrip("/") or "/", shown, is_target=is_target)


class SftpEnd:
    """A file or directory of a server, over one connection that is reopened when it is lost."""

    def __init__(
        self, host: str, port: int | None, user: str | None, path: str, label: str, *, is_target: bool = False
    ) -> None:
        self._is_target = is_target
        self._host, self._port, self._user, self._path, self.label = host, port, user, path, label
        self._connection: asyncssh.SSHClientConnection | None = None
        self._client: asyncssh.SFTPClient | None = None
        self._connecting = asyncio.Lock()
        self._is_single = False
        self._new_mode: int | None = None

    @property
    def location(self) -> Sequence[str]:
        """Host, port, user and path."""
        return "sftp", self._host, str(self._port), str(self._user), *filter(None, self._path.split("/"))

    @property
    def identity(self) -> str:
        """User, host, port and path."""
        user = "" if self._user is None else f"{self._user}@"
        port = "" if self._port is None else f":{self._port}"
        return f"sftp://{user}{self._host}{port}{self.label.removeprefix(f'sftp://{self._host}')}"

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        """Yield every regular file below the path; NotThereError, PassingError, EndError."""
        client = await self._sftp()
        with _as_end_errors(self.label):
            facts = await self._answer(client.stat(self._path))
        if not stat.S_ISDIR(facts.permissions or 0):
            if self._is_target:
                raise EndError(f"{self.label} is not a directory")
            self._is_single = True
            yield _entry(self._path.rpartition("/")[2], facts)
            return
        waiting = Stack([""])
        while waiting:
            below = waiting.pop()
            trouble = ""
            try:
                async for found in self._scan(client, below, waiting):
                    yield found
            except EndError as error:
                if not below or isinstance(error, PassingError):
                    raise
                trouble = str(error)
            if trouble:
                yield LeftOut(below, trouble, is_gap=True)

    async def _scan(self, client: Any, below: str, waiting: Stack) -> AsyncIterator[Entry | LeftOut]:  # noqa: ANN401
        with _as_end_errors(f"{self.label}/{below}"):
            listing = client.scandir(self._place(below) if below else self._path)
            while (found := await self._answer(anext(listing, None))) is not None:
                name = str(found.filename)
                full = f"{below}/{name}" if below else name
                mode = found.attrs.permissions or 0
                if name in (".", "..") or name.startswith(PARTIAL):
                    continue
                if "/" in name or "\0" in name:
                    yield LeftOut(full.replace("\0", "?"), "the server gives a name that is none")
                elif stat.S_ISDIR(mode):
                    waiting.append(full)
                elif stat.S_ISREG(mode):
                    yield _entry(full, found.attrs)
                else:
                    yield LeftOut(full, "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file")

    async def open(self, entry: Entry) -> OpenedSource:
        """Open the file."""
        client, path, shown = await self._sftp(), self._place(entry.name), self._shown(entry.name)
        with _as_end_errors(shown):
            file = await self._answer(client.open(path, "rb"))
            facts = await self._answer(file.stat())
        return _OpenedRemote(file, _entry(entry.name, facts), shown, self._answer)

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection, self._client = self._connection, None, None
        if connection is not None:
            connection.close()
            with suppress(OSError, TimeoutError):
                await asyncio.wait_for(connection.wait_closed(), CONNECT_S)

    def spare(self, tokens: Set[str], mark: str) -> None:
        """Do nothing: a listing removes nothing, for nobody can tell who writes."""

    def refuse(self, name: str) -> str | None:
        """Names that no file system accepts, or that would lead out of the directory."""
        return refuse_path(name)

    def place_of(self, name: str) -> str:
        """The name itself."""
        return name

    def memory_of(self, size: int) -> int:
        """None: pieces are written as they come."""
        return 0

    async def adopt(self, opened: OpenedSource) -> str | None:
        """None: the bytes must be sent."""
        return None

    async def store(self, entry: Entry, body: Body) -> str:
        """Write to a temporary file, and rename."""
        client, path, shown = await self._sftp(), self._place(entry.name), self._shown(entry.name)
        folder = path.rpartition("/")[0] or ("/" if path.startswith("/") else ".")
        partial = f"{folder}/{PARTIAL}{body.scratch}"
        try:
            with _as_end_errors(shown):
                await self._answer(client.makedirs(folder, exist_ok=True))
                file = await open_partial(client, partial, body, self._answer)
                try:
                    await fill(file, body, await held_parts(file, body))
                    await body.require_unchanged()
                    await file.finish()
                except BaseException:
                    await file.abandon()
                    raise
                await self._finish(client, partial, path, entry)
        except BaseException as error:
            if not can_resume(body, error):
                with suppress(*_ssh_errors()):
                    await self._answer(client.remove(partial))
                body.parts.forget()
            raise
        return ""

    async def _finish(self, client: Any, partial: str, path: str, entry: Entry) -> None:  # noqa: ANN401
        import asyncssh

        seconds = None if entry.mtime_ns is None else min(max(entry.mtime_ns // 10**9, 0), LATEST_S)
        if entry.mode is None and self._new_mode is None:
            self._new_mode = await new_mode(client, f"{partial}0", self._answer)
        mode = self._new_mode if entry.mode is None else entry.mode & MODES
        if seconds is not None or mode is not None:
            await self._answer(
                client.setstat(partial, asyncssh.SFTPAttrs(permissions=mode, atime=seconds, mtime=seconds))
            )
        await self._answer(client.posix_rename(partial, path))

    def is_stored(self, name: str) -> bool:
        """Always true: every stored file is in place."""
        return True

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        """Do nothing: files are already in place."""
        return {}

    async def remove(self, name: str) -> None:
        """Remove the file."""
        client = await self._sftp()
        try:
            with _as_end_errors(self._shown(name)):
                await self._answer(client.remove(self._place(name)))
        except NotThereError:
            return

    async def _sftp(self) -> asyncssh.SFTPClient:
        """The connected client; PassingError, EndError."""
        import asyncssh

        async with self._connecting:
            if self._client is not None and self._connection is not None and not self._connection.is_closed():
                return self._client
            options: dict[str, Any] = {"connect_timeout": CONNECT_S, "keepalive_interval": 15, "keepalive_count_max": 4}
            if self._port is not None:
                options["port"] = self._port
            if self._user is not None:
                options["username"] = self._user
            _say_nothing_of_lost_requests()
            with _as_end_errors(self.label):
                self._connection = await asyncssh.connect(self._host, **options)
                self._client = await self._answer(self._connection.start_sftp_client(path_errors="surrogateescape"))
            return self._client

    async def _answer(self, request: Awaitable[Any]) -> Any:  # noqa: ANN401
        """Await the answer to a request.

        TimeoutError if the server stalls; then the connection is dropped and later reopened.
        """
        connection, waiting = self._connection, asyncio.ensure_future(request)
        try:
            await asyncio.wait({waiting}, timeout=SILENCE_S)
            if waiting.done():
                with cancelled_as_error("the server"):
                    return waiting.result()
            if connection is not None:
                connection.abort()
            if connection is self._connection:
                self._connection = self._client = None
            raise TimeoutError
        finally:
            if not waiting.done():
                # It may ask the server for something before it ends, such as to close a directory.
                waiting.cancel()
                waiting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
                await asyncio.wait({waiting}, timeout=GIVE_UP_S)

    def _place(self, name: str) -> str:
        return self._path if self._is_single else f"{self._path.rstrip('/')}/{name}"

    def _shown(self, name: str) -> str:
        return self.label if self._is_single else f"{self.label.rstrip('/')}/{name}"


class _OpenedRemote:
    """An open file of a server."""

    shortcut: object = None

    def __init__(self, file: asyncssh.SFTPClientFile, entry: Entry, shown: str, answer: Answer) -> None:
        self._file, self.entry, self._shown, self._answer = file, entry, shown, answer

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        while length > 0:
            with _as_end_errors(self._shown):
                data = await self._answer(self._file.read(min(length, PIECE_SIZE), offset))
            if not data:
                return
            assert isinstance(data, bytes)
            yield data
            offset += len(data)
            length -= len(data)

    async def require_unchanged(self) -> None:
        with _as_end_errors(self._shown):
            facts = await self._answer(self._file.stat())
        if _entry(self.entry.name, facts).facts != self.entry.facts:
            raise SourceChangedError(f"{self._shown} changed while it was read")

    async def close(self) -> None:
        with suppress(*_ssh_errors()):
            await self._answer(self._file.close())


def _ssh_errors() -> tuple[type[BaseException], ...]:
    import asyncssh

    return (asyncssh.Error, OSError, TimeoutError)


def _say_nothing_of_lost_requests() -> None:
    """Keep the event loop from warning about parallel requests of asyncssh of which it awaited only the first."""
    import asyncssh

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), asyncssh.Error):
            loop.default_exception_handler(context)

    loop = asyncio.get_running_loop()
    if loop.get_exception_handler() is None:
        loop.set_exception_handler(handle)


@contextmanager
def _as_end_errors(shown: str) -> Iterator[None]:
    """Translate asyncssh's errors to those of ends."""
    import asyncssh

    try:
        yield
    except asyncssh.SFTPNoSuchFile:
        raise NotThereError(f"{shown}: there is no such file") from None
    except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection, asyncssh.ConnectionLost):
        raise PassingError(f"{shown}: the connection to the server was lost") from None
    except asyncssh.SFTPError as error:
        raise EndError(f"{shown}: the server refused: {error.reason or type(error).__name__}") from None
    except asyncssh.HostKeyNotVerifiable:
        raise EndError(
            f"{shown}: the key of the host is not in known_hosts, or has changed; connect with ssh first"
        ) from None
    except asyncssh.PermissionDenied:
        raise EndError(f"{shown}: the server accepts none of your keys") from None
    except asyncssh.Error as error:
        raise PassingError(f"{shown}: {error.reason or type(error).__name__}") from None
    except TimeoutError:
        raise PassingError(f"{shown}: the server stopped answering") from None
    except OSError as error:
        raise PassingError(f"{shown}: {error.strerror or error}") from None


def _entry(name: str, facts: asyncssh.SFTPAttrs) -> Entry:
    mode = None if facts.permissions is None else stat.S_IMODE(facts.permissions) & MODES
    mtime = None if facts.mtime is None else int(facts.mtime) * 10**9
    return Entry(name=name, size=facts.size, mtime_ns=mtime, mode=mode)
