"""A real grid whose servers fall silent, slow down, lie or die on demand, and the operations of the faults campaign on it.

Servers are processes of perf.systems.stalling_node; stopping a process stalls all kinds of messages at once.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from attrs import field, frozen

from perf.faults.faults import Case, Fault, Outcome
from perf.processes.clients import GridGateway
from perf.processes.installation import OWN, Installation
from perf.processes.node_directory import Kind, Transport, wait_listening
from perf.processes.node_process import NodeProcess, child_environment
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.systems.stalling_node import STALLED_FILE

SERVERS = 10
NEEDED = 3
KB, MB = 1000, 10**6
RANGE = slice(5_000_000, 5_001_000)
CHILD = "first"
SINGLE = {"get 1 KB": KB, "get 100 MB": 100 * MB}
"""Sizes of files that only one operation needs, so that they are stored when it comes."""

DAMAGED = (7, 8, 9)
"""Servers whose shares of a file are removed before its repair; others than those that fall silent."""

ANSWER_S = 60.0
COMMAND_S = 90.0


Check = Callable[[bytes], None]


class RefusedError(Exception):
    """The operation failed; the message is what was said."""


class WrongAnswerError(Exception):
    """The operation ended well, and did not do what it had to."""


@frozen
class Step:
    """One repetition. run: performs it; returns the answer; RefusedError. check: WrongAnswerError."""

    run: Callable[[], bytes]
    check: Check


@frozen
class Request:
    """A request to the gateway, and the check of its answer."""

    method: str
    path: str
    check: Check
    body: bytes = b""
    headers: Mapping[str, str] = field(factory=dict)


class FaultyGrid:
    """Ten servers, a gateway and a directory for commands. A context manager."""

    def __init__(
        self,
        root: Path,
        transport: Transport,
        installation: Installation = OWN,
        durability: Literal["full", "none"] = "full",
    ) -> None:
        """installation: what nodes and commands run. durability: of the servers."""
        storage: list[Kind] = ["grid"] * SERVERS
        self._grid = ProcessGrid(
            root,
            introducer="grid",
            storage=storage,
            force_foolscap=False,
            transport=transport,
            durability=durability,
            program=installation.program,
        )
        self._grid.prepare_storage(self._make_stallable)
        self._installation = installation
        self._transport = transport
        self._count = 0

    def __enter__(self) -> Self:
        self._grid.__enter__()
        try:
            self._begin()
        except BaseException:
            self._grid.stop()
            raise
        return self

    def _begin(self) -> None:
        gateway = self._grid.add_client(ClientSettings(kind="grid", gateway=True))
        assert isinstance(gateway, GridGateway)
        self._address = urllib.parse.urlsplit(gateway.url).netloc
        self._commands = self._grid.add_client(ClientSettings(kind="grid")).directory
        self._prepare()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for node in self._grid.storage:
            if node.running:
                node.thaw()
        self._grid.__exit__(kind, error, at)

    def measure(self, group: Sequence[Case], repetitions: int) -> list[Outcome]:
        """Repeat the operation of each case under the fault of all. A failed one counts the time until it reported the error.

        What each one did is checked, which is not timed; a wrong answer is an error.
        """
        outcomes: list[Outcome] = []
        self._settle()
        for case in group:
            self._store_files(case.operation, repetitions)
        with self._fault(group[0].fault):
            for case in group:
                seconds: list[float] = []
                errors: list[str] = []
                wrong: list[str] = []
                for _ in range(repetitions):
                    step = self._step(case)
                    took, error, reproach = perform(step)
                    seconds.append(took)
                    errors += [error] if error else []
                    wrong += [reproach] if reproach else []
                outcomes.append(Outcome(case=case, seconds=seconds, errors=errors, wrong=wrong))
        return outcomes

    def _make_stallable(self, node: NodeProcess) -> None:
        command = self._installation.module("perf.systems.stalling_node", str(node.directory))
        node.run_with(command, self._installation.tree)

    def _prepare(self) -> None:
        self._contents: dict[str, bytes] = {}
        self._single: dict[str, str] = {}
        self._repairable: list[str] = []
        self._directory = self._ask("POST", "/uri?t=mkdir")
        self._small = self._store(3 * KB)
        self._mutable = self._ask("PUT", "/uri?format=sdmf", os.urandom(3 * KB))
        self._ask("PUT", f"/uri/{_quoted(self._directory)}/{CHILD}?t=uri", self._small.encode())
        self._large = [self._store(8 * MB) for _ in range(3)]

    def _store(self, size: int) -> str:
        """Store a file; return its capability."""
        contents = os.urandom(size)
        cap = self._ask("PUT", "/uri", contents)
        self._contents[cap] = contents
        return cap

    def _store_files(self, operation: str, repetitions: int) -> None:
        """Store what only this operation needs: every repair gets a new file."""
        if operation in SINGLE and operation not in self._single:
            self._single[operation] = self._store(SINGLE[operation])
        if operation == "repair":
            self._repairable = [self._store(2 * MB) for _ in range(repetitions)]

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

    def _step(self, case: Case) -> Step:
        """The next repetition."""
        self._count += 1
        return self._command(case.operation) if case.cold else self._request(case.operation)

    def _request(self, name: str) -> Step:
        """A request to the gateway."""
        asked = self._reading(name) or self._writing(name)

        def run() -> bytes:
            status, answer = self._exchange(asked.method, asked.path, asked.body, asked.headers)
            if status >= 300:
                raise RefusedError(answer.decode(errors="replace").partition("\n")[0])
            return answer

        return Step(run, asked.check)

    def _reading(self, name: str) -> Request | None:
        """The request of an operation that changes nothing; None for another."""
        cap = self._large[self._count % len(self._large)]
        large, contents = f"/uri/{_quoted(cap)}", self._contents[cap]
        match name:
            case "get 8 MB":
                return Request("GET", large, lambda answer: _expect_bytes(answer, contents))
            case "range":
                headers = {"Range": f"bytes={RANGE.start}-{RANGE.stop - 1}"}
                return Request("GET", large, lambda answer: _expect_bytes(answer, contents[RANGE]), headers=headers)
            case "list":
                return Request("GET", f"/uri/{_quoted(self._directory)}?t=json", _expect_child)
            case "check":
                return Request("POST", f"{large}?t=check&output=JSON", _expect_readable)
            case "verify":
                return Request("POST", f"{large}?t=check&verify=true&output=JSON", _expect_readable)
        return None

    def _writing(self, name: str) -> Request:
        """The request of an operation that stores something."""
        match name:
            case "put 3 KB" | "put 8 MB":
                body = os.urandom(3 * KB if name == "put 3 KB" else 8 * MB)
                return Request("PUT", "/uri", lambda answer: self._expect(_path(answer), body), body)
            case "mkdir":
                return Request("POST", "/uri?t=mkdir", self._expect_directory)
            case "overwrite":
                path, body = f"/uri/{_quoted(self._mutable)}", os.urandom(3 * KB)
                return Request("PUT", path, lambda _: self._expect(path, body), body)
            case "link":
                path, contents = f"/uri/{_quoted(self._directory)}/{self._count}", self._contents[self._small]
                return Request("PUT", f"{path}?t=uri", lambda _: self._expect(path, contents), self._small.encode())
            case "repair":
                cap = self._repairable.pop()
                self._damage(cap)
                path = f"/uri/{_quoted(cap)}?t=check&verify=true&repair=true&output=JSON"
                return Request("POST", path, lambda _: self._expect_repaired(cap))
        raise ValueError(name)

    def _command(self, name: str) -> Step:
        """A command, with nothing running when it begins."""
        source, target = self._grid.root / "input", self._grid.root / "output"
        target.unlink(missing_ok=True)
        check: Check = _expect_something
        match name:
            case "put 3 KB":
                body = os.urandom(3 * KB)
                source.write_bytes(body)
                words, check = ["put", str(source)], lambda answer: self._expect(_path(answer), body)
            case "mkdir":
                words, check = ["mkdir"], self._expect_directory
            case "get 8 MB" | "get 1 KB" | "get 100 MB":
                cap = self._large[self._count % len(self._large)] if name == "get 8 MB" else self._single[name]
                words, check = (
                    ["get", cap, str(target)],
                    lambda _: _expect_bytes(target.read_bytes(), self._contents[cap]),
                )
            case "list":
                words, check = ["ls", self._directory], _expect_child
            case "check":
                words = ["check", self._large[self._count % len(self._large)]]
            case _:
                raise ValueError(name)
        command = [self._installation.program, "-d", str(self._commands), *words]

        def run() -> bytes:
            done = subprocess.run(command, capture_output=True, timeout=COMMAND_S, env=child_environment(), check=False)
            # A check that found shares missing has succeeded.
            if done.returncode not in ((0, 1) if name == "check" else (0,)):
                raise RefusedError(done.stderr.decode(errors="replace").strip()[:200])
            return done.stdout

        return Step(run, check)

    def _expect(self, path: str, contents: bytes) -> None:
        status, answer = self._exchange("GET", path, b"", {})
        if status >= 300:
            raise WrongAnswerError(f"what was stored cannot be read: {answer[:200]!r}")
        _expect_bytes(answer, contents)

    def _expect_directory(self, answer: bytes) -> None:
        said = json.loads(self._ask("GET", f"{_path(answer)}?t=json"))
        if said[0] != "dirnode":
            raise WrongAnswerError("what was made is no directory")

    def _expect_repaired(self, cap: str) -> None:
        """WrongAnswerError unless every share is there, and the file has its contents."""
        found = len(self._grid.shares(self._storage_index(cap)))
        if found < SERVERS:
            raise WrongAnswerError(f"the repair left {found} of {SERVERS} shares")
        self._expect(f"/uri/{_quoted(cap)}", self._contents[cap])

    def _storage_index(self, cap: str) -> str:
        """In base32."""
        from grid.caps import ChkVerifyCap, parse_cap
        from grid.codec.base32 import encode

        parsed = parse_cap(json.loads(self._ask("GET", f"/uri/{_quoted(cap)}?t=json"))[1]["verify_uri"])
        assert isinstance(parsed, ChkVerifyCap)
        return encode(parsed.storage_index)

    def _damage(self, cap: str) -> None:
        """Remove a file's shares from servers that never fall silent."""
        homes = {self._grid.storage[number].directory for number in DAMAGED}
        for path in (path for paths in self._grid.shares(self._storage_index(cap)).values() for path in paths):
            if any(home in path.parents for home in homes):
                path.unlink()

    def _ask(self, method: str, path: str, body: bytes = b"") -> str:
        status, text = self._exchange(method, path, body, {})
        if status >= 300:
            raise RuntimeError(f"{method}: {status}: {text[:300]!r}")
        return text.decode(errors="replace").strip()

    def _exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._address, timeout=ANSWER_S)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def perform(step: Step) -> tuple[float, str, str]:
    """Seconds, the error of the operation, and what is wrong with its answer; both are empty if nothing is."""
    began = time.monotonic()
    try:
        answer = step.run()
    except (RefusedError, OSError, http.client.HTTPException, subprocess.TimeoutExpired) as error:
        return time.monotonic() - began, str(error) or type(error).__name__, ""
    seconds = time.monotonic() - began
    try:
        step.check(answer)
    except Exception as error:  # noqa: BLE001 - whatever a system under test does wrong is a result
        return seconds, "", f"{type(error).__name__}: {error}"
    return seconds, "", ""


def _quoted(cap: str) -> str:
    return urllib.parse.quote(cap, safe="")


def _path(answer: bytes) -> str:
    """Of the capability that is the answer."""
    return f"/uri/{_quoted(answer.decode('ascii').strip())}"


def _expect_bytes(answer: bytes, contents: bytes) -> None:
    if answer != contents:
        raise WrongAnswerError("wrong bytes came back")


def _expect_child(answer: bytes) -> None:
    if CHILD.encode() not in answer:
        raise WrongAnswerError("a child is missing from the list")


def _expect_readable(answer: bytes) -> None:
    if json.loads(answer)["results"]["count-shares-good"] < NEEDED:
        raise WrongAnswerError("a file that can be read is said to be lost")


def _expect_something(answer: bytes) -> None:
    if not answer.strip():
        raise WrongAnswerError("the command said nothing")
