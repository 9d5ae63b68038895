"""The pages about a stored file and about any object. Pure. [spec webapi 3]"""

from __future__ import annotations

from collections.abc import Callable

from grid.caps import DirectoryCap, KnownCap, LitCap, MdmfReadCap, MdmfWriteCap, SequenceCap, SliceCap, UnknownChild
from grid.codec.base32 import encode
from grid.directory.pack import Child
from grid.gateway.pages.directory import check_form
from grid.gateway.pages.entries import Neighbors, info_path
from grid.gateway.pages.file_cards import preview, share_button, share_links
from grid.gateway.pages.links import file_path, object_path, with_arguments
from grid.gateway.pages.markup import Markup, icon, join, size_text, tag
from grid.gateway.pages.shell import button, card, document, facts, hidden, notice
from grid.gateway.pages.tree_check import tree_card


def render_upload_results(cap: KnownCap, name: str = "") -> str:
    """An unlinked file was stored: its capability is the only way back to it."""
    words = tag(
        "p",
        tag("strong", "Stored."),
        " Keep its capability: without it, nobody can find the file again, not even you.",
    )
    details = tag("p", tag("a", "Details, preview and health", href=info_path(cap, name), class_="button primary"))
    again = tag("p", tag("a", "Home", href="/", class_="button quiet"))
    return document("File stored", tag("h1", "File stored"), notice("good", words), share_links(cap), details, again)


def render_info(
    child: Child, size: int | None, name: str = "", way: Markup | None = None, *, is_visit: bool = False
) -> str:
    """The page about an object. size: bytes, None if unknown. name: as it was linked or requested.

    way: the breadcrumbs to it, if it was found by a path. is_visit: see `document`; it also offers no changes and checks.
    """
    target = child.target
    if isinstance(target, UnknownChild):
        words = "This gateway does not know this kind of capability. It may come from a newer version of Grid."
        heading = tag("h1", name or "Unknown object")
        return document(name or "Unknown", heading, notice("warn", tag("p", words)), is_visit=is_visit)
    title = name or ("Directory" if isinstance(target, DirectoryCap) else "File")
    cap = target.to_string()
    if isinstance(target, DirectoryCap):
        opened = tag("a", icon("folder"), "Open", class_="button primary", href=object_path(cap, directory=True))
        seen = None
    else:
        opened = tag("a", icon("download"), "Download", class_="button primary", href=file_path(cap, name, save=True))
        seen = preview(name, file_path(cap, name)) if target.authority != "verify" else None
    return document(
        title,
        way,
        tag("div", tag("h1", tag("bdi", title)), _buttons(target, name, opened), class_="heading"),
        card(None, _facts(target, size)),
        seen,
        None if is_visit else _work(target, cap),
        is_visit=is_visit,
    )


def _work(target: KnownCap, cap: str) -> Markup:
    """Changes, checks and capabilities."""
    return join(
        _replace(target, cap) if _can_be_replaced(target) else None,
        _health(target, cap),
        _tree(target) if isinstance(target, DirectoryCap) and target.authority != "verify" else None,
        share_links(target),
    )


def _buttons(target: KnownCap, name: str, opened: Markup) -> Markup | None:
    if target.authority == "verify":
        return None
    share = share_button(object_path(target.to_string()), name if not isinstance(target, DirectoryCap) else "")
    return tag("div", opened, share, class_="buttons")


def neighbor_links(near: Neighbors | None, address: Callable[[str], str]) -> Markup | None:
    """Links to the files before and after one in its directory; None if it is alone. address: makes their addresses."""
    if near is None or near.count < 2:
        return None
    steps = [_step("Previous", "prev", near.before, address), _step("Next", "next", near.after, address)]
    where = tag("li", f"{near.number} of {near.count}")
    return tag("nav", tag("ul", steps[0], where, steps[1]), class_="neighbors", aria_label="Files in this directory")


def _step(word: str, rel: str, name: str | None, address: Callable[[str], str]) -> Markup:
    if name is None:
        return tag("li", tag("span", word, class_="button quiet off", aria_hidden="true"))
    label = f"{word}: {name}"
    return tag("li", tag("a", word, href=address(name), rel=rel, class_="button", title=name, aria_label=label))


def _facts(target: KnownCap, size: int | None) -> Markup:
    body = target.body if isinstance(target, DirectoryCap) else target
    what = "Directory" if isinstance(target, DirectoryCap) else "File"
    if isinstance(body, LitCap):
        kind = "inside the capability itself (LIT)"
    elif isinstance(body, SliceCap):
        kind = f"read-only, in a pack of {size_text(body.pack.size)} (slice)"
    elif isinstance(body, SequenceCap):
        kind = "read-only, made of parts of other files (sequence)"
    elif not target.is_mutable:
        kind = "read-only (CHK)"
    else:
        kind = f"editable ({'MDMF' if isinstance(body, MdmfReadCap | MdmfWriteCap) else 'SDMF'})"
    authority = {"write": "read and write", "read": "read only", "verify": "verify only"}[target.authority]
    pairs: list[tuple[str, object]] = [("Type", f"{what}, {kind}"), ("Your capability", authority)]
    if not isinstance(target, DirectoryCap):
        exact = f" ({size:,} bytes)" if size is not None and size > 999 else ""
        pairs.append(("Size", f"{size_text(size)}{exact}"))
    index = target.storage_index
    if index is not None:
        pairs.append(("Storage index", tag("code", encode(index))))
    return facts(*pairs)


def _can_be_replaced(target: KnownCap) -> bool:
    return not isinstance(target, DirectoryCap) and target.is_mutable and target.authority == "write"


def _replace(target: KnownCap, cap: str) -> Markup:
    return card(
        "Replace the contents",
        tag(
            "form",
            hidden(t="upload", when_done=with_arguments(object_path(cap), t="info")),
            tag("label", "File", for_="file"),
            tag("input", type="file", name="file", id="file", required=True),
            button("Replace", "primary", "upload"),
            action=object_path(cap),
            method="post",
            enctype="multipart/form-data",
        ),
        id="replace",
    )


def _health(target: KnownCap, cap: str) -> Markup:
    body = target.body if isinstance(target, DirectoryCap) else target
    if isinstance(body, LitCap):
        return card(
            "Health",
            tag("p", "The capability itself contains the whole file, so there are no shares to lose."),
            id="health",
        )
    words = tag(
        "p",
        "Check asks servers which shares they hold. Verify reads and validates every share. Repair recreates what is missing.",
    )
    return card("Health", words, check_form(object_path(cap)), id="health")


def _tree(cap: DirectoryCap) -> Markup:
    return tree_card(object_path(cap.to_string(), directory=True), is_writable=cap.authority == "write")
