"""Where a form's sender goes once its request is done: `when_done=`. Pure. [spec webapi 1.5, 12]

Never to another host: whoever hands out a link to a form could otherwise send its users anywhere.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from grid.errors import FormatError

_CAP = "%(uri)s"


def check_when_done(url: str, origin: str) -> str:
    """The URL, if it leads to this gateway; FormatError. origin: scheme and host of the gateway, as `http://host:1`."""
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
    """A checked URL with the new capability where it says `%(uri)s`, and with this gateway's host if it names none."""
    filled = url.replace(_CAP, quote(cap, safe=""))
    if urlsplit(filled).netloc:
        return filled
    return f"{origin}{filled}" if filled.startswith("/") else f"{origin}/{filled}"
