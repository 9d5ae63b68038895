"""Clients of doors that ask for much and take none of it, or begin to send and never finish."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from grid.s3.signature import UNSIGNED, RequestHead, Scope, request_text, sign, signing_key
from perf.peers.contract import Cost
from perf.peers.object_servers import ObjectServer
from perf.processes.open_doors import ACCOUNT, SftpDoor
from perf.sampling.usage import resident

STEADY = 2**20
"""Bytes; a process whose memory grows by less between two looks is steady."""

LOOK_S = 0.5
LOOKS = 6
"""Looks in a row at which it has to be."""

MOST_S = 30.0
LONGEST_S = 300.0
SMALL_BUFFER = 4096
BEGINNING = 2**16

SESSIONS = 4
"""SFTP sessions of each connection, as many as the door permits."""

READ = 2**16
INIT = struct.pack(">IBI", 5, 1, 3)
OPEN_TO_READ, OPEN_TO_MAKE = 1, 2 | 8


def slow_at_s3(server: ObjectServer, path: str, size: int, count: int, pids: Sequence[int]) -> Cost:
    """Half of the clients get the object of `size` bytes at the path and read nothing; the others put one and stop early.

    Lasts until the memory of the processes is steady.
    """
    getting = signed_head(server, "GET", path, 0)
    return _slow_over_http(
        server.url, getting, lambda number: signed_head(server, "PUT", f"{path}-{number}", size), count, pids
    )


def slow_at_web(url: str, path: str, size: int, count: int, pids: Sequence[int]) -> Cost:
    """The same at a web gateway. path: of a file of `size` bytes."""

    def head(method: str, path: str, length: int) -> bytes:
        lines = (f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}", "", "")
        return "\r\n".join(lines).encode()

    return _slow_over_http(url, head("GET", path, 0), lambda number: head("PUT", "/uri", size), count, pids)


def _slow_over_http(url: str, getting: bytes, putting: Callable[[int], bytes], count: int, pids: Sequence[int]) -> Cost:
    """getting: the request for the file. putting: the head of the request that a client of this number puts one with."""
    started = time.perf_counter()
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    with ExitStack() as stack:
        for number in range(count):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            client.connect((address.hostname, address.port))
            client.sendall(putting(number) + bytes(BEGINNING) if number % 2 else getting)
        _until_steady(pids, time.sleep)
    return Cost(seconds=time.perf_counter() - started)


def signed_head(server: ObjectServer, method: str, path: str, size: int) -> bytes:
    """The head of a signed request with a body of `size` bytes."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = Scope(day=moment[:8], region="us-east-1")
    fields = {"host": "door", "x-amz-date": moment, "x-amz-content-sha256": UNSIGNED}
    said = RequestHead(method=method, path=path, query=[], headers=list(fields.items()))
    key = signing_key(server.secret_key, scope)
    signature = sign(key, request_text(said, moment, scope, fields, UNSIGNED))
    fields["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={server.access_key}/{scope}, SignedHeaders={';'.join(sorted(fields))}, "
        f"Signature={signature}"
    )
    fields["content-length"] = str(size)
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode()


def slow_at_sftp(door: SftpDoor, path: str, size: int, count: int, pids: Sequence[int]) -> Cost:
    """Every client asks for all of a file several times and reads no answer, and writes the beginning of another file.

    Lasts until the memory of the processes is steady. count: SFTP sessions, SESSIONS of each connection.
    """
    started = time.perf_counter()
    asyncio.run(asyncio.wait_for(_slow_sessions(door, path, size, count, pids), LONGEST_S))
    return Cost(seconds=time.perf_counter() - started)


async def _slow_sessions(door: SftpDoor, path: str, size: int, count: int, pids: Sequence[int]) -> None:
    import asyncssh

    async with AsyncExitStack() as stack:
        for first in range(0, count, SESSIONS):
            connection = await stack.enter_async_context(
                asyncssh.connect(
                    "127.0.0.1", door.port, username=ACCOUNT, client_keys=[str(door.key)], known_hosts=None, config=None
                )
            )
            for number in range(first, min(first + SESSIONS, count)):
                process = await connection.create_process(subsystem="sftp", encoding=None, window=2 * READ)
                stack.callback(process.channel.abort)
                process.stdin.write(INIT)
                reading = await _open(process, path.encode(), OPEN_TO_READ)
                writing = await _open(process, f"{path}-{number}".encode(), OPEN_TO_MAKE)
                process.stdin.write(_requests(reading, writing, size))
        await asyncio.to_thread(_until_steady, pids, time.sleep)


def _requests(reading: bytes, writing: bytes, size: int) -> bytes:
    """Two writes, and reads of the whole file four times over."""
    data = bytes(READ // 2)
    writes = [
        _packet(
            6, struct.pack(">I", 10 + number) + _string(writing) + struct.pack(">Q", number * len(data)) + _string(data)
        )
        for number in range(2)
    ]
    reads = [
        _packet(5, struct.pack(">I", 100 + number) + _string(reading) + struct.pack(">QI", number * READ % size, READ))
        for number in range(4 * size // READ)
    ]
    return b"".join([*writes, *reads])


async def _open(process: Any, path: bytes, flags: int) -> bytes:  # noqa: ANN401
    """The handle of a file; RuntimeError if the door refuses."""
    process.stdin.write(_packet(3, struct.pack(">I", 7) + _string(path) + struct.pack(">II", flags, 0)))
    while True:
        head = await process.stdout.readexactly(5)
        body = await process.stdout.readexactly(int.from_bytes(head[:4], "big") - 1)
        if head[4] == 102:
            return bytes(body[8:])
        if head[4] != 2:
            raise RuntimeError(f"the door refused to open a file: {body[:200]!r}")


def _packet(kind: int, body: bytes) -> bytes:
    return struct.pack(">IB", len(body) + 1, kind) + body


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _until_steady(pids: Sequence[int], sleep: Callable[[float], None]) -> None:
    """Wait until the memory of the processes has not grown for a while."""
    steady, most, ends = 0, 0, time.perf_counter() + MOST_S
    while steady < LOOKS and time.perf_counter() < ends:
        sleep(LOOK_S)
        now = resident(pids)
        steady = steady + 1 if now < most + STEADY else 0
        most = max(most, now)
