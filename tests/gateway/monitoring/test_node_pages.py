"""Pages that belong to no object, over HTTP."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

from attrs import evolve

from grid.gateway.pages.assets import asset_path
from grid.gateway.shared.node_view import ServerView
from tests.gateway.rig import running_gateway

HEADERS = {"x-frame-options": "DENY", "referrer-policy": "no-referrer"}


async def test_the_first_page_and_all_its_assets_come_from_the_gateway(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        reply = await rig.ask("GET", "/")
        addresses = re.findall(rb'(?:src|href)="(/assets/[^"]+)"', reply.body)
        parts = [await rig.ask("GET", address.decode()) for address in addresses]

    assert reply.status == 200
    assert HEADERS.items() <= reply.headers.items()
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert len(parts) == 3
    for part in parts:
        assert part.status == 200
        assert "immutable" in part.headers["cache-control"]
        assert part.headers["x-content-type-options"] == "nosniff"
    assert {part.headers["content-type"].partition(";")[0] for part in parts} == {
        "text/css",
        "text/javascript",
        "image/svg+xml",
    }


async def test_a_cached_asset_is_not_sent_again_and_an_old_address_serves_the_new_one(
    tmp_path: Path,
) -> None:
    async with running_gateway(tmp_path) as rig:
        old = await rig.ask("GET", "/assets/0123456789abcdef/app.js")
        held = await rig.ask("GET", "/assets/x/app.js", headers={"If-None-Match": old.headers["etag"]})
        strange = [
            await rig.ask("GET", path)
            for path in ("/assets/x/..%2fpages%2fmarkup.py", "/assets/app.js", "/assets/x/a/app.js")
        ]

    assert (old.status, old.headers["cache-control"]) == (200, "no-cache")
    assert (held.status, held.body) == (304, b"")
    assert [reply.status for reply in strange] == [404] * 3


async def test_the_old_addresses_of_styles_and_pictures_serve_those_of_the_pages(
    tmp_path: Path,
) -> None:
    kinds = {"/tahoe.css": "text/css", "/css/new-tahoe.css": "text/css", "/icon.png": "image/png"}
    kinds |= {"/img/logo.png": "image/png", "/favicon.ico": "image/png"}
    async with running_gateway(tmp_path) as rig:
        for path, kind in kinds.items():
            found = await rig.ask("GET", path)
            assert found.status == 200, path
            assert found.headers["content-type"].partition(";")[0] == kind
            assert (await rig.ask("POST", path)).status == 405
        for path in ("/css", "/css/a/b.css", "/css/a.js", "/img/", "/tahoe.css/x", "/icon.png/a.png"):
            assert (await rig.ask("GET", path)).status == 404, path


async def test_assets_are_compressed_for_clients_that_take_it_and_cached_for_ever(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        for name in ("app.js", "grid.css", "grid.svg"):
            plain = await rig.ask("GET", asset_path(name))
            packed = await rig.ask("GET", asset_path(name), headers={"Accept-Encoding": "br, gzip;q=0.5"})
            refused = await rig.ask("GET", asset_path(name), headers={"Accept-Encoding": "gzip;q=0"})
            assert packed.headers["content-encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body
            assert len(packed.body) < len(plain.body) and refused.body == plain.body
            for reply in (plain, packed, refused):
                assert "immutable" in reply.headers["cache-control"] and reply.headers["vary"] == "Accept-Encoding"
            assert packed.headers["etag"] != plain.headers["etag"]
            held = {"If-None-Match": packed.headers["etag"], "Accept-Encoding": "gzip"}
            assert (await rig.ask("GET", asset_path(name), headers=held)).status == 304
        assert (await rig.ask("GET", asset_path("queue.js"))).status == 404, "it is a part of app.js"


async def test_the_state_of_the_node_comes_as_json_and_no_other_form(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        found = await rig.ask("GET", "/?t=JSON")
        wrong = await rig.ask("GET", "/?t=xml")
        servers = await rig.ask("GET", "/servers")

    assert found.headers["content-type"] == "application/json; charset=utf-8"
    assert json.loads(found.body) == {"introducers": {"statuses": []}, "servers": []}
    assert wrong.status == 400
    assert b"No server is known yet" in servers.body


async def test_the_state_of_servers_as_json_has_clocks_round_trips_and_transports_that_are_known(
    tmp_path: Path,
) -> None:
    near = ServerView(
        server_id="v0-a",
        nickname="a",
        is_connected=True,
        status="Connected to tcp:h:1 via http",
        transport="http",
        latency_s=0.01234,
        clock_ahead_s=-319.6,
    )
    gone = evolve(near, is_connected=False, status="no answer")
    plain = ServerView(server_id="v0-b", nickname="b", is_connected=True, status="Connected to tcp:h:2 via tcp")
    async with running_gateway(tmp_path, views=[near, gone, plain]) as rig:
        servers = json.loads((await rig.ask("GET", "/?t=json")).body)["servers"]
    more = [
        {name: server[name] for name in ("transport", "round_trip", "clock_ahead") if name in server}
        for server in servers
    ]
    assert more == [{"transport": "http", "round_trip": 0.0123, "clock_ahead": -320}, {}, {}]


async def test_gateway_is_not_ready_while_too_few_servers_have_room_and_counts_them(tmp_path: Path) -> None:
    good = ServerView(server_id="v0-a", nickname="a", is_connected=True, status="", available_space=5)
    silent_about_space = evolve(good, server_id="v0-b", available_space=None)
    full, gone = evolve(good, server_id="v0-c", available_space=0), evolve(good, server_id="v0-d", is_connected=False)
    for views, with_room in (([good] * 7, 7), ([*[silent_about_space] * 6, full, gone], 6)):
        async with running_gateway(tmp_path, views=views) as rig:
            reply = await rig.ask("GET", "/readyz")
            metrics = (await rig.ask("GET", "/metrics")).body.decode()
        found = {"ready": with_room == 7, "connected": 7, "with_room": with_room, "known": len(views), "needed": 7}
        assert (reply.status, json.loads(reply.body)) == (200 if with_room == 7 else 503, found)
        assert f"grid_servers_with_room {with_room}.0" in metrics and "grid_servers_connected 7.0" in metrics
        assert f"grid_happiness_margin {with_room - 7}.0" in metrics
