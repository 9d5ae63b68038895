"""Pages about the node itself, `/`, `/servers`, `/healthz`, `/readyz`, and all pages' assets. [spec webapi 9.1]"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from grid.gateway.faults import BadRequest, NotFound
from grid.gateway.http.answers import Answer, AnyAnswer, modern_json, page
from grid.gateway.http.compression import accepts_gzip, compressed, pack_asset
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.routing import Handler, allow
from grid.gateway.pages.assets import asset_contents, assets_version
from grid.gateway.pages.home import render_visitors_home, render_welcome
from grid.gateway.pages.servers import render_servers
from grid.gateway.pages.shell import with_styles
from grid.gateway.shared.node_view import ServerView
from grid.gateway.shared.services import Services

_FOREVER = "public, max-age=31536000, immutable"


def routes(gateway: Services) -> Mapping[str, Handler]:
    """Handlers of `/`, `/servers` and `/assets`, and of `/healthz` and `/readyz` for supervisors and load balancers.

    /healthz: 200 whenever the gateway answers. /readyz: 503 while fewer connected servers have room than a put needs.
    """

    async def healthz(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD")
        return modern_json({"status": "ok"}, headers={"Cache-Control": "no-store"})

    async def readyz(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD")
        servers = gateway.client.servers()
        connected, with_room = sum(each.is_connected for each in servers), sum(each.has_room for each in servers)
        ready = with_room >= gateway.settings.happy
        found: dict[str, object] = {"ready": ready}
        if not exchange.is_visit:
            found |= {"connected": connected, "with_room": with_room, "known": len(servers)}
            found["needed"] = gateway.settings.happy
        return modern_json(found, 200 if ready else 503, {"Cache-Control": "no-store"})

    async def root(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD", "POST", "OPTIONS")
        await exchange.form()
        t = exchange.arguments.t
        if t.lower() == "json":
            return modern_json(describe_node(gateway))
        if t:
            raise BadRequest(f"the home page has no t={t!r}", shape="page")
        if exchange.is_visit:
            return _opened(exchange, render_visitors_home())
        settings, encoding, client = gateway.settings, gateway.store.grid.encoding, gateway.client
        return _opened(
            exchange,
            render_welcome(
                client.servers(),
                client.introducers(),
                happy=settings.happy,
                needed=encoding.k,
                total=encoding.n,
                nickname=settings.nickname,
            ),
        )

    async def servers(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD")
        encoding = gateway.store.grid.encoding
        known, introducers = gateway.client.servers(), gateway.client.introducers()
        return page(render_servers(known, introducers, encoding.k, encoding.n, gateway.settings.happy))

    return {"": root, "servers": servers, "assets": asset, "healthz": healthz, "readyz": readyz}


def _opened(exchange: Exchange, html: str) -> Answer:
    """The page for somebody who has just come: it contains its styles if it is compressed. (decision 365)"""
    accepted = exchange.headers.get("accept-encoding")
    return compressed(page(with_styles(html) if accepts_gzip(accepted) else html), accepted)


def former_addresses() -> Mapping[str, Handler]:
    """Handlers of the addresses at which 1.20 has its style sheet and pictures. They return this gateway's own."""

    async def style(exchange: Exchange) -> AnyAnswer:
        return _former(exchange, "grid.css")

    async def picture(exchange: Exchange) -> AnyAnswer:
        return _former(exchange, "grid.png")

    return {"tahoe.css": style, "css": style, "icon.png": picture, "favicon.ico": picture, "img": picture}


def _former(exchange: Exchange, name: str) -> AnyAnswer:
    """The asset of this name; NotFound if the address has more segments."""
    allow(exchange, "GET", "HEAD")
    kind = exchange.segments[-1].rpartition(".")[2].lower()
    wanted = ("css",) if name.endswith(".css") else ("png", "ico", "svg", "gif")
    in_folder = exchange.segments[0] in ("css", "img")
    if len(exchange.segments) != 1 + in_folder or kind not in wanted:
        raise NotFound("there is no such page", shape="page")
    return _asset(exchange, name, "no-cache")


async def asset(exchange: Exchange) -> AnyAnswer:
    """Return a style sheet, a script or an image. The content at one address never changes."""
    allow(exchange, "GET", "HEAD")
    if len(exchange.segments) != 3:
        raise NotFound("there is no such page", shape="page")
    is_current = exchange.segments[1] == assets_version()
    return _asset(exchange, exchange.segments[-1], _FOREVER if is_current else "no-cache")


def _asset(exchange: Exchange, name: str, caching: str) -> AnyAnswer:
    found = asset_contents().get(name)
    if found is None:
        raise NotFound("there is no such page", shape="page")
    kind, data = found
    is_packed = accepts_gzip(exchange.headers.get("accept-encoding")) and not kind.startswith("image/png")
    tag = f'"{assets_version()}{"-gzip" if is_packed else ""}"'
    headers = (("Cache-Control", caching), ("ETag", tag), ("Vary", "Accept-Encoding"))
    if exchange.headers.get("if-none-match") == tag:
        return Answer(304, kind, b"", headers)
    if is_packed:
        return Answer(200, kind, _packed_asset(name), (*headers, ("Content-Encoding", "gzip")))
    return Answer(200, kind, data, headers)


@cache
def _packed_asset(name: str) -> bytes:
    return pack_asset(asset_contents()[name][1])


def describe_node(gateway: Services) -> dict[str, object]:
    """Describe the node and its servers for monitors and other programs."""
    return {
        "introducers": {"statuses": list(gateway.client.introducers())},
        "servers": [_describe_server(server) for server in gateway.client.servers()],
    }


def _describe_server(server: ServerView) -> dict[str, object]:
    known = {
        "transport": server.transport or None,
        "round_trip": None if server.latency_s is None else round(server.latency_s, 4),
        "clock_ahead": None if server.clock_ahead_s is None else round(server.clock_ahead_s),
        "no_room": server.no_room,
    }
    return {
        "nodeid": server.server_id,
        "nickname": server.nickname,
        "connection_status": server.status,
        "available_space": server.available_space,
        "version": server.version,
        "last_received_data": server.last_received_at,
        # 1.20 has none of these.
        **{name: value for name, value in known.items() if server.is_connected and value is not None},
    }
