"""`/home`: what the home page shows of the client directory, to browsers that `grid web` has opened. (decision 352)"""

from __future__ import annotations

from collections.abc import Mapping

from grid.gateway.faults import BadRequest, Forbidden
from grid.gateway.http.answers import Answer, AnyAnswer, modern_json, page
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.routing import Handler, allow
from grid.gateway.pages.home import render_entrance, render_own
from grid.gateway.shared.home import cookie_name, is_local
from grid.gateway.shared.services import Services

_NO_STORE = {"Cache-Control": "no-store"}


def routes(gateway: Services) -> Mapping[str, Handler]:
    """The handler of `/home`."""

    async def home(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD", "POST")
        if not is_local(exchange.peer, exchange.headers):
            raise Forbidden("this page is only for browsers on the gateway's machine", shape="page")
        if exchange.method != "POST":
            if exchange.arguments.t == "enter":
                return page(render_entrance(is_visit=exchange.is_visit), headers=tuple(_NO_STORE.items()))
            return await _show(exchange, gateway)
        await exchange.form()
        match exchange.arguments.t:
            case "enter":
                return await _enter(exchange, gateway)
            case "leave":
                gateway.home.leave(exchange.headers)
                return _answer({}, f"{cookie_name(exchange.headers)}=; Max-Age=0{_attributes(exchange)}")
        raise BadRequest("POST of /home takes t=enter or t=leave")

    return {"home": home}


async def _show(exchange: Exchange, gateway: Services) -> Answer:
    if not gateway.home.admits(exchange.headers):
        raise Forbidden(
            "your directories are shown on the home page, in a browser that `grid web` opened", shape="page"
        )
    aliases = await gateway.store.runtime.cpu.run(gateway.home.aliases)
    return page(render_own(aliases, gateway.home.recent), headers=tuple(_NO_STORE.items()))


async def _enter(exchange: Exchange, gateway: Services) -> Answer:
    token = exchange.arguments.text("token") or ""
    keys = await gateway.store.runtime.cpu.run(gateway.home.enter, token)
    if keys is None:
        raise Forbidden("this link has already been used or has expired: run `grid web` again")
    return _answer({"key": keys.key}, f"{cookie_name(exchange.headers)}={keys.cookie}{_attributes(exchange)}")


def _attributes(exchange: Exchange) -> str:
    # Strict would withhold the cookie where `grid web PATH` opens a page, which comes from a file.
    is_secure = exchange.origin.startswith("https:")
    return f"; Path=/; HttpOnly; SameSite=Lax{'; Secure' if is_secure else ''}"


def _answer(value: dict[str, str], cookie: str) -> Answer:
    return modern_json(value, headers={**_NO_STORE, "Set-Cookie": cookie})
