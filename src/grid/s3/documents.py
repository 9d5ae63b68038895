"""Writes S3's XML documents, and parses those of clients within bounds. Pure.

A client's document must not have a DTD, which could declare entities; expat reports one before processing it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.parsers import expat
from xml.sax.saxutils import escape

from grid.ports import Buffer
from grid.s3.faults import S3Fault
from grid.values import define, field

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
XML = "application/xml"

MAX_DOCUMENT = 4 * 2**20
"""Bytes of a client's document; one that lists 10,000 parts has at most two million."""

MAX_DEPTH = 8

MAX_ELEMENTS = 500
"""Elements of a client's document unless its operation needs more: each takes some 250 bytes of memory."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f\ufffe\uffff]")
_INEXPRESSIBLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def is_expressible(value: str) -> bool:
    """Whether parsers of XML accept every character of the text, at least as a reference."""
    return not _INEXPRESSIBLE.search(value)


def text(name: str, value: object) -> str:
    """An element with text. Characters that XML cannot contain become references, as in S3."""
    content = escape(str(value))
    return f"<{name}>{_CONTROL.sub(lambda found: f'&#x{ord(found[0]):x};', content)}</{name}>"


def flag(name: str, value: bool) -> str:
    """An element with a boolean."""
    return f"<{name}>{'true' if value else 'false'}</{name}>"


def element(name: str, *content: str) -> str:
    """An element with child elements."""
    return f"<{name}>{''.join(content)}</{name}>"


def document(name: str, *content: str, namespace: bool = True) -> bytes:
    """A whole document."""
    space = f' xmlns="{NAMESPACE}"' if namespace else ""
    whole = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}{space}>{"".join(content)}</{name}>'
    return whole.encode("utf-8", "replace")


@define(eq=False)
class Element:
    """An element of a client's document: its name without a prefix, its text, and its child elements."""

    name: str
    text: str = ""
    inside: list[Element] = field(factory=list)

    def all(self, name: str) -> Iterator[Element]:
        """The direct children of this name."""
        return (each for each in self.inside if each.name == name)

    def get(self, name: str) -> str | None:
        """The text of the first direct child of this name."""
        return next((each.text for each in self.all(name)), None)


class _Reader:
    def __init__(self, most: int) -> None:
        """most: elements."""
        self.root: Element | None = None
        self._most = most
        self._open: list[Element] = []
        self._texts: list[list[str]] = []
        self._count = 0

    def start(self, name: str, _: object) -> None:
        self._count += 1
        if len(self._open) >= MAX_DEPTH or self._count > self._most:
            raise S3Fault("MalformedXML")
        found = Element(name.rpartition(":")[2])
        if self._open:
            self._open[-1].inside.append(found)
        else:
            self.root = found
        self._open.append(found)
        self._texts.append([])

    def end(self, _: str) -> None:
        self._open.pop().text = "".join(self._texts.pop())

    def data(self, text: str) -> None:
        if self._texts:
            self._texts[-1].append(text)


def _refuse(*_: object) -> None:
    raise S3Fault("MalformedXML", "Document type declarations are not allowed.")


def parse_document(data: Buffer, name: str, most: int = MAX_ELEMENTS) -> Element:
    """Parse a document whose root has this name. MalformedXML, also for more than `most` elements."""
    if len(data) > MAX_DOCUMENT:
        raise S3Fault("MalformedXML")
    reader = _Reader(most)
    # Namespaces are not resolved: expat would write the whole name of its namespace in front of each element's.
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, UnicodeError):
        raise S3Fault("MalformedXML") from None
    if reader.root is None or reader.root.name != name:
        raise S3Fault("MalformedXML")
    return reader.root
