"""Answers of handlers: a status, headers, and a body that is ready or written as it is produced.

Pure. [spec webapi 1.5, 12]

Owns the headers of every answer, and redirects. A redirect never leads to another host; otherwise a link to a form
could send people anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar
from urllib.parse import quote, urlsplit

from attrs import evolve, field

from grid.caps import KnownCap
from grid.errors import FormatError
from grid.gateway.faults import Headers, HttpFault
from grid.gateway.pages.assets import assets_address, styles_source
from grid.gateway.pages.shell import render_error
from grid.ports import Sink
from grid.values import frozen
from grid.version import __version__

_CAP = "%(uri)s"


def check_when_done(url: str, origin: str) -> str:
    """Return the URL if it leads to this gateway; FormatError otherwise.

    origin: the gateway's scheme and host, `http://host:1`.
    """
    if any(character <= " " or character in "\\\x7f" or character.isspace() for character in url):
        raise FormatError("when_done= is not a URL")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise FormatError("when_done= is not a URL") from None
    if parts.scheme or parts.netloc:
        if f"{parts.scheme}://{parts.netloc}".lower() != origin.lower():
            raise FormatError("when_done= leads to another host")
    elif url.startswith("//"):
        raise FormatError("when_done= leads to another host")
    return url


def with_cap(url: str, cap: str, origin: str) -> str:
    """Insert the new capability in a checked URL at `%(uri)s`, and this gateway's host if the URL names none."""
    filled = url.replace(_CAP, quote(cap, safe=""))
    if urlsplit(filled).netloc:
        return filled
    return f"{origin}{filled}" if filled.startswith("/") else f"{origin}/{filled}"


COMMON = (
    ("Server", f"Grid/{__version__}"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
"""Headers of every answer that does not override them. [spec webapi 1.4]"""

EMBEDDABLE = (("Cross-Origin-Resource-Policy", "cross-origin"),)
"""Replaces the common header on file contents: stored pages, which are sandboxed, show what is stored beside them.

A page that embeds a file names its capability, and so may read it anyway. (decision 0194)
"""

SANDBOX = (("Content-Security-Policy", "sandbox"),)
"""On every answer that is not one of our pages and sets no policy itself: its contents must not run as a page."""

TEXT = "text/plain;charset=utf-8"
HTML = "text/html; charset=utf-8"
_PAGE_POLICY = (
    "default-src 'none'; script-src {assets}; style-src {assets} {styles}; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; frame-src blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_NAMEABLE_HOST = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]+)?", re.ASCII)


@frozen
class Answer:
    """An answer whose body is ready. content_type: "" for none. is_page: made by `page`, so its scripts may run."""

    status: int
    content_type: str
    body: bytes = field(default=b"", repr=False)
    headers: Headers = ()
    is_page: bool = False


@frozen
class StreamedAnswer:
    """An answer whose body is written while it is sent. size: total bytes, None if unknown.

    write: called once with a sink. If it raises before the first byte, the error becomes the answer; after that, the
    connection is closed. Not called for HEAD.
    """

    status: int
    content_type: str
    size: int | None
    headers: Headers
    write: Callable[[Sink], Awaitable[None]] = field(repr=False)


AnyAnswer = Answer | StreamedAnswer


A = TypeVar("A", bound="Answer | StreamedAnswer")


def warned(answer: A, warning: str | None) -> A:
    """Add a warning for programs to the answer. Pages and JSON carry warnings in their own way."""
    if warning is None:
        return answer
    line = warning.encode("ascii", "replace").decode("ascii")
    return evolve(answer, headers=(*answer.headers, ("X-Grid-Warning", line)))


def cap_answer(cap: KnownCap | str, status: int = 200) -> Answer:
    """The capability as sent by most requests that store something."""
    return Answer(status, "text/html", _cap_text(cap))


def plain_cap(cap: KnownCap | str, status: int = 200) -> Answer:
    """A capability as plain text."""
    return Answer(status, "text/plain", _cap_text(cap))


def json_answer(value: object, status: int = 200) -> Answer:
    """JSON in 1.20's layout."""
    text = json.dumps(value, indent=1, ensure_ascii=True) + "\n"
    return Answer(status, "text/plain", encode_text(text))


def modern_json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """JSON with the media type application/json."""
    body = json.dumps(value, ensure_ascii=True).encode("ascii")
    return Answer(status, "application/json; charset=utf-8", body, tuple((headers or {}).items()))


def text_answer(text: str, status: int = 200) -> Answer:
    """A short fixed text."""
    return Answer(status, "text/html", text.encode("utf-8"))


def page(html: str, status: int = 200, headers: Headers = ()) -> Answer:
    """A page for browsers."""
    return Answer(status, HTML, encode_text(html), headers, is_page=True)


_ENCODED_AT_ONCE = 2**20
"""Characters encoded in one call: encoding 100 MB at once would hold the interpreter lock, whatever the thread."""


def encode_text(text: str, errors: str = "strict") -> bytes:
    """Encode the text as UTF-8 without holding the interpreter lock for long."""
    if len(text) <= _ENCODED_AT_ONCE:
        return text.encode("utf-8", errors)
    starts = range(0, len(text), _ENCODED_AT_ONCE)
    return b"".join([text[start : start + _ENCODED_AT_ONCE].encode("utf-8", errors) for start in starts])


def redirect(location: str, status: int = 302) -> Answer:
    """Redirect to another address. location: sent unchanged; ValueError if it is not a valid header value."""
    if any(ord(character) < 0x21 or ord(character) > 0x7E for character in location):
        raise ValueError("a location has visible ASCII characters only")
    body = b"" if status == 303 else b"<html><head><title>Moved</title></head><body><p>Moved.</p></body></html>\n"
    return Answer(status, HTML, body, (("Location", location),))


def lines(write: Callable[[Sink], Awaitable[None]]) -> StreamedAnswer:
    """Lines that are sent while the work goes on."""
    return StreamedAnswer(200, "text/html", None, (), write)


def keeping(answer: AnyAnswer) -> Headers:
    """The default caching headers: nobody may store the answer, or only the client, which must revalidate it by its
    tag.

    Almost every answer contains capabilities or what one of them reads, and a cache was given none of them.
    """
    names = {name for name, _ in answer.headers}
    if "Cache-Control" in names:
        return ()
    return (("Cache-Control", "private, no-cache" if "ETag" in names else "no-store"),)


def protecting(answer: AnyAnswer, host: str) -> Headers:
    """The default content security policy; empty if the answer sets its own.

    host: the name by which the client reached the gateway. Pages run scripts only from the assets' address, because
    users' files have the same origin and may be scripts too. Only the style sheet may be in the page itself. Pages show
    images from this gateway, and documents as blobs.
    """
    if any(name == "Content-Security-Policy" for name, _ in answer.headers):
        return ()
    if not isinstance(answer, Answer) or not answer.is_page:
        return SANDBOX
    if _NAMEABLE_HOST.fullmatch(host):
        assets = f"{host}{assets_address()}"
    else:
        assets = "'self'"  # The grammar of policies allows neither IPv6 addresses nor a trailing dot.
    return (("Content-Security-Policy", _PAGE_POLICY.format(assets=assets, styles=styles_source())),)


def fault_answer(fault: HttpFault) -> Answer:
    """The answer for this fault."""
    message = str(fault)
    if fault.known_as:
        message += ("\n" if fault.shape == "plain" else " ") + fault.known_as
    if fault.shape == "json":
        return Answer(fault.status, "text/html", json.dumps({"error": message}).encode("ascii"), fault.headers)
    if fault.shape == "page":
        return page(render_error(fault.status, message), fault.status, fault.headers)
    return Answer(fault.status, TEXT, message.encode("utf-8") + b"\n", fault.headers)


def _cap_text(cap: KnownCap | str) -> bytes:
    return (cap if isinstance(cap, str) else cap.to_string()).encode("ascii")
