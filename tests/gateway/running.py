"""Runs tests.gateway.process: starts it, sends requests over real sockets, inspects and stops it."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attrs import frozen

from perf.processes.node_process import child_environment
from tests.support.conformance import require_documented
from tests.support.exchanges import Reply, send

ROOT = Path(__file__).resolve().parent.parent.parent
ANSWER_S = 120.0


@frozen
class RunningGateway:
    """The process, and requests to it."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def host(self) -> str:
        """As the Host header has it."""
        return f"127.0.0.1:{self.port}"

    def send(self, data: bytes) -> Reply:
        """The answer to these bytes; status 0 if it is not HTTP."""
        try:
            return send(f"http://{self.host}/", data, ANSWER_S)
        except (ConnectionError, http.client.HTTPException):
            return Reply(status=0)

    def ask(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str | None] | None = None
    ) -> Reply:
        """A request that is well formed. headers: beside or instead of the usual, None for not at all."""
        fields: dict[str, str | None] = {"Host": self.host, "Connection": "close"}
        if body or method in ("PUT", "POST"):
            fields["Content-Length"] = str(len(body))
        fields |= headers or {}
        lines = [f"{method} {target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in fields.items() if value is not None]
        reply = self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        if reply.status and method.isalpha() and target.startswith("/"):
            named = {name.lower(): value for name, value in reply.headers.items()}
            require_documented(method, target, reply.status, named, reply.body, fields["Host"] or "")
        return reply

    def put(self, body: bytes, format: str = "chk") -> str:
        """A new file; its cap."""
        return self._cap(self.ask("PUT", f"/uri?format={format}", body))

    def folder(self, children: Mapping[str, Any]) -> str:
        """A new directory; its cap. children: as [spec webapi 5.4] has them."""
        return self._cap(self.ask("POST", "/uri?t=mkdir-with-children", json.dumps(children).encode()))

    def connect(self) -> socket.socket:
        """A connection on which nothing was said."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_S)

    def resident(self) -> int:
        """Bytes of memory that the process holds now."""
        return self._memory("VmRSS")

    def peak(self) -> int:
        """Bytes that it held at most since the last forget_peak."""
        return self._memory("VmHWM")

    def forget_peak(self) -> None:
        """Let the peak begin from now."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def descriptors(self) -> int:
        """Open files and sockets."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def logged(self) -> str:
        """All that it logged so far."""
        return self.log.read_text(errors="replace")

    def _memory(self, name: str) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith(f"{name}:"))
        return int(line.split()[1]) * 1024

    def _cap(self, reply: Reply) -> str:
        assert reply.status == 200, reply
        return reply.body.decode("ascii").strip()


def uri(cap: str, rest: str = "") -> str:
    """The target of an object."""
    return f"/uri/{quote(cap, safe='')}{rest}"


@contextmanager
def running_process(folder: Path, *names: str) -> Iterator[RunningGateway]:
    """A running gateway. names: its allowed host names, with any address, instead of those of loopback."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.gateway.process", str(folder), *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env=child_environment(),
        )
    assert process.stdin is not None and process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.strip().isdigit(), log.read_text()
        yield RunningGateway(process, int(line), log)
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
