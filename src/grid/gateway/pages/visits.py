"""The pages behind a share link, for its visitors. Pure. [spec webapi 10.1]

No page here contains a capability, nor the link's token: they name everything relative to their own address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from grid.caps import DirectoryCap, ImmutableFileCap, UnknownChild
from grid.directory.pack import Child
from grid.gateway.pages.entries import SORT_KEYS, SortKey, linked_at, order_arguments, sorted_entries
from grid.gateway.pages.entry_rows import LONGEST_SHOWN, groups, pictures_switch
from grid.gateway.pages.file_cards import kind_of, preview
from grid.gateway.pages.links import can_be_walked
from grid.gateway.pages.markup import Markup, icon, size_text, tag, time_mark, time_text
from grid.gateway.pages.mistakes import sentence
from grid.gateway.pages.paging import PAGE_ROWS, Paged, caption_text, find_names, page_links
from grid.gateway.pages.shell import button, card, document, facts, nothing_here, notice
from grid.values import field, frozen

GONE = "This link does not exist, has ended, or was taken back. Ask the person who sent it to you for a new one."

_NOTE = "Anyone who has this link can open what it leads to, as long as it works."

_PICTURES = {"image": "image", "video": "media", "audio": "media"}


@frozen(kw_only=True)
class Visit:
    """What a visitor looks at. top: the link's name. names: the path below it. expires: Unix time, None for never.

    downloads_left: None for no limit.
    """

    top: str
    names: Sequence[str] = ()
    expires: int | None = None
    downloads_left: int | None = None

    @property
    def title(self) -> str:
        """The name of what is shown."""
        return self.names[-1] if self.names else self.top


@frozen(kw_only=True)
class SharedDirectory:
    """A directory behind a link. page: of the list, from 1. find: the words to search names for."""

    visit: Visit
    children: Mapping[str, Child] = field(repr=False)
    sort: SortKey = "name"
    descending: bool = False
    page: int = 1
    find: str = ""

    def address(self, *, sort: SortKey, descending: bool, page: int = 1) -> str:
        """The address of the same list, in this order."""
        arguments = (
            {"sort": sort} | ({"order": "desc"} if descending else {}) | ({"find": self.find} if self.find else {})
        )
        return f"?{urlencode({**arguments, **({'page': str(page)} if page > 1 else {})})}"


def render_shared_directory(view: SharedDirectory) -> str:
    """Render the listing of a directory."""
    visit = view.visit
    archive = tag("a", icon("download"), "Download as ZIP", href="?t=zip", class_="button quiet", download=True)
    return _page(
        visit,
        _crumbs(visit, is_directory=True) if visit.names else None,
        tag(
            "div",
            tag("h1", icon("folder"), tag("bdi", visit.title)),
            tag("span", icon("lock"), "Read only", class_="badge"),
            tag("div", archive if view.children else None, class_="buttons"),
            class_="heading",
        ),
        _ending(visit),
        _filter(view),
        _listing(view),
    )


def render_shared_file(
    visit: Visit,
    *,
    size: int | None,
    changed: float | None,
    way: Markup | None = None,
    is_alone: bool,
) -> str:
    """Render the page of a file. size: bytes, None if unknown. changed: when it was linked, Unix time.

    way: to its neighbors. is_alone: whether the link is that of the file itself, and not of a directory above.
    """
    address = quote(visit.title, safe="")
    save = tag("a", icon("download"), "Download", class_="button primary", href=f"{address}?save=true", download=True)
    known: list[tuple[str, object]] = [
        ("Size", size_text(size)),
        *([("Changed", time_mark(changed))] if changed is not None else []),
    ]
    return _page(
        visit,
        None if is_alone else _crumbs(visit, is_directory=False),
        way,
        tag("div", tag("h1", tag("bdi", visit.title)), tag("div", save, class_="buttons"), class_="heading"),
        _ending(visit),
        card(None, facts(*known)),
        # To show the file would be a download.
        preview(visit.title, address) if visit.downloads_left is None else None,
    )


def render_password(problem: str = "") -> str:
    """The form that asks for the password of a link. It says nothing of what the link leads to."""
    form = tag(
        "form",
        tag("label", "Password", for_="password"),
        tag(
            "input",
            type="password",
            name="password",
            id="password",
            required=True,
            autocomplete="current-password",
            aria_describedby="problem" if problem else None,
        ),
        button("Open", "primary", "lock"),
        method="post",
        enctype="application/x-www-form-urlencoded",
    )
    return document(
        "Password needed",
        tag("h1", "Password needed"),
        notice("bad", tag("p", problem, id="problem")) if problem else None,
        card(None, tag("p", "The person who sent you this link has set a password."), form),
        is_visit=True,
        note=_NOTE,
    )


def render_gone() -> str:
    """The page of every link that opens nothing, whatever the reason."""
    return _notice_page("Nothing here", GONE)


def render_unavailable(words: str) -> str:
    """The page of every link while links cannot be opened."""
    return _notice_page("Not now", sentence(words))


def _notice_page(title: str, words: str) -> str:
    return document(title, tag("h1", title), notice("bad", tag("p", words)), is_visit=True, note=_NOTE)


def _page(visit: Visit, *main: object) -> str:
    return document(visit.title, *main, is_visit=True, note=_NOTE)


def _ending(visit: Visit) -> Markup | None:
    """When the link ends, if it does."""
    parts: list[object] = []
    if visit.expires is not None:
        parts += ["This link ends on ", time_mark(visit.expires), ". "]
    if visit.downloads_left is not None:
        word = "download" if visit.downloads_left == 1 else "downloads"
        parts.append(f"It allows {visit.downloads_left} more {word}: to save a file, or all as a ZIP file, takes one.")
    return tag("p", parts, class_="hint") if parts else None


def _crumbs(visit: Visit, *, is_directory: bool) -> Markup:
    """The way from the shared directory to this page, relative to its address."""
    every, items = (visit.top, *visit.names), []
    for depth, label in enumerate(every):
        is_last = depth == len(every) - 1
        up = len(every) - 1 - depth - (0 if is_directory else 1)
        address = f"{quote(label, safe='')}?t=info" if is_last and not is_directory else "../" * up or "./"
        here = tag("a", tag("bdi", label), href=address, aria_current="page" if is_last else None)
        items.append(tag("li", here))
    return tag("nav", tag("ol", items), class_="crumbs", aria_label="Path")


def _filter(view: SharedDirectory) -> Markup:
    """The search field for names: scripts filter within the page; in long lists the server searches."""
    is_long = bool(view.find) or len(view.children) > PAGE_ROWS
    label = tag("label", "Find a name", for_="filter")
    if not is_long:
        entry = tag("input", type="search", id="filter", autocomplete="off", spellcheck="false")
        return tag("div", label, entry, tag("span", data_found=True), class_="filter", data_filter=True, hidden=True)
    entry = tag("input", type="search", id="filter", name="find", value=view.find, autocomplete="off")
    everything = tag("a", "Show all", href="./") if view.find else None
    return tag("form", label, entry, tag("button", "Find"), everything, class_="filter", method="get")


def _listing(view: SharedDirectory) -> Markup:
    if not view.children:
        return tag("div", nothing_here("This directory is empty", "There is nothing here yet."), id="listing")
    found = find_names(view.children, view.find)
    if not found:
        return tag("div", tag("p", f"No names contain “{view.find.strip()}”.", class_="hint"), id="listing")
    ordered = sorted_entries(found, view.sort, descending=view.descending)
    paged = Paged(len(ordered), view.page)
    order = "".join(f"&{key}={value}" for key, value in order_arguments(view.sort, view.descending).items())
    rows = [_row(name, child, order) for name, child in ordered[paged.first : paged.end]]
    heads = [_head(view, key) for key in SORT_KEYS]
    # Where downloads are counted, to show a picture would be one.
    switch = pictures_switch(rows, is_visit=True) if view.visit.downloads_left is None else None
    table = tag(
        "table",
        tag("caption", tag("span", caption_text(paged, len(view.children))), switch, class_=switch and "switched"),
        tag("thead", tag("tr", heads, tag("th", tag("span", "Actions", class_="unseen"), scope="col"))),
        groups(rows),
        class_="listing plain",
    )
    links = page_links(paged, lambda page: view.address(sort=view.sort, descending=view.descending, page=page))
    return tag("div", _sorting(view), table, links, id="listing", class_="card flush")


def _row(name: str, child: Child, order: str) -> Markup:
    """The row of an entry. Names that no address can contain are shown, but lead nowhere."""
    target, is_long = child.target, len(name) > LONGEST_SHOWN
    shown = (name[:LONGEST_SHOWN] + "…" if is_long else name) or "(no name)"
    can_be_opened = not is_long and can_be_walked([name])
    quoted = quote(name, safe="") if can_be_opened else ""
    size: int | None = None
    action: Markup | None = None
    if isinstance(target, UnknownChild) or target.authority == "verify":
        address, picture, word = "", "unknown", ", unknown kind"
    elif isinstance(target, DirectoryCap):
        address, picture, word = f"{quoted}/", "folder", ", directory"
    else:
        address, picture, word = f"{quoted}?t=info{order}", _PICTURES.get(kind_of(name), "file"), ""
        size = target.size if isinstance(target, ImmutableFileCap) else None
        action = tag("a", class_="save", href=f"{quoted}?save=true", download=True, aria_label=f"Download {shown}")
    label = tag("bdi", shown)
    return tag(
        "tr",
        tag(
            "th",
            tag("a", label, href=address) if address and can_be_opened else label,
            tag("span", word, class_="unseen") if word else None,
            scope="row",
            class_=picture,
        ),
        tag("td", size_text(size)),
        tag("td", time_text(linked_at(child))),
        tag("td", action if can_be_opened else None),
    )


def _head(view: SharedDirectory, key: SortKey) -> Markup:
    """A heading that sorts by its column, or reverses the order if the list is already sorted by it."""
    is_sorted = view.sort == key
    address = view.address(sort=key, descending=is_sorted and not view.descending)
    state = ("descending" if view.descending else "ascending") if is_sorted else None
    mark = tag("span", "↓" if view.descending else "↑", aria_hidden="true") if is_sorted else None
    return tag("th", tag("a", key.capitalize(), mark, href=address), scope="col", aria_sort=state)


def _sorting(view: SharedDirectory) -> Markup:
    """A sort menu for narrow windows, where the headings are hidden."""
    links = []
    for key in SORT_KEYS:
        is_sorted = view.sort == key
        mark = tag("span", "↓" if view.descending else "↑", aria_hidden="true") if is_sorted else None
        state = f", {'descending' if view.descending else 'ascending'} now" if is_sorted else ""
        address = view.address(sort=key, descending=is_sorted and not view.descending)
        hint = tag("span", state, class_="unseen")
        links.append(tag("a", key.capitalize(), mark, hint, href=address, aria_current=is_sorted or None))
    return tag("nav", tag("span", "Sort by"), links, class_="sorting", aria_label="Sort by")


def neighbor_address(name: str, order: Mapping[str, str]) -> str:
    """The page of a file beside this one. order: the arguments that keep the order of the list."""
    return f"{quote(name, safe='')}?{urlencode({'t': 'info', **order})}"
