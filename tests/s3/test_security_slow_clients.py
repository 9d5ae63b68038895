"""The door, as a process, with hundreds of clients that read nothing, stop sending, or guess: others are served, in bounded memory."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perf.processes.node_process import child_environment
from tests.gateway.running import ROOT, RunningGateway
from tests.s3.rig import MAIN, signed_head
from tests.support.exchanges import Reply

MIB = 2**20
FILE = random.Random(5).randbytes(8 * MIB)
SLOW = 200
OTHERS = 20
GUESSES = 300
PIECE = 65536

READERS_BOUND = (SLOW + OTHERS) * 2 * MIB
"""Bytes above what it held before, while all slow readers have stopped in the middle of their 8 MiB: of each what the server
of this process gave when it was asked first, a segment or a little more as blocks and as text, and what the sockets hold."""

WRITERS_BOUND = SLOW * MIB
"""The same for writers who have sent 3.5 MiB of 4 each."""


@pytest.fixture
def door(tmp_path: Path) -> Iterator[RunningGateway]:
    """One of its own, so that its peak is of this test."""
    log = tmp_path / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.s3.process", str(tmp_path / "door")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, env=child_environment(),
        )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        yield RunningGateway(process=process, port=int(line), log=log)
    finally:
        process.communicate(timeout=60)
    assert "Traceback" not in log.read_text()


def ask(
    door: RunningGateway, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None,
    **signing: str,
) -> Reply:  # fmt: skip
    """A signed request."""
    fields = {"Connection": "close", "Content-Length": str(len(body)), **(headers or {})}
    head = signed_head(door.host, method, target, fields, payload="UNSIGNED-PAYLOAD", **signing)
    return door.send(head + body)


def start(door: RunningGateway, method: str, target: str, size: int = 0) -> socket.socket:
    """A signed request whose head was sent, by a client that reads slowly."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", door.port))
    fields = {"Connection": "close", "Content-Length": str(size)}
    connection.sendall(signed_head(door.host, method, target, fields, payload="UNSIGNED-PAYLOAD"))
    return connection


def rest_of(connection: socket.socket) -> bytes:
    """Everything received until the end."""
    received = bytearray()
    while piece := connection.recv(MIB):
        received += piece
    return bytes(received)


def reads_right(door: RunningGateway, seed: int) -> bool:
    """Whether a range at a random offset matches the object."""
    first = random.Random(seed).randrange(len(FILE) - PIECE)
    reply = ask(door, "GET", "/bucket/large", headers={"Range": f"bytes={first}-{first + PIECE - 1}"})
    return reply.status == 206 and reply.body == FILE[first : first + PIECE]


def test_readers_when_hundreds_of_them_stop_are_served_with_all_others_in_bounded_memory(door: RunningGateway) -> None:
    assert ask(door, "PUT", "/bucket/large", FILE).status == 200
    assert ask(door, "GET", "/bucket/large").body == FILE
    held = door.resident()
    door.forget_peak()
    slow = [start(door, "GET", "/bucket/large") for _ in range(SLOW)]
    try:
        for connection in slow:
            assert connection.recv(1, socket.MSG_PEEK)
        with ThreadPoolExecutor(OTHERS) as pool:
            assert all(pool.map(lambda seed: reads_right(door, seed), range(3 * OTHERS)))
        assert door.peak() - held < READERS_BOUND
        for connection in slow[::20]:
            assert rest_of(connection).endswith(FILE)
    finally:
        for connection in slow:
            connection.close()
    assert reads_right(door, 0)


def test_writers_when_hundreds_of_them_stop_hold_nobody_up_and_leave_nothing(door: RunningGateway) -> None:
    assert ask(door, "PUT", "/bucket/large", FILE).status == 200
    held = door.resident()
    door.forget_peak()
    slow = [start(door, "PUT", f"/bucket/slow{number}", 4 * MIB) for number in range(SLOW)]
    try:
        for connection in slow:
            connection.sendall(FILE[: 7 * MIB // 2])
        assert ask(door, "PUT", "/bucket/quick", FILE[:MIB]).status == 200
        assert ask(door, "GET", "/bucket/quick").body == FILE[:MIB]
        assert door.peak() - held < WRITERS_BOUND
        slow[0].sendall(FILE[7 * MIB // 2 : 4 * MIB])
        assert rest_of(slow[0]).startswith(b"HTTP/1.1 200")
    finally:
        for connection in slow:
            connection.close()
    listed = ask(door, "GET", "/bucket?list-type=2").body
    assert b"<KeyCount>3</KeyCount>" in listed and b"<Key>slow0</Key>" in listed


def test_guesses_when_hundreds_come_at_once_are_refused_and_keep_nobody_out(door: RunningGateway) -> None:
    assert ask(door, "PUT", "/bucket/large", FILE[:PIECE]).status == 200
    before = door.descriptors()

    def guess(number: int) -> int:
        key = MAIN if number % 2 else f"GK{number}"
        return ask(door, "GET", "/bucket/large", secret=f"guess {number}", key=key).status

    with ThreadPoolExecutor(50) as pool:
        guesses = [pool.submit(guess, number) for number in range(GUESSES)]
        right = [ask(door, "GET", "/bucket/large").body for _ in range(5)]
        refused = {each.result() for each in guesses}
    assert refused == {403} and right == [FILE[:PIECE]] * 5
    assert door.descriptors() <= before + 5
    said = door.logged()
    assert "guess" not in said and MAIN not in said and "large" not in said
