"""Cards on the page of a file or directory: a preview, and the capabilities to share. Pure.

A preview never runs as a page of the gateway: images, audio and video are embedded by type, a script inserts text as
text, and nothing else is shown.
"""

from __future__ import annotations

from grid.caps import DirectoryCap, KnownCap, LitCap
from grid.gateway.content_type import content_type
from grid.gateway.pages.links import object_path, with_arguments
from grid.gateway.pages.markup import Markup, icon, tag
from grid.gateway.pages.shell import card, document

_TEXTS = frozenset({"application/json", "application/xml", "application/x-sh", "application/toml", "application/yaml"})


def kind_of(name: str) -> str:
    """How to preview a file with this name: image, video, audio, pdf, markdown, text, or "" for not at all."""
    described = content_type(name)
    if described.encoding is not None:
        return ""
    kind = described.type
    family = kind.partition("/")[0]
    if family in ("image", "video", "audio"):
        return family
    if kind == "application/pdf":
        return "pdf"
    if kind == "text/markdown":
        return "markdown"
    return "text" if family == "text" or kind in _TEXTS else ""


def preview(name: str, address: str) -> Markup | None:
    """The preview of a file. address: of its contents."""
    match kind_of(name):
        case "image":
            shown = tag("img", src=address, alt=name or "image", loading="lazy")
        case "video":
            shown = tag("video", src=address, controls=True, preload="metadata", aria_label=name or "video")
        case "audio":
            shown = tag("audio", src=address, controls=True, preload="metadata", aria_label=name or "audio")
        case "pdf" | "text" | "markdown" as kind:
            formatted = f"{address}{'&' if '?' in address else '?'}t=preview"
            link = tag("a", "Show formatted", href=formatted) if kind == "markdown" else None
            wait = tag("p", "Previews need JavaScript. ", tag("a", "Open the file", href=address), ". ", link)
            shown = tag("div", wait, data_preview=kind, data_address=address, data_name=name)
        case _:
            return None
    return card("Preview", tag("div", shown, class_="frame"), id="preview")


def render_formatted(name: str, safe_html: str, *, is_visit: bool = False) -> str:
    """Render a formatted text as a page. safe_html: made by grid.gateway.files.markdown_worker, and nothing else.

    is_visit: see `document`.
    """
    text = tag("article", Markup(safe_html), id="rendered", class_="prose")
    contents = card(None, tag("h2", "Contents", class_="unseen"), text)
    return document(name, tag("h1", tag("bdi", name)), contents, is_visit=is_visit)


def share_links(cap: KnownCap) -> Markup:
    """Every capability that the given one includes."""
    thing = "directory" if isinstance(cap, DirectoryCap) else "file"
    all_below = ", with everything in it" if thing == "directory" else ""
    rows = []
    if cap.authority == "write":
        words = (
            f"Anyone with this capability can read and change the {thing}{all_below}. Give it to people you work with."
        )
        rows.append(_row("edit", "Read and write", words, cap.to_string(), opens=True))
    if cap.authority != "verify":
        words = f"Anyone with this capability can read the {thing}{all_below}, but not change it."
        if not cap.is_mutable:
            words = f"Anyone with this capability can read the {thing}{all_below}. It never changes."
        rows.append(_row("key", "Read only", words, cap.read_cap().to_string(), opens=True))
    verify = None if isinstance(cap, LitCap) else cap.verify_cap()
    if verify is not None:
        words = "Anyone with this capability can check and repair the shares, but not read the contents."
        if cap.is_mutable:
            words = (
                "Anyone with this capability can check the shares, but not read the contents. Repair needs the write "
                "capability."
            )
        rows.append(_row("shield", "Verify", words, verify.to_string(), opens=False))
    note = tag(
        "p",
        "There are no accounts: the capability is the permission. Once shared, it cannot be taken back. ",
        tag("code", "grid share"),
        " makes links that can.",
    )
    return card("Capabilities", note, rows, id="share", class_="sharing")


def _row(picture: str, title: str, words: str, text: str, *, opens: bool) -> Markup:
    label = f"{title} capability"
    return tag(
        "div",
        tag("h3", icon(picture), title),
        tag("p", words),
        copy_field(
            label, text, tag("a", "Open", class_="button quiet", href=object_path(text), aria_label=f"Open: {label}")
        )
        if opens
        else copy_field(label, text),
        class_="share-row",
    )


def copy_field(label: str, text: str, *more: Markup) -> Markup:
    """A field with a text and a button that copies it. more: beside them."""
    return tag(
        "div",
        tag("input", class_="cap", type="text", readonly=True, value=text, aria_label=label, spellcheck="false"),
        tag("button", "Copy", type="button", data_copy=text, hidden=True, aria_label=f"Copy: {label}"),
        *more,
        class_="copy",
    )


def share_button(path: str, name: str = "") -> Markup:
    """Opens the dialog about sharing. path: of the object. name: of a file that the path does not name."""
    address = with_arguments(path, t="share", **({"filename": name} if name else {}))
    return tag("a", icon("share"), "Share", href=address, class_="button quiet", data_dialog=True)
