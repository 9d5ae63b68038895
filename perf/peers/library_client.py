"""Grid's library in one permanent process with many files at once, as in a program that imports Grid."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any

from perf.campaigns.labels import Codec
from perf.network.contract import Host
from perf.peers.contract import PeerError
from perf.processes.installation import OWN
from perf.processes.node_process import child_environment, tether

ENDING_S = 10.0


class LibraryClient:
    """A client of perf.systems.library, whose answers may arrive in any order. Any thread may call it."""

    def __init__(self, directory: Path, servers: int, codec: Codec, options: Sequence[str], host: Host) -> None:
        """Wait until it is connected to this many servers; PeerError if that fails. options: of the engine."""
        words = [str(directory), str(servers), codec, *options]
        self._process = subprocess.Popen(
            [*tether(), *host.command(OWN.module("perf.systems.library", *words))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=OWN.tree,
            env={**child_environment(), **host.environment},
        )
        self._numbers = count()
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[list[Any]]] = {}
        ready: Future[list[Any]] = Future()
        self._waiting[-1] = ready
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        try:
            ready.result()
        except PeerError:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The process's pid."""
        return self._process.pid

    def put(self, source: Path) -> str:
        """Upload an immutable file; return its capability."""
        return str(self._ask("put", [str(source), "chk"])[0])

    def get(self, cap: str, target: Path, length: int | None = None) -> None:
        """Download to the file: all, or this many bytes from the beginning."""
        self._ask("get", [cap, str(target), 0, length])

    def forget(self) -> None:
        """Drop the events of earlier transfers."""
        self._ask("forget", [])

    def timeline(self) -> str:
        """The events of the slowest transfer since `forget`, in the form of perf.sampling.timeline."""
        return str(self._ask("trace", [])[1])

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        self._process.stdout.close()

    def _ask(self, what: str, item: Sequence[Any]) -> list[Any]:
        answer: Future[list[Any]] = Future()
        assert self._process.stdin is not None
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = answer
            question = {"number": number, "what": what, "items": [item], "concurrency": 1}
            try:
                self._process.stdin.write(json.dumps(question).encode() + b"\n")
                self._process.stdin.flush()
            except OSError as error:
                raise PeerError(f"the library's process has ended: {error}") from None
        return answer.result()

    def _listen(self) -> None:
        """Pass each answer to the waiting thread; if the process ends, wake all of them."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            waiting = self._waiting.pop(answer.get("number", -1), None)
            if waiting is None:
                continue
            if "error" in answer:
                waiting.set_exception(PeerError(answer["error"]))
            else:
                waiting.set_result(answer["results"])
        with self._lock:
            left = list(self._waiting.values())
            self._waiting.clear()
        for waiting in left:
            waiting.set_exception(PeerError("the library's process has ended"))
