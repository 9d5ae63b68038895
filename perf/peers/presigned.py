"""Presigned URLs of an S3 server, asked by the client that measures web gateways: the same program at both interfaces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from grid.s3.signature import ALGORITHM, UNSIGNED, RequestHead, Scope, encode, request_text, sign, signing_key
from perf.peers.commands import timed, timed_each
from perf.peers.contract import Cost
from perf.peers.s3_commands import BUCKET, REGION, S3Peer
from perf.processes.clients import http_download, http_request
from perf.processes.node_process import wait_until

EXPIRES_S = 3600

_KEY = re.compile(r"<Key>([^<]*)</Key>")


class Presigned(S3Peer):
    """The campaign's own process, with a connection for each request."""

    client = "http"
    stays = True

    def __init__(self, label: str, server: str, options: Sequence[str] = ()) -> None:
        super().__init__(label, server, options)
        self.programs = tuple(filter(None, [self.server.program]))

    def make_bucket(self) -> None:
        """PUT of the bucket, as soon as the server can store it: this client does not try again by itself."""
        wait_until(self._can_make_bucket, "the first bucket")

    def _can_make_bucket(self) -> bool:
        try:
            self._ask("PUT", "")
        except RuntimeError as error:
            if "answered 503" in str(error):
                return False
            raise
        return True

    def put(self, source: Path, name: str) -> Cost:
        """PUT of the object."""

        def send() -> None:
            path = self._sign("PUT", name)
            with source.open("rb") as body, http_request(self.server.url, "PUT", path, body, source.stat().st_size):
                pass

        return timed(send)

    def get(self, name: str, target: Path) -> Cost:
        """GET of the object."""
        return timed(lambda: http_download(self.server.url, self._sign("GET", name), target))

    def put_folder(self, source: Path, name: str) -> Cost:
        """PUT of each file."""
        return timed_each(lambda path: self.put(path, f"{name}/{path.name}"), sorted(source.iterdir()))

    def get_folder(self, name: str, target: Path) -> Cost:
        """GET of each file."""
        target.mkdir()
        return timed_each(lambda one: self.get(f"{name}/{one}", target / one), self.list_folder(name))

    def list_folder(self, name: str) -> list[str]:
        """ListObjectsV2, its first page."""
        said = self._ask("GET", "", ("list-type", "2"), ("prefix", f"{name}/"))
        return sorted(key.partition("/")[2] for key in _KEY.findall(said))

    def delete(self, name: str) -> Cost:
        """DELETE of the object."""
        return timed(lambda: self._ask("DELETE", name))

    def delete_folder(self, name: str) -> Cost:
        """DELETE of each object."""
        return timed_each(lambda one: self.delete(f"{name}/{one}"), self.list_folder(name))

    def _ask(self, method: str, name: str, *query: tuple[str, str]) -> str:
        with http_request(self.server.url, method, self._sign(method, name, *query)) as answer:
            return answer.read().decode()

    def _sign(self, method: str, name: str, *query: tuple[str, str]) -> str:
        """The path and the query of a presigned URL of an object, or of the bucket if there is no name."""
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = Scope(day=moment[:8], region=REGION)
        parameters = [
            *query,
            ("X-Amz-Algorithm", ALGORITHM),
            ("X-Amz-Credential", f"{self.server.access_key}/{scope}"),
            ("X-Amz-Date", moment),
            ("X-Amz-Expires", str(EXPIRES_S)),
            ("X-Amz-SignedHeaders", "host"),
        ]
        path = f"{BUCKET}/{quote(name)}" if name else BUCKET
        host = self.server.url.partition("//")[2]
        head = RequestHead(method=method, path=f"/{path}", query=parameters, headers=[("host", host)])
        key = signing_key(self.server.secret_key, scope)
        parameters.append(("X-Amz-Signature", sign(key, request_text(head, moment, scope, ["host"], UNSIGNED))))
        return f"{path}?" + "&".join(f"{encode(name)}={encode(value)}" for name, value in parameters)
