"""The forms of the pages, empty or filled in with earlier input. Pure. [spec webapi 10]

Each form is rendered here only, so a page that reports a mistake shows the same form again.
"""

from __future__ import annotations

from collections.abc import Sequence

from grid.gateway.pages.markup import Markup, Value, tag
from grid.gateway.pages.shell import button, hidden

_FORMATS = {
    "chk": "Read-only file (CHK)",
    "sdmf": "Editable, small (SDMF)",
    "mdmf": "Editable, large (MDMF)",
}


def format_choice(id: str, formats: Sequence[str], chosen: str = "") -> Markup:
    """A choice of formats; the first is selected unless `chosen` names another."""
    options = [tag("option", _FORMATS[name], value=name, selected=name == chosen) for name in formats]
    return tag("div", tag("label", "Type", for_=id), tag("select", options, name="format", id=id), class_="field")


def post_form(path: str, *parts: object, done: str = "", **fields: str) -> Markup:
    """A form that posts to the path.

    done: what scripts announce on success; "" if the form only works without scripts.
    """
    return tag(
        "form",
        hidden(**fields),
        *parts,
        action=path,
        method="post",
        enctype="multipart/form-data",
        data_ask=done or None,
    )


def upload_form(path: str, chosen: str = "") -> Markup:
    """Stores a file in a directory."""
    return post_form(
        path,
        tag("label", "Add a file", for_="file"),
        tag("input", type="file", name="file", id="file", required=True),
        format_choice("upload-format", ("chk", "sdmf", "mdmf"), chosen),
        button("Upload", "primary", "upload"),
        t="upload",
        ask="true",
        when_done=path,
    )


def mkdir_form(path: str, name: str = "", chosen: str = "") -> Markup:
    """Creates a directory in a directory. An existing one is never replaced by an empty one."""
    return post_form(
        path,
        text_field("New directory", "name", "mkdir-name", name, placeholder="Name"),
        format_choice("mkdir-format", ("sdmf", "mdmf"), chosen),
        button("Create", "primary", "plus"),
        done="Created",
        t="mkdir",
        replace="false",
        when_done=path,
    )


def link_form(path: str, name: str = "", cap: str = "") -> Markup:
    """Links a capability in a directory."""
    return post_form(
        path,
        text_field("Name", "name", "attach-name", name),
        text_field("Capability", "uri", "attach-cap", cap, placeholder="URI:…"),
        button("Link", "primary", "key"),
        done="Linked",
        t="uri",
        ask="true",
        when_done=path,
    )


def rename_form(path: str, name: str, typed: str) -> Markup:
    """Renames an entry."""
    return post_form(
        path,
        text_field("New name", "to_name", "rename-to", typed),
        button("Rename", "primary"),
        done="Renamed",
        t="rename",
        from_name=name,
        ask="true",
        when_done=path,
    )


def move_form(path: str, name: str, typed: str = "", places: Markup | None = None) -> Markup:
    """Moves an entry to another directory. places: the directories offered."""
    return post_form(
        path,
        text_field("Into", "to_dir", "move-to", typed, list="places"),
        tag("datalist", places, id="places"),
        tag(
            "p",
            "Choose a directory here, or paste a directory capability, optionally followed by /sub/path.",
            class_="hint",
        ),
        button("Move", "primary"),
        done="Moved",
        t="relink",
        from_name=name,
        ask="true",
        when_done=path,
    )


def delete_form(path: str, name: str) -> Markup:
    """Removes an entry."""
    return post_form(
        path,
        tag("p", "Removes it from this directory. Anyone with its capability can still open it."),
        tag(
            "div",
            tag("input", type="checkbox", id="sure", required=True),
            tag("label", "Delete “", tag("bdi", name), "” from this directory", for_="sure"),
            class_="check",
        ),
        button("Delete", "danger"),
        done="Deleted",
        t="unlink",
        name=name,
        ask="true",
        when_done=path,
    )


def open_form(cap: str = "") -> Markup:
    """Opens the object of a capability."""
    return tag(
        "form",
        text_field("Capability or link", "uri", "open-cap", cap, placeholder="URI:… or https://…"),
        button("Open", "primary"),
        action="/uri",
        method="get",
    )


def download_form(cap: str = "", name: str = "") -> Markup:
    """Downloads a file."""
    return tag(
        "form",
        text_field(
            "Capability of a file, or a link to it", "uri", "download-cap", cap, placeholder="URI:… or https://…"
        ),
        text_field("Save as", "filename", "download-name", name, placeholder="report.pdf"),
        hidden(save="true"),
        button("Download", "primary"),
        action="/uri",
        method="get",
    )


def store_form(chosen: str = "") -> Markup:
    """Stores a file without linking it."""
    return post_form(
        "/uri",
        tag("label", "File", for_="upload-file"),
        tag("input", type="file", name="file", id="upload-file", required=True),
        format_choice("upload-format", ("chk", "sdmf", "mdmf"), chosen),
        button("Store", "primary"),
        t="upload",
    )


def unlinked_mkdir_form(chosen: str = "") -> Markup:
    """Creates a directory without linking it."""
    return post_form(
        "/uri",
        format_choice("mkdir-format", ("sdmf", "mdmf"), chosen),
        button("Create a directory", "primary"),
        t="mkdir",
        redirect_to_result="true",
    )


def text_field(label: str, name: str, id: str, value: str = "", **more: Value) -> Markup:
    """A text field, filled in with earlier input."""
    entry = tag(
        "input",
        type="text",
        name=name,
        id=id,
        value=value or None,
        required=True,
        autocomplete="off",
        autocapitalize="off",
        spellcheck="false",
        **more,
    )
    return tag("div", tag("label", label, for_=id), entry, class_="field")
