"""A gateway with share links, for tests: what it serves, and a watch that no answer contains a capability."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from attrs import define, evolve

from grid.caps import UnknownCap, parse_cap
from grid.codec import base32
from grid.gateway.shared.share_links import ShareLink
from grid.node.share_file import ShareFile
from tests.gateway.rig import Reply, Rig, running_gateway

TEXT = bytes(range(256)) * 40
PAGE = {"Accept": "text/html"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SECRETS = re.compile(rb"URI(:|%3A)|/uri/|/file/", re.IGNORECASE)


@define
class Shared:
    """A read-only gateway with a directory: a.txt, "b c.jpg", note.md, sub/deep.txt, sub/x. secrets: its capabilities."""

    rig: Rig
    file: ShareFile
    root: str
    seen: list[Reply]
    secrets: list[str]

    async def link(self, cap: str, name: str = "photos", **more: Any) -> str:
        """A new link; its path."""
        parsed = parse_cap(cap)
        assert not isinstance(parsed, UnknownCap)
        lifetime_s = more.pop("lifetime_s", 3600)
        token, _ = await self.rig.gateway.links.make(parsed, name, lifetime_s, **more)
        self.secrets.append(token)
        return f"/s/{token}"

    async def get(
        self, path: str, method: str = "GET", body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        """What a browser gets."""
        reply = await self.rig.ask(method, path, body, {**PAGE, **(FORM if body else {}), **(headers or {})})
        self.seen.append(reply)
        return reply

    @property
    def only(self) -> ShareLink:
        """The one link there is."""
        (link,) = self.file.read()
        return link


@asynccontextmanager
async def sharing(tmp_path: Path, **settings: Any) -> AsyncIterator[Shared]:
    """A gateway that is filled, then read-only; at the end nothing that was answered may contain a capability."""
    file = ShareFile(tmp_path / "private")
    async with running_gateway(tmp_path, share_links=file, **settings) as rig:
        root = await store(rig, "/uri?t=mkdir")
        secrets = [root, await store(rig, f"/uri/{quote(root)}/sub?t=mkdir")]
        names = ("a.txt", "b c.jpg", "note.md", "sub/deep.txt", "sub/x")
        bodies = {f"/uri/{quote(root)}/{quote(name)}": b"# note\n" + TEXT + name.encode() for name in names}
        secrets += [await store(rig, path, body) for path, body in bodies.items()]
        secrets.append(await store(rig, f"/uri/{quote(root)}?t=readonly-uri", method="GET"))
        secrets += list(map(storage_index, secrets))
        rig.gateway.settings = evolve(rig.gateway.settings, is_read_only=True)
        shared = Shared(rig, file, root, [], secrets)
        yield shared
        for reply in shared.seen:
            require_secret_free(reply, secrets)


def require_secret_free(reply: Reply, secrets: list[str]) -> None:
    """No capability in the answer, and the token only where the request's own path is repeated."""
    path_headers = ("location", "set-cookie")
    said = (
        repr({name: value for name, value in reply.headers.items() if name not in path_headers}).encode() + reply.body
    )
    assert not SECRETS.search(said), said[:500]
    assert not SECRETS.search(repr(reply.headers).encode())
    for secret in secrets:
        assert secret.encode() not in said and quote(secret, safe="").encode() not in said
        for part in secret.split(":")[2:4]:
            assert len(part) < 20 or part.encode() not in said, "a key of a capability, or a storage index"


async def store(rig: Rig, path: str, body: bytes = b"", method: str = "PUT") -> str:
    return (await rig.ask(method, path, body)).body.decode().strip()


def storage_index(text: str) -> str:
    """That of a capability, which no answer may contain either."""
    cap = parse_cap(text)
    assert not isinstance(cap, UnknownCap) and cap.storage_index is not None
    return base32.encode(cap.storage_index)


def links_of(reply: Reply) -> list[str]:
    return [unescape(each) for each in re.findall(r'href="([^"]*)"', reply.body.decode())]


def cookie_of(reply: Reply) -> dict[str, str]:
    return {"Cookie": f"other=1; {reply.headers['set-cookie'].partition(';')[0]}"}


def password(text: str) -> bytes:
    return urlencode({"password": text}).encode()
