"""`/shares`: makes share links, lists them and takes them back, for browsers that `grid web` opened. [spec webapi 10.1]

Protected as the owner's part of the home page is: by the cookie and the key of such a browser, on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.caps import UnknownCap, parse_cap
from grid.gateway.faults import BadRequest, Forbidden
from grid.gateway.http.answers import Answer, AnyAnswer, modern_json, page
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.routing import Handler, allow
from grid.gateway.pages.links import shared_path
from grid.gateway.pages.share_links import render_links
from grid.gateway.pages.sharing import base_for_others
from grid.gateway.shared.home import is_local
from grid.gateway.shared.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD
from grid.gateway.shared.share_links import DEFAULT_S, MOST_DOWNLOADS, ShareLink, describe_link, parse_end
from grid.gateway.sharing.live_links import LiveLinks


def routes(links: LiveLinks) -> Mapping[str, Handler]:
    """The handler of `/shares`."""

    async def shares(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD", "POST")
        _require_owner(exchange)
        if exchange.method != "POST":
            return await _show(exchange, links)
        await exchange.form()
        match exchange.arguments.t:
            case "create":
                return await _create(exchange, links)
            case "revoke":
                removed = await links.remove(exchange.arguments.required("id"))
                return await _show(exchange, links, removed=removed)
        raise BadRequest("POST of /shares takes t=create or t=revoke")

    return {"shares": shares}


def _require_owner(exchange: Exchange) -> None:
    if not is_local(exchange.peer, exchange.headers) or not exchange.gateway.home.admits(exchange.headers):
        raise Forbidden("share links are made and listed only in a browser that `grid web` opened on this machine")


async def _create(exchange: Exchange, links: LiveLinks) -> Answer:
    arguments = exchange.arguments
    cap = parse_cap(arguments.required("uri").strip())
    if isinstance(cap, UnknownCap):
        raise BadRequest("uri= is not a capability that this gateway knows")
    # A form sends the fields that were left empty, too.
    most = arguments.count("downloads") if arguments.text("downloads") else None
    if most is not None and not 0 < most <= MOST_DOWNLOADS:
        raise BadRequest(f"the number of downloads must be from 1 to {MOST_DOWNLOADS}")
    password = arguments.text("password") or ""
    if password and not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise BadRequest(f"the password needs at least {SHORTEST_PASSWORD} characters, and at most {LONGEST_PASSWORD}")
    name, until = arguments.text("name") or "", _end(exchange)
    token, link = await links.make(cap, name, None, until=until, most_downloads=most, password=password)
    hosts = exchange.gateway.settings.hosts
    base = base_for_others(exchange.origin, hosts.public if hosts is not None else "")
    return await _show(exchange, links, made=(f"{base}{shared_path(token)}", link))


def _end(exchange: Exchange) -> int | None:
    """The Unix time at which the link ends, None for never: with the day of `until=`, or else as `expires=` says."""
    now = exchange.gateway.store.runtime.clock.unix_time()
    text = exchange.arguments.text("until") or exchange.arguments.text("expires")
    if not text:
        return int(now) + DEFAULT_S
    try:
        return parse_end(text, now)
    except ValueError as problem:
        raise BadRequest(f"the end of the link: {problem}") from None


async def _show(
    exchange: Exchange,
    links: LiveLinks,
    *,
    made: tuple[str, ShareLink] | None = None,
    removed: ShareLink | None = None,
) -> Answer:
    """The list, as a page for browsers and JSON for programs. made: a new link's address, and the link."""
    every, now = await links.all(), exchange.gateway.store.runtime.clock.unix_time()
    if not exchange.wants_page or exchange.arguments.t == "json":
        return modern_json(_describe(every, now, made), headers={"Cache-Control": "no-store"})
    # A QR code takes some 25 ms.
    html = await exchange.gateway.store.runtime.cpu.run(render_links, every, now, made, removed)
    return page(html)


def _describe(every: Sequence[ShareLink], now: float, made: tuple[str, ShareLink] | None) -> dict[str, object]:
    found: dict[str, object] = {"links": [describe_link(link, now) for link in every]}
    if made is not None:
        found["link"], found["id"] = made[0], made[1].identifier
    return found
