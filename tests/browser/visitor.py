"""A user at a browser: prepares objects in the grid, and reads what the pages show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen


class GatewayClient:
    """A program that prepares objects in the grid. address: the gateway's."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        kind: str = "application/octet-stream",
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """What the gateway answers a program."""
        fields = {"Content-Type": kind, **(headers or {})}
        with urlopen(Request(self.address + path, body or None, fields, method=method)) as answer:
            found: bytes = answer.read()
            return found

    def make_directory(self, children: Mapping[str, bytes] | None = None) -> str:
        """A new directory with these files; its path."""
        path = uri(self.ask("PUT", "/uri?t=mkdir").decode().strip()) + "/"
        for name, contents in (children or {}).items():
            self.ask("PUT", path + quote(name, safe=""), contents)
        return path

    def store(self, contents: bytes) -> str:
        """A new file; its cap."""
        return self.ask("PUT", "/uri", contents).decode().strip()


class Visitor(GatewayClient):
    """A page of the browser. complaints: errors that it logged; strangers: other hosts that it asked."""

    def __init__(self, page: Any, address: str, pictures: Path | None, name: str) -> None:
        super().__init__(address)
        self.page = page
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        self._pictures = pictures
        self._name = re.sub(r"[^A-Za-z0-9_-]+", "-", name)
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._note)

    def _note(self, request: Any) -> None:
        # The browser's own viewer of documents is made of pages of the browser.
        own = (f"{self.address}/", "data:", f"blob:{self.address}/", "chrome://", "chrome-extension://")
        if not request.url.startswith(own):
            self.strangers.append(request.url)

    def go(self, path: str) -> None:
        """Open a page."""
        self.page.goto(self.address + path)

    def picture(self, name: str) -> None:
        """Save a screenshot of the current view, if screenshots are kept."""
        if self._pictures is None:
            return
        self.page.screenshot(path=self._pictures / f"{self._name}-{name}.png", full_page=True)

    def drop(self, paths: Sequence[Path]) -> None:
        """Drag these from the desktop and drop them on the page."""
        box = self.page.locator("#drop").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        session = self.page.context.new_cdp_session(self.page)
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            session.send("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": data})
        session.detach()


def uri(cap: str) -> str:
    """The path of an object."""
    return f"/uri/{quote(cap, safe='')}"


def faults(visitor: Visitor, axe: str, rules: list[str] | None, part: str = "") -> list[Any]:
    """What axe finds. rules: of these, if not of all. part: a selector, "" for the whole page."""
    if not visitor.page.evaluate("typeof axe === 'object'"):
        visitor.page.evaluate(axe)
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    found = visitor.page.evaluate("([part, options]) => axe.run(part || document, options)", [part, options])
    return [
        (fault["id"], fault["impact"], [node["html"][:200] for node in fault["nodes"]]) for fault in found["violations"]
    ]
