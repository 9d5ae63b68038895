"""The requests of WinSCP, in its order: a partial file that is renamed over the old one, times set late, resumed uploads.

WinSCP does not run here. It uploads to NAME.filepart, sends the next request before the last answer, removes the old file and
renames, or uses posix-rename if it is set to, and then sets permissions and times. It talks to the SSH layer as PuTTY does.
"""

from __future__ import annotations

import asyncio
import json
import random
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.sftp.conftest import COMMAND_S, RunningDoor

CONTENTS = random.Random(16).randbytes(1_300_000)
BLOCK = 32_768
MTIME = 1_600_000_000

OPEN, CLOSE, WRITE, LSTAT, FSTAT, SETSTAT, FSETSTAT = 3, 4, 6, 7, 8, 9, 10
OPENDIR, READDIR, REMOVE, REALPATH, STAT, RENAME, EXTENDED = 11, 12, 13, 16, 17, 18, 200
STATUS, HANDLE, DATA, NAME, ATTRS = 101, 102, 103, 104, 105
OK, NO_SUCH_FILE, FAILURE, UNSUPPORTED = 0, 2, 4, 8
TO_WRITE, TO_MAKE = 2, 2 | 8 | 16


def text(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


TIMES_AND_MODE = struct.pack(">IIII", 4 | 8, 0o640, MTIME, MTIME)
NOTHING = struct.pack(">I", 0)


class RawSession:
    """A session that sends requests without waiting, and takes their answers in any order."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._number = 0
        self._answers: dict[int, tuple[int, bytes]] = {}

    async def start(self) -> int:
        """Ask for version 6, as WinSCP does; return the version that it gets."""
        self._process.stdin.write(struct.pack(">IBI", 5, 1, 6))
        kind, body = await self._next()
        assert kind == 2
        return int.from_bytes(body[:4], "big")

    def send(self, kind: int, body: bytes) -> int:
        """Send a request; return its number."""
        self._number += 1
        self._process.stdin.write(struct.pack(">IBI", len(body) + 5, kind, self._number) + body)
        return self._number

    async def answer(self, number: int) -> tuple[int, bytes]:
        """The answer to a request: its kind, and what follows the number."""
        while number not in self._answers:
            kind, body = await self._next()
            self._answers[int.from_bytes(body[:4], "big")] = kind, body[4:]
        return self._answers.pop(number)

    async def ask(self, kind: int, body: bytes) -> tuple[int, bytes]:
        """Send a request, and wait for its answer."""
        return await self.answer(self.send(kind, body))

    async def status(self, number: int) -> int:
        """The status that answers a request."""
        kind, body = await self.answer(number)
        assert kind == STATUS, body
        return int.from_bytes(body[:4], "big")

    async def handle(self, path: bytes, flags: int) -> bytes:
        """The handle of a file."""
        kind, body = await self.ask(OPEN, text(path) + struct.pack(">I", flags) + struct.pack(">II", 4, 0o644))
        assert kind == HANDLE, body
        return body

    def write(self, handle: bytes, offset: int, data: bytes) -> list[int]:
        """Send writes of a file; return their numbers."""
        return [
            self.send(WRITE, handle + struct.pack(">Q", offset + at) + text(data[at : at + BLOCK]))
            for at in range(0, len(data), BLOCK)
        ]

    async def _next(self) -> tuple[int, bytes]:
        length = int.from_bytes(await self._process.stdout.readexactly(4), "big")
        answer = await self._process.stdout.readexactly(length)
        return answer[0], answer[1:]


def play(door: RunningDoor, work: Callable[[RawSession, Any, Any], Awaitable[None]]) -> None:
    """Run the work in a session of its own."""

    async def run() -> None:
        async with door.connect(keepalive_interval=0.1, keepalive_count_max=3) as connection:
            process = await connection.create_process(subsystem="sftp", encoding=None)
            session = RawSession(process)
            assert await session.start() == 3
            await asyncio.wait_for(work(session, process, connection), COMMAND_S)

    asyncio.run(run())


def link(door: RunningDoor, path: str) -> tuple[int, int]:
    """The mode and time of a file, as the gateway has them."""
    _, said = door.ask("GET", f"{path}?t=json")
    metadata = json.loads(said)[1]["metadata"]
    return metadata["mode"], metadata["mtime"]


@pytest.mark.parametrize("rename", ["remove and rename", "posix-rename"])
def test_upload_when_the_partial_file_replaces_the_old_one_keeps_times_and_mode(door: RunningDoor, rename: str) -> None:
    door.ask("PUT", "/report", b"old")

    async def work(session: RawSession, process: Any, connection: Any) -> None:
        kind, body = await session.ask(REALPATH, text(b"."))
        assert (kind, body[4:9]) == (NAME, text(b"/"))
        asked = [session.send(LSTAT, text(b"/report.filepart")), session.send(LSTAT, text(b"/report"))]
        assert await session.status(asked[0]) == NO_SUCH_FILE
        assert (await session.answer(asked[1]))[0] == ATTRS
        handle = await session.handle(b"/report.filepart", TO_MAKE)
        sent = session.write(handle, 0, CONTENTS)
        closing = session.send(CLOSE, handle)
        describing = session.send(SETSTAT, text(b"/report.filepart") + TIMES_AND_MODE)
        assert [await session.status(number) for number in [*sent, closing, describing]] == [OK] * (len(sent) + 2)
        assert door.contents("/report") == b"old"
        if rename == "posix-rename":
            names = text(b"posix-rename@openssh.com") + text(b"/report.filepart") + text(b"/report")
            assert await session.status(session.send(EXTENDED, names)) == OK
        else:
            refused = session.send(RENAME, text(b"/report.filepart") + text(b"/report"))
            assert await session.status(refused) == FAILURE
            removing = session.send(REMOVE, text(b"/report"))
            renaming = session.send(RENAME, text(b"/report.filepart") + text(b"/report"))
            assert [await session.status(number) for number in (removing, renaming)] == [OK, OK]

    play(door, work)
    assert door.contents("/report") == CONTENTS and door.contents("/report.filepart") is None
    assert link(door, "/report") == (0o640, MTIME)


def test_upload_when_it_is_resumed_continues_the_partial_file(door: RunningDoor) -> None:
    async def first(session: RawSession, process: Any, connection: Any) -> None:
        handle = await session.handle(b"/resumed.filepart", TO_MAKE)
        sent = session.write(handle, 0, CONTENTS[:500_000])
        closing = session.send(CLOSE, handle)
        assert [await session.status(number) for number in [*sent, closing]] == [OK] * (len(sent) + 1)

    async def second(session: RawSession, process: Any, connection: Any) -> None:
        kind, body = await session.ask(LSTAT, text(b"/resumed.filepart"))
        flags, size = struct.unpack_from(">IQ", body)
        assert kind == ATTRS and flags & 1 and size == 500_000
        handle = await session.handle(b"/resumed.filepart", TO_WRITE)
        sent = session.write(handle, size, CONTENTS[size:])
        describing = session.send(FSETSTAT, handle + TIMES_AND_MODE)
        closing = session.send(CLOSE, handle)
        renaming = session.send(RENAME, text(b"/resumed.filepart") + text(b"/resumed"))
        late = session.send(SETSTAT, text(b"/resumed") + TIMES_AND_MODE)
        asked = [*sent, describing, closing, renaming, late]
        assert [await session.status(number) for number in asked] == [OK] * len(asked)

    play(door, first)
    play(door, second)
    assert door.contents("/resumed") == CONTENTS and link(door, "/resumed") == (0o640, MTIME)


def test_extension_when_it_is_not_offered_is_answered_as_such(door: RunningDoor) -> None:
    async def work(session: RawSession, process: Any, connection: Any) -> None:
        for name in (b"check-file", b"check-file-name", b"space-available", b"statvfs@openssh.com", b"copy-data",
                     b"copy-file", b"hardlink@openssh.com", b"supported2"):  # fmt: skip
            assert await session.status(session.send(EXTENDED, text(name) + text(b"/") + NOTHING)) == UNSUPPORTED
        listing = await session.ask(OPENDIR, text(b"/."))
        assert listing[0] == HANDLE and (await session.ask(READDIR, listing[1]))[0] in (NAME, STATUS)
        assert await session.status(session.send(CLOSE, listing[1])) == OK

    play(door, work)


def test_connection_when_it_is_kept_alive_as_putty_does_goes_on(door: RunningDoor) -> None:
    async def work(session: RawSession, process: Any, connection: Any) -> None:
        channel = process.channel
        assert await channel._make_request(b"winadj@putty.projects.tartarus.org") is False
        connection.send_packet(2, text(b"ignored"))
        await asyncio.sleep(0.5)  # The client pings five times, and gives up after three pings without an answer.
        assert (await session.ask(STAT, text(b"/")))[0] == ATTRS

    play(door, work)
