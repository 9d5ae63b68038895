"""The door with clients that read nothing, send nothing, or never finish: their total cost is bounded."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.sftp.conftest import COMMAND_S, RunningDoor
from tests.sftp.process import SLOW_ACCOUNTS

CONTENTS = random.Random(9).randbytes(6_000_000)
CONNECTIONS, SESSIONS = 16, 4
"""Of each connection as many sessions as it may have: 64 in all."""

ATTACK_S = 240
MOST_MEMORY = 150 * 2**20
"""Bytes that they may cost, beside the node itself: with that, less than 250 MiB."""

INIT = struct.pack(">IBI", 5, 1, 3)


@asynccontextmanager
async def stopping_relay(port: int, gate: asyncio.Event) -> AsyncIterator[int]:
    """A port that leads to the door; its answers pass only until the gate closes."""
    tasks: list[asyncio.Task[None]] = []
    writers: list[asyncio.StreamWriter] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_answer: bool) -> None:
        while data := await reader.read(65536):
            if is_answer:
                await gate.wait()
            writer.write(data)
            await writer.drain()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, far_writer))
        tasks.append(asyncio.create_task(pass_on(reader, far_writer, False)))
        tasks.append(asyncio.create_task(pass_on(far_reader, writer, True)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        gate.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        server.close()
        await asyncio.sleep(0)


async def open_file(process: Any, name: bytes, flags: int) -> bytes:
    """The handle that the door gives."""
    process.stdin.write(_packet(3, struct.pack(">II", 7, len(name)) + name + struct.pack(">II", flags, 0)))
    while True:
        head = await process.stdout.readexactly(5)
        body = await process.stdout.readexactly(int.from_bytes(head[:4], "big") - 1)
        if head[4] == 102:
            return bytes(body[8:])
        assert head[4] == 2, body


def _packet(kind: int, body: bytes) -> bytes:
    return struct.pack(">IB", len(body) + 1, kind) + body


def _handle(handle: bytes) -> bytes:
    return struct.pack(">I", len(handle)) + handle


def test_sessions_when_64_ask_for_much_and_read_nothing_take_bounded_memory(door: RunningDoor) -> None:
    for account in SLOW_ACCOUNTS:
        door.put(account, "large", CONTENTS)
    before = door.memory()

    async def attack() -> int:
        gate = asyncio.Event()
        gate.set()
        async with AsyncExitStack() as stack:
            relay = await stack.enter_async_context(stopping_relay(door.port, gate))
            started = []
            for number in range(CONNECTIONS):
                account = SLOW_ACCOUNTS[number % len(SLOW_ACCOUNTS)]
                connection = await stack.enter_async_context(
                    door.connect(account, port=relay, kex_algs=["curve25519-sha256"])
                )
                for session in range(SESSIONS):
                    process = await connection.create_process(subsystem="sftp", encoding=None, window=2**31 - 1)
                    process.stdin.write(INIT)
                    reading = await open_file(process, b"/large", 1)
                    writing = await open_file(process, b"/new%d.%d" % (number, session), 2 | 8)
                    started.append((process, reading, writing))
            gate.clear()
            for process, reading, writing in started:
                ask_much(process, reading, writing)
            # The door answers others meanwhile, and has had time for all that it is going to do.
            for _ in range(4):
                assert await asyncio.to_thread(door.contents, "/nothing") is None
            assert await asyncio.to_thread(door.run, lambda client: client.exists("/")) is True
            cost = door.memory() - before
            for process, _, _ in started:
                process.channel.abort()
            return cost

    cost = asyncio.run(asyncio.wait_for(attack(), ATTACK_S))
    assert cost < MOST_MEMORY, f"{cost / 2**20:.0f} MiB"


def ask_much(process: Any, reading: bytes, writing: bytes) -> None:
    """More writes and reads than any memory has room for answers."""
    data = bytes(30_000)
    packets = []
    for number in range(8):
        where = struct.pack(">QI", number * len(data), len(data))
        packets.append(_packet(6, struct.pack(">I", 100 + number) + _handle(writing) + where + data))
    for number in range(8000):
        where = struct.pack(">QI", number * 65536 % len(CONTENTS), 65536)
        packets.append(_packet(5, struct.pack(">I", 1000 + number) + _handle(reading) + where))
    process.stdin.write(b"".join(packets))


def test_strangers_when_hundreds_of_them_say_nothing_keep_nobody_out(door: RunningDoor, tmp_path: Path) -> None:
    greetings = (b"", b"SSH-2.0-slow\r\n", b"SSH-2.0-cut", b"x" * 300, b"SSH-2.0-none\r\n" + bytes(2000))
    strangers = [socket.create_connection(("127.0.0.1", door.port)) for _ in range(300)]
    try:
        for number, stranger in enumerate(strangers):
            stranger.sendall(greetings[number % len(greetings)])
        assert door.run(lambda client: client.exists("/")) is True
    finally:
        for stranger in strangers:
            stranger.close()


def test_login_when_many_guess_at_once_lets_the_account_in(door: RunningDoor) -> None:
    import asyncssh

    async def guess(key: Any) -> bool:
        try:
            async with door.connect("alice", client_keys=[key]):
                return True
        except (asyncssh.Error, OSError):
            return False

    async def attack() -> tuple[list[bool], bool]:
        guesses = [guess(asyncssh.generate_private_key("ssh-ed25519")) for _ in range(40)]
        *wrong, right = await asyncio.gather(*guesses, guess(str(door.folder / "alice")))
        return wrong, right

    wrong, right = asyncio.run(asyncio.wait_for(attack(), COMMAND_S))
    assert not any(wrong) and right
