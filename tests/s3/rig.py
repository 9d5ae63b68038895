"""An S3 door in this process on a real socket, over an in-memory grid; and requests to it, signed and byte by byte."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from xml.etree import ElementTree

from attrs import define, evolve, field
from twisted.internet.endpoints import TCP4ServerEndpoint

from grid.caps import DirectoryCap
from grid.s3.accounts import PUBLIC, Account
from grid.s3.door import Door
from grid.s3.server import S3Factory
from grid.s3.signature import EMPTY_HASH, UNSIGNED, RequestHead, Scope, request_text, sign, signing_key
from grid.wire.connections.connection_limit import ConnectionLimit
from tests.gateway.rig import Reply, Rig, Wire, running_gateway

SECRET = "a secret that is not guessed"
MAIN, READER, OTHER = "GKMAIN", "GKREADER", "GKOTHER"


@define(eq=False)
class S3Rig:
    """A door that listens."""

    rig: Rig
    door: Door
    factory: S3Factory
    port: int
    accounts: dict[str, Account] = field(factory=dict)

    @property
    def host(self) -> str:
        """As the Host header has it."""
        return f"127.0.0.1:{self.port}"

    async def connect(self) -> Wire:
        """A connection."""
        return await evolve(self.rig, port=self.port).connect()

    def head(
        self, method: str, target: str, headers: Mapping[str, str], *, key: str = MAIN, secret: str = SECRET,
        payload: str = EMPTY_HASH, moment: str | None = None,
    ) -> bytes:  # fmt: skip
        """The head of a request to this door that is signed."""
        return signed_head(self.host, method, target, headers, key=key, secret=secret, payload=payload, moment=moment)

    async def ask(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None, **signing: Any
    ) -> Reply:
        """One request on a connection of its own."""
        fields = {"Connection": "close", **(headers or {})}
        if body or method in ("PUT", "POST"):
            fields.setdefault("Content-Length", str(len(body)))
        signing.setdefault("payload", hashlib.sha256(body).hexdigest())
        return await self.send(self.head(method, target, fields, **signing) + body, head=method == "HEAD")

    async def send(self, data: bytes, *, head: bool = False) -> Reply:
        """The answer to these bytes."""
        wire = await self.connect()
        wire.send(data)
        reply = await wire.reply(head=head)
        wire.transport.loseConnection()  # type: ignore[union-attr]
        return reply

    async def keys(self, query: str = "", bucket: str = "bucket") -> list[str]:
        """The keys in a page of a listing."""
        reply = await self.ask("GET", f"/{bucket}?list-type=2{query}")
        assert reply.status == 200, reply
        return texts(reply.body, "Key")


def signed_head(
    host: str, method: str, target: str, headers: Mapping[str, str], *, key: str = MAIN, secret: str = SECRET,
    payload: str = EMPTY_HASH, moment: str | None = None,
) -> bytes:  # fmt: skip
    """The head of a request that is signed."""
    moment = moment or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    fields = {"host": host, "x-amz-date": moment, "x-amz-content-sha256": payload}
    fields |= {name.lower(): value for name, value in headers.items()}
    scope = Scope(day=moment[:8], region="us-east-1")
    path, _, query = target.partition("?")
    pairs = [tuple(map(unquote, pair.partition("=")[::2])) for pair in query.split("&") if pair]
    said = RequestHead(method=method, path=path, query=pairs, headers=list(fields.items()))  # type: ignore[arg-type]
    signature = sign(signing_key(secret, scope), request_text(said, moment, scope, fields, payload))
    fields["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={';'.join(sorted(fields))}, Signature={signature}"
    )
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("utf-8")


def presigned(
    host: str, method: str, target: str, *, expires_s: int = 60, moment: str | None = None, secret: str = SECRET
) -> str:
    """The target with a signature of MAIN, which is valid for so long."""
    moment = moment or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = Scope(day=moment[:8], region="us-east-1")
    query = [
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
        ("X-Amz-Credential", f"{MAIN}/{scope}"),
        ("X-Amz-Date", moment),
        ("X-Amz-Expires", str(expires_s)),
        ("X-Amz-SignedHeaders", "host"),
    ]
    said = RequestHead(method=method, path=target, query=query, headers=[("host", host)])
    signature = sign(signing_key(secret, scope), request_text(said, moment, scope, ["host"], UNSIGNED))
    shown = "&".join(f"{name}={quote(value, safe='')}" for name, value in query)
    return f"{target}?{shown}&X-Amz-Signature={signature}"


def texts(body: bytes, name: str) -> list[str]:
    """The texts of all elements of that name in a document."""
    return [each.text or "" for each in ElementTree.fromstring(body).iter() if each.tag.rpartition("}")[2] == name]


def code(reply: Reply) -> str:
    """The code of a refusal."""
    return "".join(texts(reply.body, "Code"))


def path(key: str, bucket: str = "bucket") -> str:
    """The target of an object."""
    return f"/{bucket}/{quote(key, safe='')}"


@asynccontextmanager
async def running_door(tmp_path: Path, *, packs: bool = False, **settings: Any) -> AsyncIterator[S3Rig]:
    """A door with a bucket `bucket` of MAIN, which READER can read, and a directory of buckets of each of MAIN and OTHER."""
    from twisted.internet import reactor

    async with running_gateway(tmp_path, **settings) as rig:
        store = rig.gateway.store
        bucket, home, other = [await store.create_directory() for _ in range(3)]

        def account(name: str, buckets: Mapping[str, DirectoryCap], home: DirectoryCap | None) -> Account:
            return Account(access_key=name, secret=SECRET, buckets=buckets, home=home)

        accounts = {
            MAIN: account(MAIN, {"bucket": bucket}, home),
            READER: account(READER, {"bucket": bucket.read_cap()}, home.read_cap()),
            OTHER: account(OTHER, {}, other),
        }
        async with opened(rig, accounts, packs=packs) as door:
            yield door
        del reactor


@asynccontextmanager
async def opened(
    rig: Rig, accounts: dict[str, Account], domain: str = "", *, packs: bool = False
) -> AsyncIterator[S3Rig]:
    """A door beside a gateway, for these accounts; PUBLIC is everybody's."""
    from twisted.internet import reactor

    door = Door(rig.gateway, accounts.get, domain, lambda: accounts.get(PUBLIC), packs)
    factory = S3Factory(door, reactor, ConnectionLimit())
    listening = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(factory)
    address: Any = listening.getHost()
    try:
        yield S3Rig(rig, door, factory, address.port, accounts)
    finally:
        await listening.stopListening()
        for wire in rig.wires:
            wire.transport.abortConnection()  # type: ignore[union-attr]
        await factory.drain(0.5)
        door.close()
