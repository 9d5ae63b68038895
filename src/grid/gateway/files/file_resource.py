"""Handlers of `/uri` itself and of files under `/file` and `/named`. [spec webapi 3, 4.6]

Everything below `/uri/$CAP` starts by following a path and belongs to tree/.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlencode

from grid.caps import DirectoryCap, UnknownCap, UnknownChild, parse_cap
from grid.gateway.faults import BadRequest, NotFound, NotImplementedHere
from grid.gateway.files.downloads import get_file, upload_page, why_unknown
from grid.gateway.files.file_changes import new_file, required_form_file, store_body, store_form_file, when_done
from grid.gateway.http.answers import AnyAnswer, cap_answer, redirect, with_cap
from grid.gateway.http.exchange import Exchange, parse_child
from grid.gateway.http.guards import host_name
from grid.gateway.http.routing import Handler
from grid.gateway.pages.links import SHARED, GivenLink, parse_link

MKDIR = frozenset({"mkdir", "mkdir-with-children", "mkdir-immutable"})
"""The values of `t` that create a directory."""


def routes(below: Handler, make_directory: Handler) -> Mapping[str, Handler]:
    """Handlers by first segment. below: handles `/uri/$CAP[/PATH]`.

    make_directory: handles `/uri?t=mkdir` and its variants.
    """

    async def uri(exchange: Exchange) -> AnyAnswer:
        if exchange.segments[1:2] == ("",):
            return _without_empty_segments(exchange)
        if exchange.segments[1:]:
            return await below(exchange)
        return await unlinked(exchange, make_directory)

    return {"uri": uri, "cap": uri, "file": named, "named": named}


async def unlinked(exchange: Exchange, make_directory: Handler) -> AnyAnswer:
    """Handle a request for `/uri` or `/cap` whose path has no capability."""
    match exchange.method:
        case "GET" | "HEAD":
            return _find(exchange)
        case "PUT":
            return await _put(exchange, make_directory)
        case "POST":
            return await _post(exchange, make_directory)
    raise NotImplementedHere("the method is not known here")


def _without_empty_segments(exchange: Exchange) -> AnyAnswer:
    """Redirect to the same address without the empty segments after `/uri`, for any method. [spec webapi 1]"""
    first, _, rest = exchange.raw_path.lstrip("/").partition("/")
    path = "/".join(["", first, *(part for part in (rest.lstrip("/"),) if part)])
    query = f"?{exchange.raw_query}" if exchange.raw_query else ""
    return redirect(quote(path + query, safe=string.punctuation, encoding="latin-1"))


def _find(exchange: Exchange) -> AnyAnswer:
    """Redirect from a capability in an argument, or a link that somebody pasted, to its place in the path."""
    text = exchange.arguments.required("uri").strip()
    if text[:6].upper() == "URI%3A":
        text = unquote(text)
    others = [(name, value) for name, value in exchange.arguments.query if name != "uri"]
    if not isinstance(parse_cap(text), UnknownCap):
        path = f"uri/{quote(text, safe='')}"
    else:
        link = parse_link(text)
        if link is None or not _is_usable(exchange, link):
            raise BadRequest("this is neither a capability nor a link to one; was it copied completely?")
        path = "/".join(quote(segment, safe="") for segment in link.segments)
        if link.file_name and "filename" not in dict(others):
            others.append(("filename", link.file_name))
    query = f"?{urlencode(others, errors='surrogateescape')}" if others else ""
    return redirect(f"{exchange.origin}/{path}{query}")


def _is_usable(exchange: Exchange, link: GivenLink) -> bool:
    """Whether the link contains a capability, or is a share link of this gateway; BadRequest for one of another."""
    if link.segments[0] != SHARED:
        return not isinstance(parse_cap(link.segments[1]), UnknownCap)
    hosts = exchange.gateway.settings.hosts
    if hosts is not None and host_name(link.host) not in hosts:
        raise BadRequest("this is a share link of another gateway: put it into the address bar of the browser")
    return True


async def _put(exchange: Exchange, make_directory: Handler) -> AnyAnswer:
    t = exchange.arguments.t
    if t == "mkdir":
        return await make_directory(exchange)
    if t:
        raise BadRequest(f"PUT of an unlinked object: t={t!r} is not known")
    return cap_answer(await store_body(exchange, new_file(exchange)))


async def _post(exchange: Exchange, make_directory: Handler) -> AnyAnswer:
    if exchange.is_form:
        await exchange.form()
    t = exchange.arguments.t
    if t in MKDIR:
        return await make_directory(exchange)
    if t not in ("", "upload"):
        raise BadRequest(f"POST of an unlinked object: t={t!r} is not known")
    new = new_file(exchange)
    file = await required_form_file(exchange)
    location = when_done(exchange) if new.format == "chk" else None
    cap = await store_form_file(exchange, new, file)
    if new.format != "chk" and not exchange.wants_page:
        return cap_answer(cap)
    if location is not None:
        return redirect(with_cap(location, cap.to_string(), exchange.origin))
    return upload_page(cap, (await exchange.form()).file_name or "")


async def named(exchange: Exchange) -> AnyAnswer:
    """Handle `/file/$FILE/...` and `/named/$FILE/...`: a file by its capability. The last segment is its name, which decides
    the type, unless `?filename=` gives another.
    """
    segments = exchange.segments[1:]
    if not segments:
        raise NotFound("a capability is missing after this path")
    if exchange.method not in ("GET", "HEAD"):
        raise BadRequest("files can only be read here; write to /uri instead", shape="page")
    child = parse_child(segments[0])
    if isinstance(child.target, UnknownChild):
        raise BadRequest(why_unknown(child.target), shape="page")
    if isinstance(child.target, DirectoryCap):
        raise BadRequest(
            "this is a directory, and only files can be read here; open it with /uri/ instead", shape="page"
        )
    return await get_file(exchange, child, name=segments[-1] if len(segments) > 1 else "", by_path=False)
