"""Servers of magic-wormhole, at which two sides meet: a real one in a process of its own, and one that sends what it likes."""

from __future__ import annotations

import base64
import hashlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perf.network.contract import LOOPBACK, Host
from perf.processes.node_process import child_environment, free_ports, tether, wait_until


@contextmanager
def mailbox_server(folder: Path, *options: str, host: Host = LOOPBACK) -> Iterator[str]:
    """Its URL. folder: for its database and its log. options: more of the server's own. host: where it runs."""
    (port,) = free_ports(1)
    program = str(Path(sys.executable).with_name("twist"))
    listening = f"--port=tcp:{port}:interface={host.address}"
    with (folder / "mailbox.log").open("ab") as log:
        process = subprocess.Popen(
            host.command([*tether(), program, "wormhole-mailbox", listening, *options]),
            cwd=folder,
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: _accepts(host.address, port), f"a mailbox server on port {port}")
        yield f"ws://{host.address}:{port}/v1"
    finally:
        process.kill()
        process.wait()


@contextmanager
def hostile_server(payload: bytes) -> Iterator[str]:
    """A server that sends each client one WebSocket message, and then nothing."""
    listening = socket.create_server(("127.0.0.1", 0))
    size = bytes([len(payload)]) if len(payload) < 126 else b"\x7f" + len(payload).to_bytes(8)
    frame = b"\x81" + size + payload

    def serve() -> None:
        kept = []
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                break
            kept.append(connection)
            head = b""
            while b"\r\n\r\n" not in head and (more := connection.recv(65536)):
                head += more
            key = next(
                (line[19:] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key: ")), b""
            )
            proof = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            answer = b"HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
            try:
                connection.sendall(answer + proof + b"\r\n\r\n" + frame)
            except OSError:
                continue
        for each in kept:
            each.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def _accepts(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0
