"""What became of an upload, for people. Pure. [spec webapi 3]"""

from __future__ import annotations

from grid.caps import KnownCap
from grid.gateway.pages.entries import info_path
from grid.gateway.pages.markup import tag
from grid.gateway.pages.sharing import share_links
from grid.gateway.pages.shell import document, notice


def render_upload_results(cap: KnownCap, name: str = "") -> str:
    """An unlinked file was stored: its capability is the only way back to it."""
    words = tag(
        "p",
        tag("strong", "Stored."),
        " Keep its capability: without one, nobody can find the file again, not even you.",
    )
    details = tag("p", tag("a", "Details, preview and health", href=info_path(cap, name), class_="button primary"))
    again = tag("p", tag("a", "Home", href="/", class_="button quiet"))
    return document("File stored", tag("h1", "File stored"), notice("good", words), share_links(cap), details, again)
