"""A real grid whose servers fall silent or die on demand, and the operations of the faults campaign on it.

Servers are processes of perf.systems.stalling_node; stopping a process stalls all kinds of messages at once.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from perf.faults.faults import Case, Fault, Outcome
from perf.processes.clients import GridGateway
from perf.processes.installation import OWN, Installation
from perf.processes.node_directory import Kind, Transport, wait_listening
from perf.processes.node_process import NodeProcess, child_environment
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.systems.stalling_node import STALLED_FILE

SERVERS = 10
KB, MB = 1000, 10**6
DAMAGED = (7, 8, 9)
"""Servers whose shares of a file are removed before its repair; others than those that fall silent."""

ANSWER_S = 60.0
COMMAND_S = 90.0


class FaultyGrid:
    """Ten servers, a gateway and a directory for commands. A context manager."""

    def __init__(self, root: Path, transport: Transport, installation: Installation = OWN) -> None:
        """installation: what nodes and commands run."""
        storage: list[Kind] = ["grid"] * SERVERS
        self._grid = ProcessGrid(
            root,
            introducer="grid",
            storage=storage,
            force_foolscap=False,
            transport=transport,
            durability="none",
            program=installation.program,
        )
        self._grid.prepare_storage(self._make_stallable)
        self._installation = installation
        self._transport = transport
        self._count = 0

    def __enter__(self) -> Self:
        self._grid.__enter__()
        gateway = self._grid.add_client(ClientSettings(kind="grid", gateway=True))
        assert isinstance(gateway, GridGateway)
        self._address = urllib.parse.urlsplit(gateway.url).netloc
        self._commands = self._grid.add_client(ClientSettings(kind="grid")).directory
        self._prepare()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for node in self._grid.storage:
            if node.running:
                node.thaw()
        self._grid.__exit__(kind, error, at)

    def measure(self, group: Sequence[Case], repetitions: int) -> list[Outcome]:
        """Repeat the operation of each case under the fault of all. A failed one counts the time until it reported the error."""
        outcomes: list[Outcome] = []
        self._settle()
        with self._fault(group[0].fault):
            for case in group:
                seconds: list[float] = []
                errors: list[str] = []
                operation = self._command(case.operation) if case.cold else self._operation(case.operation)
                for _ in range(repetitions):
                    prepared = operation()
                    began = time.monotonic()
                    error = prepared()
                    seconds.append(time.monotonic() - began)
                    if error:
                        errors.append(error)
                outcomes.append(Outcome(case=case, seconds=seconds, errors=errors))
        return outcomes

    def _make_stallable(self, node: NodeProcess) -> None:
        command = self._installation.module("perf.systems.stalling_node", str(node.directory))
        node.run_with(command, self._installation.tree)

    def _prepare(self) -> None:
        self._directory = self._ask("POST", "/uri?t=mkdir")
        self._small = self._ask("PUT", "/uri", os.urandom(3 * KB))
        self._mutable = self._ask("PUT", "/uri?format=sdmf", os.urandom(3 * KB))
        self._ask("PUT", f"/uri/{_quoted(self._directory)}/first?t=uri", self._small.encode())
        self._large = [self._ask("PUT", "/uri", os.urandom(8 * MB)) for _ in range(3)]
        self._repairable = [self._ask("PUT", "/uri", os.urandom(2 * MB)) for _ in range(3)]
        self._input = self._grid.root / "input"

    def _settle(self) -> None:
        """Wait until the gateway has noticed that all servers are back, so cases do not affect each other."""
        deadline = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline:
            began = time.monotonic()
            results = json.loads(self._ask("POST", f"/uri/{_quoted(self._small)}?t=check&output=JSON"))["results"]
            if len(results["servers-responding"]) == SERVERS and time.monotonic() - began < 1.0:
                self._ask("PUT", "/uri", os.urandom(3 * KB))
                self._ask("PUT", f"/uri/{_quoted(self._mutable)}", os.urandom(3 * KB))
                return
            time.sleep(0.5)
        raise TimeoutError("the servers did not all come back")

    @contextmanager
    def _fault(self, fault: Fault) -> Iterator[None]:
        victims = self._grid.storage[: fault.count]
        for node in victims:
            if fault.kind == "gone":
                node.kill()
            elif fault.kind == "*":
                node.freeze()
            else:
                (node.directory / STALLED_FILE).write_text(fault.kind)
        try:
            yield
        finally:
            for node in victims:
                if fault.kind == "gone":
                    node.start()
                elif fault.kind == "*":
                    node.thaw()
                else:
                    (node.directory / STALLED_FILE).unlink()
            for node in victims:
                wait_listening(node)

    def _operation(self, name: str) -> Callable[[], Callable[[], str]]:
        """Return a function that prepares one repetition; its result performs it and returns the error, or ""."""

        def prepare() -> Callable[[], str]:
            method, path, body, headers = self._request(name)

            def run() -> str:
                status, text = self._exchange(method, path, body, headers)
                return "" if status < 300 else text.decode(errors="replace").splitlines()[0]

            return run

        return prepare

    def _request(self, name: str) -> tuple[str, str, bytes, dict[str, str]]:
        """Method, path, body and headers of the next repetition."""
        self._count += 1
        large = f"/uri/{_quoted(self._large[self._count % len(self._large)])}"
        directory, mutable = f"/uri/{_quoted(self._directory)}", f"/uri/{_quoted(self._mutable)}"
        if name == "repair":
            cap = self._repairable[self._count % len(self._repairable)]
            self._damage(cap)
            return "POST", f"/uri/{_quoted(cap)}?t=check&verify=true&repair=true&output=JSON", b"", {}
        requests: dict[str, tuple[str, str, int, dict[str, str]]] = {
            "put 3 KB": ("PUT", "/uri", 3 * KB, {}),
            "put 8 MB": ("PUT", "/uri", 8 * MB, {}),
            "mkdir": ("POST", "/uri?t=mkdir", 0, {}),
            "overwrite": ("PUT", mutable, 3 * KB, {}),
            "get 8 MB": ("GET", large, 0, {}),
            "range": ("GET", large, 0, {"Range": "bytes=5000000-5000999"}),
            "list": ("GET", f"{directory}?t=json", 0, {}),
            "check": ("POST", f"{large}?t=check&output=JSON", 0, {}),
            "verify": ("POST", f"{large}?t=check&verify=true&output=JSON", 0, {}),
        }
        if name == "link":
            return "PUT", f"{directory}/{self._count}?t=uri", self._small.encode(), {}
        method, path, size, headers = requests[name]
        return method, path, os.urandom(size), headers

    def _command(self, name: str) -> Callable[[], Callable[[], str]]:
        def arguments() -> list[str]:
            self._count += 1
            match name:
                case "put 3 KB":
                    self._input.write_bytes(os.urandom(3 * KB))
                    return ["put", str(self._input)]
                case "mkdir":
                    return ["mkdir"]
                case "get 8 MB":
                    return ["get", self._large[self._count % len(self._large)], str(self._grid.root / "output")]
                case "list":
                    return ["ls", self._directory]
                case "check":
                    return ["check", self._large[self._count % len(self._large)]]
            raise ValueError(name)

        def prepare() -> Callable[[], str]:
            command = [self._installation.program, "-d", str(self._commands), *arguments()]

            def run() -> str:
                done = subprocess.run(
                    command, capture_output=True, timeout=COMMAND_S, env=child_environment(), check=False
                )
                # A check that found shares missing has succeeded.
                right = (0, 1) if name == "check" else (0,)
                return "" if done.returncode in right else done.stderr.decode(errors="replace").strip()[:200]

            return run

        return prepare

    def _damage(self, cap: str) -> None:
        """Remove a file's shares from servers that never fall silent."""
        index = json.loads(self._ask("GET", f"/uri/{_quoted(cap)}?t=json"))[1].get("verify_uri", "")
        assert index
        from grid.caps import ChkVerifyCap, parse_cap
        from grid.codec.base32 import encode

        parsed = parse_cap(index)
        assert isinstance(parsed, ChkVerifyCap)
        shares = self._grid.shares(encode(parsed.storage_index))
        homes = {self._grid.storage[number].directory for number in DAMAGED}
        for path in (path for paths in shares.values() for path in paths):
            if any(home in path.parents for home in homes):
                path.unlink()

    def _ask(self, method: str, path: str, body: bytes = b"") -> str:
        status, text = self._exchange(method, path, body, {})
        if status >= 300:
            raise RuntimeError(f"{method}: {status}: {text[:300]!r}")
        return text.decode(errors="replace").strip()

    def _exchange(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._address, timeout=ANSWER_S)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def _quoted(cap: str) -> str:
    return urllib.parse.quote(cap, safe="")
