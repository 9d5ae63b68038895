"""Hostile texts that would be markup, scripts or addresses if not escaped, and what must not appear in pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser

HOSTILE = [
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>",
    '" autofocus onfocus="alert(1)',
    "'; DROP TABLE files; --",
    "javascript:alert(1)",
    "../../uri/URI:DIR2:aaaa:bbbb?t=json#x",
    "%2F..%2f\r\nSet-Cookie: a=b",
    "\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe",
    "a\0b",
    "..",
    "",
]

_NAME = re.compile(r"(?:[A-Za-z0-9_.~-]|%[0-9A-F]{2})*/?")
"""A quoted name in an address, with nothing that could be a scheme, a host or another segment."""

URL_ATTRIBUTES = {"href", "src", "action", "formaction", "data-address", "data-live", "data-upload"}
ELEMENTS_OF_SCRIPTS = {"script", "iframe", "object", "embed", "base", "style", "template"}


class Document(HTMLParser):
    """What a browser would make of a page: its elements, with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, name: str) -> list[dict[str, str | None]]:
        """The attributes of each element of that name."""
        return [attributes for tag, attributes in self.elements if tag == name]


def require_harmless(html: str) -> Document:
    """The page, once nothing in it runs, and nothing leads to another host."""
    document = Document(html)
    for name, attributes in document.elements:
        if name in ELEMENTS_OF_SCRIPTS:
            assert name == "script" and attributes.get("type") == "module", name
            assert (attributes["src"] or "").startswith("/assets/")
        for key, value in attributes.items():
            assert not key.startswith("on"), (name, key)
            assert key != "style", name
            if name == "use":
                assert (value or "").startswith("#icon-") and key == "href", value
            elif key in URL_ATTRIBUTES:
                assert _stays_here(value or ""), (name, key, value)
    return document


def _stays_here(address: str) -> bool:
    """Whether an address leads to this host: by a path from its root, or to one name beside or below the page."""
    if address.startswith("/"):
        return not address.startswith("//")
    path, _, query = address.partition("?")
    return address == "#main" or (
        _NAME.fullmatch(path) is not None and path.strip("/") not in (".", "..") and "#" not in query
    )
