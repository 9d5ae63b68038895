"""A directory for people: what is in it, and what can be done with it. Pure. [spec webapi 10]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap, UnknownChild
from grid.directory.metadata import seconds_in
from grid.directory.ordering import sort_by
from grid.directory.pack import Child
from grid.gateway.pages.figures import size_text, time_text
from grid.gateway.pages.icons import icon
from grid.gateway.pages.links import can_be_walked, file_path, object_path, with_arguments
from grid.gateway.pages.markup import Markup, join, tag
from grid.gateway.pages.preview import kind_of
from grid.gateway.pages.sharing import share_links
from grid.gateway.pages.shell import button, card, document, hidden, nothing_here, notice
from grid.gateway.pages.welcome import format_choice

LONGEST_SHOWN = 1000
"""Characters of a name that a page shows, in each of the eight places where a row has it."""


@frozen(kw_only=True)
class DirectoryView:
    """cap: of the directory. root, names: how it was reached, as the address has it. problem: why it cannot be read.

    warning: what its reader should know although it can.
    """

    cap: DirectoryCap = field(repr=False)
    root: str = field(repr=False)
    names: Sequence[str] = ()
    children: Mapping[str, Child] = field(factory=dict, repr=False)
    problem: str | None = None
    warning: str | None = None

    @property
    def path(self) -> str:
        """Its address."""
        return object_path(self.root, self.names, directory=True)

    @property
    def is_writable(self) -> bool:
        """Whether the capability at hand may change it."""
        return self.cap.is_mutable and self.cap.authority == "write"


def render_directory(view: DirectoryView) -> str:
    """The page of a directory, one that cannot be read included."""
    title = view.names[-1] if view.names else "Directory"
    heading = tag("h1", icon("folder"), tag("bdi", title))
    if view.problem is not None:
        lost = notice("bad", tag("p", tag("strong", "This directory cannot be read."), " ", view.problem))
        again = tag(
            "p", "Some of its servers may be away. ", tag("a", "See the servers", href="/servers"), " or try again."
        )
        return document(title, _crumbs(view), heading, lost, again, share_links(view.cap))
    return document(
        title,
        _crumbs(view),
        tag("div", heading, _badge(view), class_="heading"),
        notice("warn", tag("p", f"{view.warning}.")) if view.warning is not None else None,
        _actions(view) if view.is_writable else None,
        _filter(),
        _listing(view),
        share_links(view.cap),
        card(
            "Health", tag("p", "Whether this directory's own shares are all there."), check_form(view.path), id="health"
        ),
    )


def check_form(path: str) -> Markup:
    """Buttons that check, verify and repair what is at the path."""
    choices: tuple[tuple[str, dict[str, str], str], ...] = (
        ("Check", {}, "Ask which servers hold shares"),
        ("Verify", {"verify": "true"}, "Read every share and prove it whole"),
        ("Repair", {"verify": "true", "repair": "true"}, "Verify, and make again what is lost"),
    )
    forms = []
    for label, fields, words in choices:
        send = tag("button", label, title=words, class_="primary" if label == "Check" else None)
        forms.append(
            tag(
                "form",
                hidden(t="check", return_to=path, **fields),
                send,
                action=path,
                method="post",
                enctype="multipart/form-data",
                data_replace="health",
                data_busy=f"{label}ing…" if label != "Verify" else "Verifying…",
            )
        )
    return tag("div", forms, class_="buttons")


def _badge(view: DirectoryView) -> Markup:
    if view.is_writable:
        return tag("span", "Can be changed", class_="badge")
    word = "Read only" if view.cap.is_mutable else "Never changes"
    return tag("span", icon("lock"), word, class_="badge")


def _crumbs(view: DirectoryView) -> Markup:
    steps = [("Top", ())] + [(name, tuple(view.names[: index + 1])) for index, name in enumerate(view.names)]
    items = []
    for index, (label, names) in enumerate(steps):
        last = index == len(steps) - 1
        address = object_path(view.root, names, directory=True)
        here = tag("a", tag("bdi", label or "(no name)"), href=address, aria_current="page" if last else None)
        items.append(tag("li", here))
    return tag("nav", tag("ol", items), class_="crumbs", aria_label="Path")


def _actions(view: DirectoryView) -> Markup:
    upload = tag(
        "form",
        hidden(t="upload", when_done=view.path),
        tag("label", "Add a file", for_="file"),
        tag("input", type="file", name="file", id="file", required=True),
        format_choice("upload-format", ("chk", "sdmf", "mdmf")),
        button("Upload", "primary", "upload"),
        action=view.path,
        method="post",
        enctype="multipart/form-data",
    )
    mkdir = tag(
        "form",
        hidden(t="mkdir", when_done=view.path),
        tag("label", "New directory", for_="mkdir-name"),
        tag("input", type="text", name="name", id="mkdir-name", required=True, autocomplete="off", placeholder="Name"),
        format_choice("mkdir-format", ("sdmf", "mdmf")),
        button("Create", "primary", "plus"),
        action=view.path,
        method="post",
        enctype="multipart/form-data",
    )
    attach = tag(
        "form",
        hidden(t="uri", when_done=view.path),
        tag("label", "Name", for_="attach-name"),
        tag("input", type="text", name="name", id="attach-name", required=True, autocomplete="off"),
        tag("label", "Capability", for_="attach-cap"),
        tag("input", type="text", name="uri", id="attach-cap", required=True, autocomplete="off", placeholder="URI:…"),
        button("Link", "primary", "key"),
        action=view.path,
        method="post",
        enctype="multipart/form-data",
    )
    return tag(
        "div",
        tag("div", data_upload=view.path, class_="drop", id="drop", hidden=True),
        tag("details", tag("summary", icon("upload"), "Add a file"), upload, class_="card", data_plain_upload=True),
        tag("details", tag("summary", icon("plus"), "New directory"), mkdir, class_="card"),
        tag("details", tag("summary", icon("key"), "Link a capability"), attach, class_="card"),
        class_="actions",
    )


def _filter() -> Markup:
    """Finds names in the list; scripts show it where it is of use."""
    entry = tag("input", type="search", id="filter", autocomplete="off", spellcheck="false")
    found = tag("span", data_found=True)
    return tag(
        "div", tag("label", "Find a name", for_="filter"), entry, found, class_="filter", data_filter=True, hidden=True
    )


def _listing(view: DirectoryView) -> Markup:
    if not view.children:
        hint = "Drop files here, or make a directory." if view.is_writable else "Nobody has put anything here yet."
        return tag("div", nothing_here("This directory is empty", hint), id="listing")
    ordered = sort_by(
        view.children.items(),
        key=lambda item: (not _is_directory(item[1]), item[0].casefold(), item[0]),
        size=lambda item: len(item[0]),
    )
    heads = [tag("th", name, scope="col") for name in ("Name", "Size", "Changed")]
    head = tag("thead", tag("tr", heads, tag("th", tag("span", "Actions", class_="unseen"), scope="col")))
    body = tag("tbody", [_row(view, name, child) for name, child in ordered])
    count = len(ordered)
    caption = tag("caption", f"{count} {'entry' if count == 1 else 'entries'}")
    return tag("div", tag("table", caption, head, body, class_="listing"), id="listing", class_="card flush")


def _row(view: DirectoryView, whole: str, child: Child) -> Markup:
    name = whole if len(whole) <= LONGEST_SHOWN else whole[:LONGEST_SHOWN] + "…"
    shown = tag("bdi", name or "(no name)")
    target = child.target
    actions = []
    size: int | None = None
    if isinstance(target, UnknownChild):
        link, picture, word = shown, "unknown", "unknown kind"
    elif isinstance(target, DirectoryCap):
        address = _directory_path(view, name, target) if name is whole else object_path(target.to_string())
        link, picture, word = tag("a", shown, href=address), "folder", "directory"
        actions.append(_action("info", f"Details of {name}", with_arguments(object_path(target.to_string()), t="info")))
    else:
        cap = target.to_string()
        size = target.size if isinstance(target, LitCap | ChkCap) else None
        link = tag("a", shown, href=file_path(cap, name))
        word = "file" if not target.is_mutable else "file, can be changed"
        words = f"Preview and details of {name}" if kind_of(name) else f"Details of {name}"
        actions.append(_action("eye" if kind_of(name) else "info", words, info_path(target, name)))
        picture = {"image": "image", "video": "media", "audio": "media"}.get(kind_of(name), "file")
        actions.append(_action("download", f"Download {name}", file_path(cap, name, save=True), download=True))
    if view.is_writable and name is whole:
        address = with_arguments(view.path, t="rename-form", name=name)
        actions.append(_action("edit", f"Rename, move or delete {name}", address, dialog=True))
    cell = tag("th", icon(picture), tag("span", link, tag("span", f", {word}", class_="unseen")), scope="row")
    return tag(
        "tr",
        cell,
        tag("td", size_text(size), class_="number", data_label="Size"),
        tag("td", time_text(_changed_at(child)), class_="number", data_label="Changed"),
        tag("td", tag("div", actions, class_="row-actions")),
    )


def info_path(cap: KnownCap, name: str) -> str:
    """The page about a file."""
    return with_arguments(object_path(cap.to_string()), t="info", filename=name)


def _directory_path(view: DirectoryView, name: str, cap: DirectoryCap) -> str:
    names = (*view.names, name)
    if can_be_walked(names):
        return object_path(view.root, names, directory=True)
    return object_path(cap.to_string(), directory=True)


def _action(picture: str, label: str, address: str, *, download: bool = False, dialog: bool = False) -> Markup:
    return tag(
        "a",
        icon(picture),
        class_="icon-button",
        href=address,
        aria_label=label,
        title=label,
        download=download,
        data_dialog=dialog,
    )


def _is_directory(child: Child) -> bool:
    return isinstance(child.target, DirectoryCap)


def _changed_at(child: Child) -> float | None:
    noted = child.metadata.get("tahoe")
    found = noted.get("linkmotime") if isinstance(noted, Mapping) else None
    return seconds_in(found)


def render_rename(view: DirectoryView, name: str) -> str:
    """The forms that rename, move or delete one entry. view: its directory; its children are places to move to."""

    def form(*parts: object, **fields: str) -> Markup:
        every = hidden(when_done=view.path, **fields)
        return tag("form", every, *parts, action=view.path, method="post", enctype="multipart/form-data")

    rename = form(
        tag("label", "New name", for_="rename-to"),
        tag("input", type="text", name="to_name", id="rename-to", value=name, required=True, autocomplete="off"),
        button("Rename", "primary"),
        t="rename",
        from_name=name,
        replace="false",
    )
    move = form(
        tag("label", "Into", for_="move-to"),
        tag("input", type="text", name="to_dir", id="move-to", list="places", required=True, autocomplete="off"),
        tag("datalist", _places(view, name), id="places"),
        tag(
            "p",
            "A directory beside it, or the capability of any other, which may have /a/path behind it.",
            class_="hint",
        ),
        button("Move", "primary"),
        t="relink",
        from_name=name,
        replace="false",
    )
    delete = form(
        tag("p", "The link goes; what it leads to can still be opened by those who have its capability."),
        tag(
            "div",
            tag("input", type="checkbox", id="sure", required=True),
            tag("label", "Delete “", tag("bdi", name), "” from this directory", for_="sure"),
            class_="check",
        ),
        button("Delete", "danger"),
        t="unlink",
        name=name,
    )
    return document(
        f"Rename, move or delete {name}",
        tag("h1", tag("bdi", name or "(no name)")),
        card("Rename", rename),
        card("Move", move),
        card("Delete", delete),
        tag("p", tag("a", "Back to the directory", href=view.path, class_="button quiet", data_close=True)),
    )


def _places(view: DirectoryView, name: str) -> Markup:
    found = []
    if view.names:
        found.append(tag("option", "The directory above", value="/".join((view.root, *view.names[:-1]))))
    for other, child in sorted(view.children.items()):
        if isinstance(child.target, DirectoryCap) and child.target.authority == "write" and other != name:
            found.append(tag("option", other, value=child.target.to_string()))
    return join(*found)
