"""Which requests are taken at all: the right host, no stranger's page behind them. Pure. [spec webapi 12]

Browsers send what a page asks them to, to any address: DNS that changes its mind makes a stranger's page one of ours, and
forms post anywhere. Both can be recognized by headers that programs do not send and pages cannot forge.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from grid.gateway.faults import BadRequest, Forbidden, MisdirectedRequest
from grid.gateway.http.exchange import Headers
from grid.gateway.shared.services import AllowedHosts

MAX_SHOWN = 253

_ABSOLUTE = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)
"""How a request line begins that names the host as well, as it does for a proxy."""

_NAME = re.compile(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]", re.ASCII)
_HOST = re.compile(r"""(?:\[[0-9A-Fa-f:.]+\]|[^\x00-\x20\x7f-\U0010ffff/\\@?#"'<>\[\]:;,&]+)(?::[0-9]{0,5})?""")
"""A name or an address, and a port: what may stand in a URL that we answer with."""

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})


def check_host(
    headers: Headers, hosts: AllowedHosts | None, own: str | None = None, *, target: str | None = None
) -> str:
    """The Host as it came; MisdirectedRequest if it is none of these (None: any), BadRequest if it is no host at all.

    own: what stands for a Host that is absent, None where that is a mistake. No browser leaves it out. target: the host in
    the request line, which counts for more than a Host.
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
    if hosts is not None and _name(host) not in hosts:
        raise MisdirectedRequest(_explain(_name(host)), shape="page")
    return host


def split_target(raw: bytes) -> tuple[str | None, bytes]:
    """What a request line asks for: the host, if it names one, and the path with its query. [RFC 9112 3.2.2]"""
    found = _ABSOLUTE.match(raw)
    if found is None:
        return None, raw
    rest = raw[found.end() :]
    return found[1].decode("latin-1"), rest if rest.startswith(b"/") else b"/" + rest


def check_origin(method: str, headers: Headers, host: str) -> None:
    """Forbidden if a page of another origin makes the browser change something here."""
    if method in _SAFE_METHODS:
        return
    origin, site = headers.get("origin"), (headers.get("sec-fetch-site") or "none").lower()
    if origin == "null" and site == "same-origin":
        return  # Our own forms: our pages send no referrer, and then browsers keep the origin of a form to themselves as well.
    if origin is not None:
        try:
            found = urlsplit(origin)
            same = found.scheme in ("http", "https") and found.netloc.lower() == host.lower()
        except ValueError:
            same = False
        if not same:
            raise Forbidden("a page of another site may not change anything here")
    elif site not in _OWN_SITES:
        raise Forbidden("a page of another site may not change anything here")


def loggable(segments: tuple[str, ...], t: str) -> str:
    """What the access log says of a path: nothing that anybody could use."""
    first = segments[0] if segments else ""
    shown = first if first.isascii() and first.replace("-", "").replace(".", "").replace("_", "").isalnum() else ""
    rest = "/..." if len(segments) > 1 else ""
    view = t if t.isascii() and t.replace("-", "").replace("_", "").isalnum() and len(t) < 40 else ""
    return f"/{shown if len(shown) < 40 else ''}{rest}{'?t=' + view if view else ''}"


def _explain(name: str) -> str:
    """What to do about a name that is not ours; the name itself only where it is one."""
    shown = name if _NAME.fullmatch(name) and len(name) <= MAX_SHOWN else "NAME"
    return (
        f"this gateway does not answer to that name, so that other sites cannot pose as it. Use the address"
        f" that it listens on; or, if it should have this name, set web.allowed_hosts = {shown} in section [node] of its"
        f" configuration, and start it again"
    )


def _name(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower().rstrip(".")
