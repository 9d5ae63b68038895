"""Which requests are taken at all: the right host, no stranger's page behind them. Pure. [spec webapi 12]

Browsers send what a page asks them to, to any address: DNS that changes its mind makes a stranger's page one of ours, and
forms post anywhere. Both are told apart by headers that programs do not send and pages cannot forge.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from grid.gateway.exchange import Headers
from grid.gateway.faults import BadRequest, Forbidden, MisdirectedRequest

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})


def check_host(headers: Headers, hosts: frozenset[str] | None) -> str:
    """The Host as it came; MisdirectedRequest if it is none of these (None: any), BadRequest if it is no host at all."""
    host = headers.get("host")
    if (
        host is None
        or not host
        or any(not 0x21 <= ord(character) <= 0x7E or character in '/\\@?#"<>' for character in host)
    ):
        raise BadRequest("the request needs a Host header with a host in it")
    if hosts is not None and _name(host) not in hosts:
        raise MisdirectedRequest("this gateway is not called that; use the address that it listens on")
    return host


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


def _name(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower().rstrip(".")
