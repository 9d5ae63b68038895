"""Rejects requests for foreign hosts and from foreign pages. Pure. [spec webapi 12]

A page can make a browser send requests to any address: DNS rebinding makes a foreign page look like ours, and a form
can post anywhere. Headers that programs do not send and pages cannot forge reveal both.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from grid.gateway.faults import BadRequest, Forbidden, MisdirectedRequest
from grid.gateway.http.exchange import Headers
from grid.gateway.shared.services import AllowedHosts

MAX_SHOWN = 253

_ABSOLUTE = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)
"""A request line that also names the host, as one to a proxy does."""

_NAME = re.compile(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]", re.ASCII)
_HOST = re.compile(r"""(?:\[[0-9A-Fa-f:.]+\]|[^\x00-\x20\x7f-\U0010ffff/\\@?#"'<>\[\]:;,&]+)(?::[0-9]{0,5})?""")
"""A host name or address with an optional port: the syntax allowed in URLs that we send."""

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})


def check_host(
    headers: Headers, hosts: AllowedHosts | None, own: str | None = None, *, target: str | None = None
) -> str:
    """Return the Host header; MisdirectedRequest unless it is one of `hosts` (None: any), BadRequest if it is
    malformed.

    own: replaces a missing Host; None makes a missing Host an error. Browsers always send one. target: the host in the
    request line, which overrides the header.
    """
    host = headers.get("host")
    if host is None and own is not None and target is None:
        return own
    if host is None and own is not None:
        host = target
    if host is None or _HOST.fullmatch(host) is None:
        raise BadRequest("the request needs a Host header with a host name")
    if target is not None:
        host = target
        if _HOST.fullmatch(host) is None:
            raise BadRequest("the request line names no host")
    if hosts is not None and host_name(host) not in hosts:
        raise MisdirectedRequest(_explain(host_name(host)), shape="page")
    return host


def split_target(raw: bytes) -> tuple[str | None, bytes]:
    """Split a request target into the host, if it names one, and the path with its query. [RFC 9112 3.2.2]"""
    found = _ABSOLUTE.match(raw)
    if found is None:
        return None, raw
    rest = raw[found.end() :]
    return found[1].decode("latin-1"), rest if rest.startswith(b"/") else b"/" + rest


def check_origin(method: str, headers: Headers, host: str) -> None:
    """Raise Forbidden if a page of another origin makes the browser change something here."""
    if method in _SAFE_METHODS:
        return
    origin, site = headers.get("origin"), (headers.get("sec-fetch-site") or "none").lower()
    # Our own forms arrive like this: our pages send no referrer, which makes browsers hide the origin of forms too.
    if origin == "null" and site == "same-origin":
        return
    if origin is not None:
        try:
            found = urlsplit(origin)
            same = found.scheme in ("http", "https") and found.netloc.lower() == host.lower()
        except ValueError:
            same = False
        if not same:
            raise Forbidden("a page from another site may not change anything here")
    elif site not in _OWN_SITES:
        raise Forbidden("a page from another site may not change anything here")


def loggable(segments: tuple[str, ...], t: str) -> str:
    """The path as the access log shows it, without secrets."""
    first = segments[0] if segments else ""
    shown = first if first.isascii() and first.replace("-", "").replace(".", "").replace("_", "").isalnum() else ""
    rest = "/..." if len(segments) > 1 else ""
    view = t if t.isascii() and t.replace("-", "").replace("_", "").isalnum() and len(t) < 40 else ""
    return f"/{shown if len(shown) < 40 else ''}{rest}{'?t=' + view if view else ''}"


def host_name(host: str) -> str:
    """The name in a Host header, in lower case and without the port; an IPv6 address in brackets."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower().rstrip(".")


def _explain(name: str) -> str:
    """Explain what to do about a host name that is not ours. Quote the name only if it is a valid one."""
    shown = name if _NAME.fullmatch(name) and len(name) <= MAX_SHOWN else "NAME"
    return (
        "this gateway does not answer to that name, to keep other sites from posing as it. Put the IP address of its"
        " computer, or the name that it listens on, into the address instead. If it is yours and should have this name,"
        f" run `grid config set node.web.allowed_hosts {shown}` on its computer, and restart it"
    )
