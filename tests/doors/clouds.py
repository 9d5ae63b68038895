"""Emulators of Azure's and Google's object stores, for transfers: Azurite, fake-gcs-server, and a door of our own before versitygw.

fake-gcs-server takes no uploads over Google's XML interface, which obstore uses. That interface is the one of S3 but for its headers, so
versitygw takes them, behind a door that renames the headers.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import os
import socket
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote, unquote, urlsplit

from attrs import field, frozen

from grid.s3.signature import UNSIGNED
from perf.network.contract import LOOPBACK
from perf.peers.servers import ServerProcess, free_port
from perf.processes.node_process import child_environment
from tests.doors.grid import program
from tests.s3.rig import signed_head

BUCKET = "bucket"
AZURE_ACCOUNT = "labstore"

_SENT = (
    "content-type",
    "content-encoding",
    "content-language",
    "content-disposition",
    "cache-control",
    "range",
    "if-match",
)
_ANSWERED = (*_SENT, "etag", "last-modified", "content-range", "accept-ranges")


@frozen(kw_only=True)
class Cloud:
    """A store with an empty bucket. denied: the environment of a client with a wrong secret. secrets: both of them."""

    scheme: str
    environment: Mapping[str, str] = field(repr=False)
    denied: Mapping[str, str] = field(repr=False)
    secrets: Sequence[str] = field(repr=False)

    def url(self, prefix: str, bucket: str = BUCKET) -> str:
        """A place in it."""
        return f"{self.scheme}://{bucket}/{prefix}"


@contextmanager
def running_azurite(folder: Path) -> Iterator[Cloud]:
    """Azurite with an account of its own, whose key is random."""
    port, key = free_port(), base64.b64encode(os.urandom(64)).decode()
    words = ["--location", str(folder), "--blobPort", str(port), "--disableTelemetry", "--silent"]
    account = {"AZURITE_ACCOUNTS": f"{AZURE_ACCOUNT}:{key}"}
    process = ServerProcess(
        [program("azurite"), *words], {**child_environment(), **account}, folder / "log", LOOPBACK, [port]
    )
    try:
        _make_container(port, key, BUCKET)
        endpoint = f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}"

        def connection(secret: str) -> dict[str, str]:
            text = f"DefaultEndpointsProtocol=http;AccountName={AZURE_ACCOUNT};AccountKey={secret};BlobEndpoint={endpoint};"
            return {"AZURE_STORAGE_CONNECTION_STRING": text}

        other = base64.b64encode(b"not the key of the account").decode()
        yield Cloud(scheme="az", environment=connection(key), denied=connection(other), secrets=(key, other))
    finally:
        process.stop()


def _make_container(port: int, key: str, name: str) -> None:
    moment, version = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"), "2021-08-06"
    path = f"/{AZURE_ACCOUNT}/{name}"
    signed = f"PUT{12 * chr(10)}x-ms-date:{moment}\nx-ms-version:{version}\n/{AZURE_ACCOUNT}{path}\nrestype:container"
    signature = base64.b64encode(hmac.digest(base64.b64decode(key), signed.encode(), "sha256")).decode()
    _ask(
        f"http://127.0.0.1:{port}{path}?restype=container", "PUT", b"",
        {"Content-Type": "", "x-ms-date": moment, "x-ms-version": version, "Authorization": f"SharedKey {AZURE_ACCOUNT}:{signature}"},
    )  # fmt: skip


@frozen(kw_only=True)
class GoogleEmulator:
    """A running fake-gcs-server."""

    url: str

    @property
    def environment(self) -> dict[str, str]:
        """That of a client."""
        return {"STORAGE_EMULATOR_HOST": self.url}

    def put(self, name: str, data: bytes, content_type: str, notes: Mapping[str, str]) -> None:
        """Store an object as Google's own libraries do, over the JSON interface."""
        said = json.dumps({"name": name, "contentType": content_type, "metadata": dict(notes)}).encode()
        head = b"--part\r\nContent-Type: application/json\r\n\r\n"
        middle = b"\r\n--part\r\nContent-Type: " + content_type.encode() + b"\r\n\r\n"
        body = head + said + middle + data + b"\r\n--part--\r\n"
        kind = {"Content-Type": "multipart/related; boundary=part"}
        _ask(f"{self.url}/upload/storage/v1/b/{BUCKET}/o?uploadType=multipart", "POST", body, kind)


@contextmanager
def running_fake_gcs(folder: Path) -> Iterator[GoogleEmulator]:
    """fake-gcs-server with an empty bucket."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    words = ["-scheme", "http", "-backend", "memory", "-host", "127.0.0.1", "-port", str(port), "-public-host", address]
    process = ServerProcess([program("fake-gcs-server"), *words], child_environment(), folder / "log", LOOPBACK, [port])
    try:
        emulator = GoogleEmulator(url=f"http://{address}")
        kind = {"Content-Type": "application/json"}
        _ask(f"{emulator.url}/storage/v1/b?project=lab", "POST", json.dumps({"name": BUCKET}).encode(), kind)
        yield emulator
    finally:
        process.stop()


def _ask(url: str, method: str, body: bytes, headers: Mapping[str, str]) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, body, dict(headers), method=method)) as answer:
        answer.read()


@contextmanager
def google_before_s3(s3: Mapping[str, str]) -> Iterator[Cloud]:
    """Google's XML interface to an S3 server, for the bearer of a random token. s3: the environment of its clients."""
    token = os.urandom(16).hex()
    methods = {f"do_{method}": _GoogleDoor.pass_on for method in ("GET", "HEAD", "PUT", "POST", "DELETE")}
    handler = type("Door", (_GoogleDoor,), {"s3": s3, "token": token, **methods})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        secrets = (token, "another-token")
        environment, denied = ({"GOOGLE_BASE_URL": url, "GOOGLE_BEARER_TOKEN": text} for text in secrets)
        yield Cloud(scheme="gs", environment=environment, denied=denied, secrets=secrets)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _GoogleDoor(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    s3: Mapping[str, str]
    token: str

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def pass_on(self) -> None:
        """Ask the S3 server the same."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Bearer {self.token}":
            self._answer(401, {}, b"<Error><Code>AuthenticationRequired</Code></Error>")
            return
        path, _, query = self.path.partition("?")
        target = quote(unquote(path), safe="/-_.~") + (f"?{query}" if query else "")
        sent = {
            name.lower().replace("x-goog-meta-", "x-amz-meta-"): value
            for name, value in self.headers.items()
            if name.lower().startswith("x-goog-meta-") or name.lower() in _SENT
        }
        server = urlsplit(self.s3["AWS_ENDPOINT_URL"])
        head = signed_head(
            server.netloc, self.command, target, {**sent, "content-length": str(len(body)), "connection": "close"},
            key=self.s3["AWS_ACCESS_KEY_ID"], secret=self.s3["AWS_SECRET_ACCESS_KEY"], payload=UNSIGNED,
        )  # fmt: skip
        with socket.create_connection((server.hostname, server.port)) as connection:
            connection.sendall(head + body)
            answer = http.client.HTTPResponse(connection, method=self.command)
            answer.begin()
            data = answer.read()
            kept = {
                name.lower().replace("x-amz-meta-", "x-goog-meta-"): value
                for name, value in answer.getheaders()
                if name.lower().startswith("x-amz-meta-") or name.lower() in _ANSWERED
            }
        if self.command == "HEAD" and answer.status == 200:
            kept["content-length"] = answer.getheader("Content-Length", "0")
        self._answer(answer.status, {**kept, "x-goog-generation": "1"}, data)

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
