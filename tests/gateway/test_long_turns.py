"""Hostile directories and bodies through every operation of the gateway: no request keeps the others waiting.

What is asserted is how many calls the interpreter makes between two turns of the event loop; no clock is asked.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from twisted.internet import reactor

from grid.caps import ChkCap, DirectoryCap, LitCap
from grid.codec.netstring import pack_netstring
from grid.mutable.sources import MemorySource
from tests.gateway.api.test_openapi_operations import CHILDREN, FORM, OPERATIONS, QUESTIONS, Question, target_of
from tests.support.depth import spread
from tests.support.turn_watch import Turns, watch_turns
from tests.support.web_gateway import TOKEN, WebGateway, web_gateway

MOST = 50_000
"""Calls in one turn: some 20 ms. A handler that goes through one of these directories in one turn makes 100,000 or more."""

COUNT = 1000
LIT = LitCap(data=b"small").to_string().encode()


def entry(name: bytes, read: bytes = LIT, metadata: bytes = b"{}") -> bytes:
    """An entry's bytes, whatever they are."""
    return pack_netstring(b"".join(map(pack_netstring, (name, read, b"", metadata))))


def hostile_entries(own: bytes) -> bytes:
    """What somebody who wants to stop a gateway would put into a directory. own: a capability that leads back to it."""
    times = b'{"tahoe": {"linkcrtime": 1.5, "linkmotime": 1' + b"0" * 4000 + b"}}"
    found = [entry(b"plain %05d" % n, metadata=b'{"tahoe": {"linkmotime": 1.5}}') for n in range(COUNT)]
    found += [entry(b"unknown %05d" % n, b"lafs-of-the-future-%d" % n) for n in range(COUNT)]
    found += [entry(b"cycle %05d" % n, own) for n in range(COUNT)]
    chk = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=1000)
    found += [entry(b"lost %05d" % n, chk.to_string().encode()) for n in range(10)]
    found += [entry(b"%d" % n + "\u0315\u0300".encode() * 15_000) for n in range(2)]
    found += [entry(b"lists %d" % n, metadata=b'{"a": [' + b"[]," * 20_000 + b"0]}") for n in range(2)]
    found += [entry(b"time", metadata=times), entry(b"never", metadata=b'{"tahoe": {"linkmotime": NaN}}')]
    found += [
        entry(b"deep", metadata=b"[" * 60_000),
        entry(b"\xff"),
        pack_netstring(b"none"),
        entry(b"<b>&\"'\0\x1b[31m"),
    ]
    return b"".join(found)


CHILDREN_BODY = json.dumps(
    {f"n{n}": ["filenode", {"ro_uri": LIT.decode(), "metadata": {"a": n}}] for n in range(COUNT)}
)
FIELDS = {"application/x-www-form-urlencoded": b"details=" + b"%41" * 300_000}


class Asker:
    """Sends requests to a gateway, and knows the longest turn meanwhile."""

    def __init__(self, web: WebGateway, turns: Turns) -> None:
        self._web, self._turns = web, turns
        self._worst: dict[str, tuple[int, list[str]]] = {}

    async def ask(
        self, what: str, method: str, target: str, body: bytes = b"", type: str = "", *, endless: bool = False
    ) -> int:
        """The status. endless: only the beginning of the answer is waited for."""
        self._turns.begin()
        received = await self._send(method, target, body, type, endless)
        if self._turns.most > MOST:
            self._worst[what] = self._turns.most, self._turns.where
        return int(received[9:12])

    async def read(self, target: str) -> bytes:
        """All that is answered to a GET."""
        self._turns.begin()
        received = await self._send("GET", target, b"", "", False)
        if self._turns.most > MOST:
            self._worst[target] = self._turns.most, self._turns.where
        return received

    async def _send(self, method: str, target: str, body: bytes, type: str, endless: bool) -> bytes:
        connection = await self._web.connect()
        headers = {"Authorization": f"tahoe-lafs {TOKEN.decode()}"} | ({"Content-Type": type} if type else {})
        connection.send(self._web.head(method, target, len(body), headers) + body)
        await (connection.at_least(12) if endless else connection.ended())
        await connection.close()
        return bytes(connection.received)

    def require_short_turns(self) -> None:
        """Fail, and say where the loop was, if a turn was long."""
        said = (f"{what}: {most} calls\n    " + "\n    ".join(where) for what, (most, where) in self._worst.items())
        assert not self._worst, "\n".join(said)


@asynccontextmanager
async def hostile_gateway(folder: Path) -> AsyncIterator[tuple[Asker, Sequence[DirectoryCap]]]:
    """A gateway, and two directories on its grid, one of which is immutable but has mutable children."""
    async with web_gateway(folder, count=2) as web:
        store = web.gateway.store
        body = await store.put_mutable(b"")
        cap = DirectoryCap(body)
        data = hostile_entries(cap.to_string().encode())
        await store.open_mutable(body).overwrite(data)
        frozen = DirectoryCap(await store.put_immutable(MemorySource(data)))
        try:
            with watch_turns(reactor) as turns:
                yield Asker(web, turns), (cap, frozen)
        finally:
            web.gateway.end_streams()


@pytest.mark.parametrize("kind", ["manifest", "deep-check", "deep-size", "deep-stats"])
async def test_operation_over_a_hostile_tree_when_run_and_queried_has_no_long_turn(kind: str, tmp_path: Path) -> None:
    async with hostile_gateway(tmp_path) as (asker, folders):
        for number, folder in enumerate(folders):
            target = f"/uri/{quote(folder.to_string(), safe='')}?t=start-{kind}&ophandle={number}"
            assert await asker.ask(f"start {kind}", "POST", target) == 302
            while b'"finished": true' not in await asker.read(f"/operations/{number}?output=json"):
                pass
            for output in ("json", "text", "html"):
                where = f"/operations/{number}?output={output}"
                assert await asker.ask(f"{kind} as {output}", "GET", where) == 200
    asker.require_short_turns()


PARTS = 12


@pytest.mark.parametrize("part", range(PARTS))
async def test_operation_when_on_hostile_content_then_no_turn_of_the_loop_is_long(part: int, tmp_path: Path) -> None:
    async with hostile_gateway(tmp_path) as (asker, folders):
        for folder in folders:
            asked = list(enumerate(OPERATIONS))[part::PARTS]
            # An immutable directory is read in another way; what is done with its children is the same.
            for number, (path, method, t) in asked if folder is folders[0] else spread(asked, 4):
                if folder is not folders[0] and not path.startswith("/uri/"):
                    continue
                question = QUESTIONS[path][method][t]
                target = fill(f"{target_of(path, question)}?{question.more}" + (f"&t={t}" if t else ""), folder, number)
                endless = question.status == 101 or path == "/status/events"
                for sent, type in bodies_of(question):
                    what = f"{method} {path} t={t} {type}, immutable: {folder is not folders[0]}"
                    status = await asker.ask(what, method, target, sent, type, endless=endless)
                    assert status < 500 or status in (501, 503), (what, status)
    asker.require_short_turns()


def fill(target: str, folder: DirectoryCap, number: int) -> str:
    """The target with everything in it about the directory."""
    place = quote(folder.to_string(), safe="")
    for name in ("$file", "$mutable", "$folder", "$bare"):
        target = target.replace(name, place)
    target = target.replace("$number", str(number)).replace("$index", "a" * 26)
    return target.replace("$newer", f"newer{number}").replace("$new", f"new{number}")


def bodies_of(question: Question) -> list[tuple[bytes, str]]:
    """A request's body: of the kind that its handler takes, and as large as allowed."""
    if question.body == CHILDREN:
        return [(CHILDREN_BODY.encode(), ""), (b"[" * 10**6, ""), (b'{"a":' + b"9" * 10**6 + b"}", "")]
    if question.body == FORM:
        return [(question.body, question.type), *((body, type) for type, body in FIELDS.items())]
    return [(question.body, question.type)]
