"""A client node's web gateway, of either program, over HTTP."""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar

from attrs import frozen

from perf.campaigns.campaign import Format
from perf.processes.clients import WebClient
from perf.systems.contract import Fetch

T = TypeVar("T")
R = TypeVar("R")

ANSWER_S = 600.0
PIECE = 1 << 20


@frozen
class HttpGateway:
    """A warm client: a running node's HTTP interface, the only library that 1.20 offers.

    The harness's own work, moving the file between disk and loopback, counts in the wall time but not in the client's
    processor seconds. Consecutive requests share one connection.
    """

    client: WebClient

    @property
    def pids(self) -> Sequence[int]:
        """The client node."""
        return [self.client.node.pid]

    @property
    def ports(self) -> Collection[int]:
        """The gateway's port."""
        return [urllib.parse.urlsplit(self.client.url).port or 0]

    def put(self, sources: Sequence[Path], concurrency: int, format: Format) -> list[str]:
        """`PUT /uri` with each file as the body."""
        return _at_once(lambda source: self._put(source, format), sources, concurrency)

    def get(self, fetches: Sequence[Fetch], concurrency: int) -> list[float]:
        """`GET /uri/CAP`, with a Range if requested, writing the body to the file."""
        url = self.client.url
        return _at_once(lambda fetch: fetch_by_http(url, fetch), fetches, concurrency)

    def overwrite(self, cap: str, offset: int, source: Path) -> None:
        """`PUT /uri/CAP?offset=N`."""
        with Asking(self.client.url) as asking:
            asking.send("PUT", f"{_uri(cap)}?offset={offset}", source.read_bytes())

    def make_directories(self, count: int) -> list[str]:
        """`POST /uri?t=mkdir`."""
        with Asking(self.client.url) as asking:
            return [asking.send("POST", "/uri?t=mkdir").decode().strip() for _ in range(count)]

    def add_children(self, directory: str, children: Sequence[tuple[str, str]], *, at_once: bool) -> None:
        """`POST /uri/DIRECTORY?t=set_children`, or `PUT /uri/DIRECTORY/NAME?t=uri` for each."""
        with Asking(self.client.url) as asking:
            if at_once:
                body = json.dumps({name: ["filenode", {"ro_uri": cap}] for name, cap in children})
                asking.send("POST", f"{_uri(directory)}?t=set_children", body.encode())
                return
            for name, cap in children:
                asking.send("PUT", f"{_uri(directory)}/{urllib.parse.quote(name, safe='')}?t=uri", cap.encode())

    def status(self) -> str:
        """The status of recent operations as JSON."""
        return self.client.status()

    def list_children(self, directory: str) -> list[str]:
        """`GET /uri/DIRECTORY?t=json`."""
        with Asking(self.client.url) as asking:
            _, properties = json.loads(asking.send("GET", f"{_uri(directory)}?t=json"))
        return list(properties["children"])

    def trace(self) -> None:
        """None: the gateway does not report it."""

    def _put(self, source: Path, format: Format) -> str:
        with Asking(self.client.url) as asking, source.open("rb") as body:
            return asking.send("PUT", f"/uri?format={format}", body, source.stat().st_size).decode().strip()


class Asking:
    """A connection to the gateway at this URL, for consecutive requests."""

    def __init__(self, url: str) -> None:
        base = urllib.parse.urlsplit(url)
        assert base.hostname is not None
        self._connection = http.client.HTTPConnection(base.hostname, base.port, timeout=ANSWER_S, blocksize=PIECE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def send(self, method: str, path: str, body: bytes | BinaryIO | None = None, size: int | None = None) -> bytes:
        """The body of the answer; RuntimeError if the gateway refuses."""
        headers = {} if size is None else {"Content-Length": str(size)}
        self._connection.request(method, path, body=body, headers=headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status not in (200, 201):
            raise RuntimeError(f"{method} answered {answer.status}: {data[:2000]!r}")
        return data


def _uri(cap: str) -> str:
    return f"/uri/{urllib.parse.quote(cap, safe='')}"


def _at_once(one: Callable[[T], R], items: Sequence[T], concurrency: int) -> list[R]:
    if concurrency == 1:
        return [one(item) for item in items]
    with ThreadPoolExecutor(concurrency) as pool:
        return list(pool.map(one, items))


def fetch_by_http(url: str, fetch: Fetch) -> float:
    """Download from the gateway to the file; return the seconds until the first byte of the body.

    RuntimeError if the answer does not match the request.
    """
    base = urllib.parse.urlsplit(url)
    assert base.hostname is not None
    headers, status = {}, 200
    if fetch.length is not None:
        headers, status = {"Range": f"bytes={fetch.offset}-{fetch.offset + fetch.length - 1}"}, 206
    started = time.perf_counter()
    connection = http.client.HTTPConnection(base.hostname, base.port, timeout=ANSWER_S, blocksize=PIECE)
    try:
        connection.request("GET", f"/uri/{urllib.parse.quote(fetch.cap, safe='')}", headers=headers)
        answer = connection.getresponse()
        if answer.status != status:
            raise RuntimeError(f"the gateway answered {answer.status}: {answer.read()[:2000]!r}")
        missing = int(answer.headers["Content-Length"])
        piece = answer.read1(PIECE)
        first = time.perf_counter() - started
        with fetch.target.open("wb") as target:
            while piece:
                target.write(piece)
                missing -= len(piece)
                piece = answer.read(PIECE)
    finally:
        connection.close()
    if missing:
        raise RuntimeError(f"the gateway's answer is {missing} bytes short")
    return first
