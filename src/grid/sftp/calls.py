"""The session interface that Conch calls: paths are bytes, and each result is a Deferred.

Each call is a counted task of the door.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, succeed

from grid.errors import GridError
from grid.ports import Buffer
from grid.runtime import is_cancellation
from grid.sftp.attributes import Facts, Wire
from grid.sftp.faults import FAILURE, UNSUPPORTED, SftpFault
from grid.sftp.handles import APPEND, CREATE, WRITE, OpenFile
from grid.sftp.path_turns import PathTurns
from grid.sftp.paths import parse_path, show_path
from grid.sftp.session import MAX_READ, Listing, Session
from grid.values import define, field

EXTENSIONS = {
    b"posix-rename@openssh.com": b"1",
    b"fsync@openssh.com": b"1",
    b"limits@openssh.com": b"1",
}

T = TypeVar("T")


@define(eq=False)
class SessionCalls:
    """The calls on one session."""

    _session: Session
    _turns: PathTurns = field(init=False, factory=PathTurns)
    _reading: set[Deferred[None]] = field(init=False, factory=set)

    def run_in_turn(
        self,
        name: str,
        raws: Sequence[bytes],
        work: Callable[[], Awaitable[T]],
        *,
        is_change: bool = True,
        reads_only: bool = False,
    ) -> Deferred[T]:
        """Run the work after the earlier requests on these paths that it must follow."""

        async def take_turn() -> T:
            return await self._turns.run([parse_path(raw) for raw in raws], work, is_change=is_change)

        return self.run(name, take_turn(), reads_only=reads_only)

    def run(
        self, name: str, work: Coroutine[Any, Any, T], received: int = 0, *, reads_only: bool = False
    ) -> Deferred[T]:
        """Run the work as a task of the door, and count it. reads_only: it changes nothing, and ends with the connection."""
        door = self._session.door
        clock = door.services.store.runtime.clock
        began_at = clock.now()
        result: Deferred[T] = Deferred()
        door.load.requests += 1

        def count(status: int, sent: int) -> None:
            door.load.requests -= 1
            self.count(name, status, clock.now() - began_at, received, sent)

        def done(value: T) -> None:
            count(200, len(value) if isinstance(value, bytes | bytearray | memoryview) else 0)
            result.callback(value)

        def failed(error: BaseException) -> None:
            count(400 if isinstance(error, GridError) or is_cancellation(error) else 500, 0)
            result.errback(error)

        task = door.tasks.start(work, done, failed)
        if reads_only:
            self._reading.add(task)
            task.addBoth(lambda _: self._reading.discard(task))
        return result

    def count(self, name: str, status: int, seconds: float, received: int, sent: int) -> None:
        """Count a call that has ended. received, sent: bytes."""
        self._session.door.services.sftp_traffic.ended("POST", (name, ""), status, seconds, received, sent)

    def give_up(self) -> None:
        """End the work that only reads, because the connection is lost. Changes go on."""
        for task in list(self._reading):
            task.cancel()

    def gotVersion(self, version: int, extensions: object) -> dict[bytes, bytes]:
        """The extensions offered."""
        return EXTENSIONS

    def openFile(self, filename: bytes, flags: int, attrs: Wire) -> Deferred[FileCalls]:
        """Open a file."""

        async def open_file() -> FileCalls:
            return FileCalls(self, await self._session.open(filename, flags, attrs))

        # A change for later requests; nothing is stored before the file is closed.
        is_change = bool(flags & (WRITE | APPEND | CREATE))
        return self.run_in_turn("open", [filename], open_file, is_change=is_change, reads_only=True)

    def openDirectory(self, path: bytes) -> Deferred[Listing]:
        """List a directory."""
        return self.run_in_turn("opendir", [path], partial(self._session.list, path), is_change=False, reads_only=True)

    def getAttrs(self, path: bytes, followLinks: object) -> Deferred[Facts]:
        """The attributes of a path."""
        return self.run_in_turn("stat", [path], partial(self._session.facts, path), is_change=False, reads_only=True)

    def setAttrs(self, path: bytes, attrs: Wire) -> Deferred[None]:
        """Set attributes of a path."""
        return self.run_in_turn("setstat", [path], partial(self._session.set_attributes, path, attrs))

    def removeFile(self, filename: bytes) -> Deferred[None]:
        """Unlink a file."""
        return self.run_in_turn("remove", [filename], partial(self._session.remove, filename))

    def renameFile(self, oldpath: bytes, newpath: bytes, *, overwrite: bool = False) -> Deferred[None]:
        """Move or rename a path."""
        rename = partial(self._session.rename, oldpath, newpath, overwrite=overwrite)
        return self.run_in_turn("rename", [oldpath, newpath], rename)

    def makeDirectory(self, path: bytes, attrs: Wire) -> Deferred[None]:
        """Create a directory."""
        return self.run_in_turn("mkdir", [path], partial(self._session.make_directory, path, attrs))

    def removeDirectory(self, path: bytes) -> Deferred[None]:
        """Remove a directory."""
        return self.run_in_turn("rmdir", [path], partial(self._session.remove_directory, path))

    def readLink(self, path: bytes) -> bytes:
        """Refuse: there are no symbolic links."""
        raise SftpFault(FAILURE, "not a symbolic link")

    def makeLink(self, linkPath: bytes, targetPath: bytes) -> None:
        """Refuse: there are no symbolic links."""
        raise SftpFault(
            UNSUPPORTED, "directories of a grid hold no symbolic links; copy the file, or link its capability"
        )

    def realPath(self, path: bytes) -> bytes:
        """The normalized path."""
        return show_path(parse_path(path))


@define(eq=False)
class _Queued:
    """The place of a request in the order of answers. outcomes: its outcome, once it has one."""

    answer: Deferred[Any]
    outcomes: list[object] = field(factory=list)


@define(eq=False)
class FileCalls:
    """An open file as Conch calls it."""

    _calls: SessionCalls
    opened: OpenFile
    _queue: deque[_Queued] = field(init=False, factory=deque)

    def readChunk(self, offset: int, length: int) -> Deferred[Buffer]:
        """Read bytes. Those that were fetched ahead cost no task: a mounted directory asks for 32 KiB at a time."""
        size = min(length, MAX_READ)
        data = None if self._queue else self.opened.read_now(offset, size)
        if data is not None:
            self._calls.count("read", 200, 0.0, 0, len(data))
            return succeed(data)

        async def read() -> Buffer:
            return await self.opened.read(offset, size)

        return self._in_order(self._calls.run("read", read(), reads_only=True))

    def writeChunk(self, offset: int, data: Buffer) -> Deferred[None]:
        """Write bytes. Those that need not wait for the disk cost no task: a mounted directory sends 32 KiB at a time."""
        if not self._queue and self.opened.write_now(offset, data):
            self._calls.count("write", 200, 0.0, len(data), 0)
            return succeed(None)
        return self._in_order(self._calls.run("write", self.opened.write(offset, data), len(data)))

    def _in_order(self, running: Deferred[T]) -> Deferred[T]:
        """The outcome, once earlier reads and writes of this file have been answered.

        scp cuts a file that it writes at the first missing answer, and one that it reads before the first answer that
        came out of order, and reports success.
        """
        place = _Queued(answer=Deferred())
        self._queue.append(place)

        def ended(outcome: object) -> None:
            place.outcomes.append(outcome)
            while self._queue and self._queue[0].outcomes:
                first = self._queue.popleft()
                first.answer.callback(first.outcomes[0])

        running.addBoth(ended)
        return place.answer

    def getAttrs(self) -> Deferred[Facts]:
        """The file's attributes."""
        return self._calls.run("fstat", self.opened.facts())

    def setAttrs(self, attrs: Wire) -> Deferred[None]:
        """Set the file's attributes."""
        return self._calls.run("fsetstat", self.opened.set_attributes(attrs))

    def sync(self) -> Deferred[None]:
        """Store what was written."""
        return self._calls.run("fsync", self.opened.sync())

    def close(self) -> Deferred[None]:
        """Store what was written, and close the file."""
        return self._calls.run("close", self.opened.close())
