"""boto3, the Python library: one permanent process that answers several requests at a time."""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from perf.peers.contract import Cost, PeerError
from perf.peers.s3_commands import S3Peer

ANSWER_S = 1800.0


class Boto3(S3Peer):
    """A warm client, except right after its start: `warm_up` fetches five bytes."""

    client = "boto3"
    stays = True

    def __init__(self, label: str, server: str, options: Sequence[str] = ()) -> None:
        super().__init__(label, server, options)
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._turn = threading.Lock()
        self._listener: threading.Thread | None = None

    @property
    def client_pids(self) -> Sequence[int]:
        """The one process, and what serves S3 on its machine."""
        own = [self._process.pid] if self._process is not None else []
        return [*own, *super().client_pids]

    def make_bucket(self) -> None:
        """Start the process, and create a bucket."""
        self._start()
        self._ask("bucket")

    def restart(self) -> None:
        """Start a new process, without connections."""
        self._end()
        self._start()

    def warm_up(self, name: str) -> None:
        """Fetch five bytes of a stored file, as the published measurement does."""
        self._ask("warm", name)

    def take_down(self) -> None:
        """End the process, then the server."""
        self._end()
        super().take_down()

    def put(self, source: Path, name: str) -> Cost:
        """`upload_file`."""
        return self._do("put", name, source)

    def get(self, name: str, target: Path) -> Cost:
        """`download_file`."""
        return self._do("get", name, target)

    def first_byte(self, name: str, digest: str) -> Cost:
        """`get_object` until the first byte; the rest is read too, but does not count. digest: the SHA-256 of all of it."""
        seconds, found = self._ask("first", name)["result"]
        if found != digest:
            raise PeerError(f"{name} came back with other bytes")
        return Cost(seconds=float(seconds))

    def put_folder(self, source: Path, name: str) -> Cost:
        """`upload_file` for each: one after the other, or 32 at a time if tuned."""
        return self._do("put-folder", name, source)

    def get_folder(self, name: str, target: Path) -> Cost:
        """`download_file` for each, in the same way."""
        return self._do("get-folder", name, target)

    def list_folder(self, name: str) -> list[str]:
        """`list_objects_v2`."""
        return sorted(str(key).partition("/")[2] for key in self._ask("list", f"{name}/")["result"])

    def delete(self, name: str) -> Cost:
        """`delete_object` of an existing object."""
        return self._do("delete", name)

    def delete_folder(self, name: str) -> Cost:
        """`delete_object` for each."""
        return self._do("delete-folder", name)

    def _do(self, what: str, name: str, path: Path | str = "") -> Cost:
        return Cost(seconds=float(self._ask(what, name, path)["seconds"]))

    def _ask(self, what: str, name: str = "", path: Path | str = "") -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        answer: Future[dict[str, Any]] = Future()
        with self._turn:
            number = next(self._numbers)
            self._waiting[number] = answer
            try:
                process.stdin.write(
                    json.dumps({"id": number, "what": what, "name": name, "path": str(path)}).encode() + b"\n"
                )
                process.stdin.flush()
            except OSError:
                raise PeerError("the process of boto3 has ended") from None
        said = answer.result(ANSWER_S)
        if "error" in said:
            raise PeerError(f"boto3: {said['error']}")
        return said

    def _start(self) -> None:
        script = Path(__file__).with_name("boto3_process.py")
        command = self.command("-I", script, self.server.url, *(["tuned"] if self.tuned else []))
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**self.environment(), "AWS_CONFIG_FILE": str(self.root / "none")},
        )
        ready: Future[dict[str, Any]] = Future()
        self._waiting[0] = ready
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()
        ready.result(ANSWER_S)

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                said = json.loads(line)
                self._waiting.pop(said["id"]).set_result(said)
        while self._waiting:
            self._waiting.popitem()[1].set_result({"error": "its process has ended"})

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._listener is not None:
            self._listener.join()
