"""Bodies that many clients send at once, over real sockets, while servers are silent: only a few are stored or parsed."""

from __future__ import annotations

import json
import random
from pathlib import Path

from grid.caps import LitCap
from grid.gateway.http.forms import POOLED_FORM
from grid.gateway.shared.store_turns import FORMS_BYTES, SMALL_STORES_BYTES
from grid.gateway.tree.mkdir import POOLED_BYTES
from grid.limits import MAX_CHILDREN_BODY
from tests.gateway.files.test_abandoned_uploads import COUNT, held_gateway
from tests.support.web_gateway import Connection, WebGateway, web_gateway

SIZE = 2**20 - 1
UPLOADS = 40
STORING = frozenset({"allocate", "store_shares", "find_shares", "find_each"})


async def pause(web: WebGateway) -> None:
    await web.gateway.store.runtime.clock.sleep(0.02)


async def test_uploads_below_a_megabyte_that_come_at_once_are_stored_a_few_at_a_time(tmp_path: Path) -> None:
    async with held_gateway(tmp_path) as (web, held):
        held.names = STORING
        connections: list[Connection] = []
        for number in range(UPLOADS):
            connections.append(await web.connect())
            data = random.Random(number).randbytes(SIZE)
            connections[-1].send(web.head("PUT", "/uri", SIZE) + data)
        while not all(each.body is not None and each.body.has_ended for each in web.factory.requests):
            await pause(web)
        while len(web.factory.requests) < UPLOADS or not held.waiting:
            await pause(web)
        for _ in range(20):
            await pause(web)
        assert 0 < len(held.waiting) <= COUNT * (SMALL_STORES_BYTES // SIZE)
        held.release()
        for connection in connections:
            assert (await connection.reply()).status == 200


async def test_long_descriptions_of_children_wait_for_their_turn(tmp_path: Path) -> None:
    child = ["filenode", {"ro_uri": LitCap(data=b"x").to_string()}]
    body = json.dumps({f"{n:04}": child for n in range(2000)}).encode()
    assert len(body) > POOLED_BYTES
    async with web_gateway(tmp_path) as web:
        stores = web.gateway.stores
        assert stores.children.try_acquire(MAX_CHILDREN_BODY)
        connection = await web.connect()
        connection.send(web.head("POST", "/uri?t=mkdir-with-children", len(body)) + body)
        while not stores.children.is_awaited:
            await pause(web)
        stores.children.release(MAX_CHILDREN_BODY)
        reply = await connection.reply()
        assert reply.status == 200
        found = await web.get(f"/uri/{reply.text}?t=json")
        assert len(json.loads(found.body)[1]["children"]) == 2000
        assert stores.children.free == MAX_CHILDREN_BODY


async def test_long_form_when_others_hold_all_room_is_refused_and_short_ones_are_not(tmp_path: Path) -> None:
    async with web_gateway(tmp_path) as web:
        stores = web.gateway.stores
        assert stores.forms.try_acquire(FORMS_BYTES)
        fields = {"t": "mkdir", "more": "x" * (POOLED_FORM + 1)}
        refused = await web.post_form("/uri", fields)
        urlencoded = {"Content-Type": "application/x-www-form-urlencoded"}
        refused_too = await web.request("POST", "/uri", b"t=mkdir&more=" + b"x" * POOLED_FORM, urlencoded)
        assert (refused.status, refused_too.status) == (503, 503)
        assert refused.headers["retry-after"]
        assert (await web.post_form("/uri", {"t": "mkdir"})).status == 200
        stores.forms.release(FORMS_BYTES)
        assert (await web.post_form("/uri", fields)).status == 200
        assert stores.forms.free == FORMS_BYTES
