"""The first page: open what one has a capability of, store something, see whether the grid is there. Pure. [spec webapi 10]"""

from __future__ import annotations

from collections.abc import Sequence

from grid.gateway.pages.markup import Markup, tag
from grid.gateway.pages.servers import connected_text
from grid.gateway.pages.shell import button, card, document, hidden, notice
from grid.gateway.serverview import ServerView


def render_welcome(
    servers: Sequence[ServerView], introducers: Sequence[str], *, needed: int, nickname: str = ""
) -> str:
    """needed: servers that storing a file takes. introducers: a line on each."""
    connected = sum(server.is_connected for server in servers)
    state = tag("p", tag("a", connected_text(servers), href="/servers"), class_="lead")
    warning = None
    if connected < needed:
        words = (
            f"Storing takes {needed} servers. Files that are stored can be read if enough of their servers are here."
        )
        warning = notice("warn", tag("p", words))
    listed = [tag("li", line) for line in introducers]
    network = [tag("h3", "Introducers"), tag("ul", listed)] if listed else None
    return document(
        "Grid",
        tag("h1", nickname or "Your grid"),
        state,
        warning,
        tag("div", _open(), _upload(), _make_directory(), _download(), class_="columns"),
        card("Network", tag("p", connected_text(servers)), network, id="network") if network else None,
        here="/",
    )


def _open() -> Markup:
    return card(
        "Open",
        tag("p", "A file or a directory that you, or somebody who shares it with you, has stored."),
        tag(
            "form",
            _field("Capability of a file or directory", "uri", "open-cap", placeholder="URI:…"),
            button("Open", "primary"),
            action="/uri",
            method="get",
        ),
        id="open",
    )


def _download() -> Markup:
    return card(
        "Download",
        tag("p", "Straight to your disk, under a name of your choice."),
        tag(
            "form",
            _field("Capability of a file", "uri", "download-cap", placeholder="URI:…"),
            _field("Save as", "filename", "download-name", placeholder="report.pdf"),
            hidden(save="true"),
            button("Download"),
            action="/uri",
            method="get",
        ),
        id="download",
    )


def _upload() -> Markup:
    return card(
        "Store a file",
        tag("p", "You get a capability for it. To keep many files together, make a directory first."),
        tag(
            "form",
            hidden(t="upload"),
            tag("label", "File", for_="upload-file"),
            tag("input", type="file", name="file", id="upload-file", required=True),
            format_choice("upload-format", ("chk", "sdmf", "mdmf")),
            button("Store", "primary"),
            action="/uri",
            method="post",
            enctype="multipart/form-data",
        ),
        id="upload",
    )


def _make_directory() -> Markup:
    return card(
        "Make a directory",
        tag("p", "A new, empty directory. Its capability is its only name: bookmark the page that opens."),
        tag(
            "form",
            hidden(t="mkdir", redirect_to_result="true"),
            format_choice("mkdir-format", ("sdmf", "mdmf")),
            button("Make a directory", "primary"),
            action="/uri",
            method="post",
            enctype="multipart/form-data",
        ),
        id="mkdir",
    )


_FORMATS = {
    "chk": "Never changes (CHK)",
    "sdmf": "Can be changed, small (SDMF)",
    "mdmf": "Can be changed, large (MDMF)",
}


def format_choice(id: str, formats: Sequence[str]) -> Markup:
    """Which kind of object is to be made; the first unless another is chosen."""
    options = [tag("option", _FORMATS[name], value=name) for name in formats]
    return tag("div", tag("label", "Kind", for_=id), tag("select", options, name="format", id=id), class_="field")


def _field(label: str, name: str, id: str, *, placeholder: str) -> Markup:
    entry = tag(
        "input",
        type="text",
        name=name,
        id=id,
        required=True,
        autocomplete="off",
        autocapitalize="off",
        spellcheck="false",
        placeholder=placeholder,
    )
    return tag("div", tag("label", label, for_=id), entry, class_="field")
