"""Hostile texts that would be markup, scripts or addresses if not escaped, and what must not appear in pages."""

from __future__ import annotations

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
                assert ((value or "").startswith("/") and not (value or "").startswith("//")) or value == "#main", (
                    name,
                    key,
                    value,
                )
    return document
