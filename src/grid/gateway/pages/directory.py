"""The page of a directory: its entries and the actions on them. Pure. [spec webapi 10]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.caps import DirectoryCap
from grid.directory.pack import Child
from grid.gateway.history.undo_journal import PastChange
from grid.gateway.pages.entries import SORT_KEYS, SortKey, order_arguments, sorted_entries
from grid.gateway.pages.entry_rows import entry_row, groups, pictures_switch, row_words
from grid.gateway.pages.file_cards import share_button, share_links
from grid.gateway.pages.forms import delete_form, link_form, mkdir_form, move_form, rename_form, upload_form
from grid.gateway.pages.links import object_path, with_arguments
from grid.gateway.pages.markup import Markup, icon, join, tag
from grid.gateway.pages.mistakes import sentence, servers_hint
from grid.gateway.pages.paging import PAGE_ROWS, Paged, caption_text, find_names, page_links
from grid.gateway.pages.selection import pick_all, selection_bar
from grid.gateway.pages.shell import card, crumbs, document, hidden, nothing_here, notice
from grid.gateway.pages.snapshots import snapshots_card, way_to_snapshots
from grid.gateway.pages.tree_check import tree_card
from grid.gateway.pages.undo import undo_part
from grid.gateway.shared.node_view import ServerView
from grid.values import field, frozen

LEAST_FILTERED = 12
"""Entries from which scripts offer to filter them, as `filter.js` has it."""


@frozen(kw_only=True)
class Shown:
    """How the page is asked for. has_slash: whether its address is that of the directory, so that its entries can be
    linked by their names alone. name: to show for a directory without a path. is_visit: for a visitor of a read-only
    gateway, who gets no changes, checks and capabilities.
    """

    has_slash: bool = False
    name: str = ""
    is_visit: bool = False

    @property
    def arguments(self) -> Mapping[str, str]:
        """What addresses of the same page carry on."""
        return {"filename": self.name} if self.name else {}


@frozen(kw_only=True)
class DirectoryView:
    """cap: of the directory. root, names: its path, as in the address. problem: why it cannot be read.

    warning: shown although the directory can be read. servers: all known servers. page: of the list, from 1. find: the
    words to search names for. past: changes that can be undone, the newest first. last_check: of everything below: its
    handle, and whether it has finished.
    """

    cap: DirectoryCap = field(repr=False)
    root: str = field(repr=False)
    names: Sequence[str] = ()
    children: Mapping[str, Child] = field(factory=dict, repr=False)
    problem: str | None = None
    warning: str | None = None
    servers: Sequence[ServerView] = ()
    sort: SortKey = "name"
    descending: bool = False
    page: int = 1
    find: str = ""
    past: Sequence[PastChange] = ()
    last_check: tuple[str, bool] | None = field(default=None, repr=False)
    shown: Shown = Shown()

    @property
    def path(self) -> str:
        """The page's address."""
        return object_path(self.root, self.names, directory=True)

    @property
    def base(self) -> str:
        """What addresses of entries begin with: nothing, if the page's address is that of the directory."""
        return "" if self.shown.has_slash else self.path

    @property
    def title(self) -> str:
        """The directory's name: the last of its path, or that in its address."""
        return self.names[-1] if self.names else self.shown.name

    @property
    def is_writable(self) -> bool:
        """Whether the given capability permits changes, and the gateway makes them for the sender."""
        return not self.shown.is_visit and self.cap.is_mutable and self.cap.authority == "write"


def render_directory(view: DirectoryView) -> str:
    """Render the page of a directory, including one that cannot be read."""
    title = view.title or "Directory"
    heading = tag("h1", icon("folder"), tag("bdi", title))
    if view.problem is not None:
        lost = notice("bad", tag("p", tag("strong", "This directory cannot be read."), " ", sentence(view.problem)))
        return document(
            title,
            crumbs(view.root, view.names),
            heading,
            lost,
            servers_hint(view.servers, is_visit=view.shown.is_visit),
            None if view.shown.is_visit else share_links(view.cap),
            is_visit=view.shown.is_visit,
        )
    return document(
        title,
        crumbs(view.root, view.names, top=view.shown.name),
        tag(
            "div",
            heading,
            _badge(view),
            tag(
                "div",
                way_to_snapshots(view.children, view.base),
                share_button(view.path, view.shown.name),
                _archive_link(view),
                class_="buttons",
            ),
            class_="heading",
        ),
        notice("warn", tag("p", f"{view.warning}.")) if view.warning is not None else None,
        snapshots_card(view.children, view.base),
        _actions(view) if view.is_writable else None,
        _filter(view),
        _listing(view),
        undo_part(view.path, view.past) if view.is_writable else None,
        None if view.shown.is_visit else _keeping(view),
        is_visit=view.shown.is_visit,
    )


def _keeping(view: DirectoryView) -> Markup:
    """The capabilities, and the checks."""
    words = tag("p", "Health of this directory itself, not of the files in it.")
    return join(
        share_links(view.cap),
        card("Health", words, check_form(view.path), id="health"),
        tree_card(view.path, is_writable=view.is_writable, last=view.last_check),
    )


def check_form(path: str) -> Markup:
    """Buttons that check, verify and repair the object at this path."""
    choices: tuple[tuple[str, dict[str, str], str], ...] = (
        ("Check", {}, "Ask which servers hold shares"),
        ("Verify", {"verify": "true"}, "Read and validate every share"),
        ("Repair", {"verify": "true", "repair": "true"}, "Verify, and recreate what is missing"),
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
        return tag("span", "Editable", class_="badge")
    word = "Read only" if view.cap.is_mutable else "Never changes"
    return tag("span", icon("lock"), word, class_="badge")


def _archive_link(view: DirectoryView) -> Markup | None:
    """A link that downloads everything in this directory and below."""
    if not view.children:
        return None
    words = "Download as ZIP"
    return tag("a", icon("download"), words, href=_archive(view), class_="button quiet", download=True)


def _archive(view: DirectoryView) -> str:
    return with_arguments(view.path, t="zip", **view.shown.arguments)


def _actions(view: DirectoryView) -> Markup:
    return tag(
        "div",
        _drop(view.path),
        _action_card("upload", "Add a file", upload_form(view.path), data_plain_upload=True),
        _action_card("plus", "New directory", mkdir_form(view.path)),
        _action_card("key", "Link a capability", link_form(view.path)),
        class_="actions",
    )


def _drop(path: str) -> Markup:
    """Where scripts take files and folders. Like all that is `data_early`, it has its place before they arrive."""
    files = tag("button", "Choose files", type="button", class_="primary")
    folder = tag("button", "Choose a folder", type="button")
    parts = tag("p", "Drop files and folders here"), tag("div", files, folder, class_="buttons")
    return tag("div", parts, data_upload=path, class_="drop", id="drop", hidden=True, data_early=True)


def _action_card(picture: str, label: str, form: Markup, **attributes: bool) -> Markup:
    return tag("details", tag("summary", icon(picture), label), form, class_="card", **attributes)


def _filter(view: DirectoryView) -> Markup:
    """The search field for names: scripts filter within the page; in long lists the server searches."""
    if view.find or len(view.children) > PAGE_ROWS:
        entry = tag("input", type="search", id="filter", name="find", value=view.find, autocomplete="off")
        order = hidden(sort=view.sort, **view.shown.arguments, **({"order": "desc"} if view.descending else {}))
        label, send = tag("label", "Find a name", for_="filter"), tag("button", "Find")
        everything = tag("a", "Show all", href=_address(view, find="")) if view.find else None
        return tag("form", order, label, entry, send, everything, class_="filter", action=view.path, method="get")
    entry = tag("input", type="search", id="filter", autocomplete="off", spellcheck="false")
    found = tag("span", data_found=True)
    label, is_early = tag("label", "Find a name", for_="filter"), len(view.children) >= LEAST_FILTERED
    return tag("div", label, entry, found, class_="filter", data_filter=True, hidden=True, data_early=is_early or None)


def _listing(view: DirectoryView) -> Markup:
    if not view.children:
        hint = "Drop files here, or create a directory." if view.is_writable else "There is nothing here yet."
        return tag("div", nothing_here("This directory is empty", hint), id="listing")
    found = find_names(view.children, view.find)
    if not found:
        return tag("div", tag("p", f"No names contain “{view.find.strip()}”.", class_="hint"), id="listing")
    ordered = sorted_entries(found, view.sort, descending=view.descending)
    paged = Paged(len(ordered), view.page)
    heads = [_sorting_head(view, key) for key in SORT_KEYS]
    head = tag("thead", tag("tr", heads, tag("th", tag("span", "Actions", class_="unseen"), scope="col")))
    rows = _rows(view, ordered[paged.first : paged.end])
    switch = pictures_switch(rows, is_visit=view.shown.is_visit)
    caption = tag("caption", pick_all(), caption_text(paged, len(view.children)), switch, class_=switch and "switched")
    table = tag("table", caption, head, groups(rows), class_="listing")
    links = page_links(paged, lambda number: _address(view, page=number))
    bar = selection_bar(view.path, _archive(view), is_writable=view.is_writable)
    return tag(
        "div", _sorting(view), row_words(), table, links, bar, id="listing", class_="card flush", data_path=view.path
    )


def _rows(view: DirectoryView, entries: Sequence[tuple[str, Child]]) -> list[Markup]:
    order = "".join(f"&{key}={value}" for key, value in order_arguments(view.sort, view.descending).items())
    return [
        entry_row(number, name, child, base=view.base, order=order, is_writable=view.is_writable)
        for number, (name, child) in enumerate(entries)
    ]


def _address(
    view: DirectoryView,
    *,
    sort: SortKey | None = None,
    descending: bool | None = None,
    page: int = 1,
    find: str | None = None,
) -> str:
    """The address of the same list, with the given changes. Without `page`, the first page."""
    key, is_down = sort or view.sort, view.descending if descending is None else descending
    words = view.find if find is None else find
    arguments = {"sort": key} | ({"order": "desc"} if is_down else {}) | ({"find": words} if words else {})
    return with_arguments(view.path, **view.shown.arguments, **arguments, **({"page": str(page)} if page > 1 else {}))


def _sorting(view: DirectoryView) -> Markup:
    """A sort menu for narrow windows, where the headings are hidden."""
    return tag(
        "nav",
        tag("span", "Sort by"),
        [_sort_link(view, key) for key in SORT_KEYS],
        class_="sorting",
        aria_label="Sort by",
    )


def _sort_link(view: DirectoryView, key: SortKey) -> Markup:
    is_sorted = view.sort == key
    mark = tag("span", "↓" if view.descending else "↑", aria_hidden="true") if is_sorted else None
    state = f", {'descending' if view.descending else 'ascending'} now" if is_sorted else ""
    address = _address(view, sort=key, descending=is_sorted and not view.descending)
    return tag(
        "a", key.capitalize(), mark, tag("span", state, class_="unseen"), href=address, aria_current=is_sorted or None
    )


def _sorting_head(view: DirectoryView, key: SortKey) -> Markup:
    """A heading that sorts by its column, or reverses the order if the list is already sorted by it."""
    is_sorted = view.sort == key
    address = _address(view, sort=key, descending=is_sorted and not view.descending)
    state = ("descending" if view.descending else "ascending") if is_sorted else None
    mark = tag("span", "↓" if view.descending else "↑", aria_hidden="true") if is_sorted else None
    return tag("th", tag("a", key.capitalize(), mark, href=address, data_sort=True), scope="col", aria_sort=state)


def render_rename(view: DirectoryView, name: str) -> str:
    """Render the forms that rename, move or delete an entry.

    view: its directory, whose subdirectories are offered as targets.
    """
    return document(
        f"Rename, move or delete {name}",
        tag("h1", tag("bdi", name or "(no name)")),
        card("Rename", rename_form(view.path, name, name)),
        card("Move", move_form(view.path, name, places=_places(view, name))),
        card("Delete", delete_form(view.path, name)),
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
