"""Capabilities as links to hand on, each with what it allows in plain words. Pure."""

from __future__ import annotations

from grid.caps import DirectoryCap, KnownCap, LitCap
from grid.gateway.pages.links import object_path
from grid.gateway.pages.markup import Markup, icon, tag
from grid.gateway.pages.shell import card


def share_links(cap: KnownCap) -> Markup:
    """Every capability that the held one contains."""
    thing = "directory" if isinstance(cap, DirectoryCap) else "file"
    all_below = ", with everything in it" if thing == "directory" else ""
    rows = []
    if cap.authority == "write":
        words = f"Whoever has this can read the {thing}{all_below}, and change it. Give it to those you work with."
        rows.append(_row("edit", "Read and write", words, cap.to_string(), opens=True))
    if cap.authority != "verify":
        words = f"Whoever has this can read the {thing}{all_below}, and cannot change it."
        if not cap.is_mutable:
            words = f"Whoever has this can read the {thing}{all_below}. It never changes."
        rows.append(_row("key", "Read only", words, cap.read_cap().to_string(), opens=True))
    verify = None if isinstance(cap, LitCap) else cap.verify_cap()
    if verify is not None:
        words = "Whoever has this can check that the shares are there and whole, and repair them, and read nothing."
        rows.append(_row("shield", "Verify", words, verify.to_string(), opens=False))
    note = tag("p", "There are no accounts: a capability is the permission. What was handed out cannot be taken back.")
    return card("Share", note, rows, id="share", class_="sharing")


def _row(picture: str, title: str, words: str, text: str, *, opens: bool) -> Markup:
    label = f"{title} capability"
    return tag(
        "div",
        tag("h3", icon(picture), title),
        tag("p", words),
        tag(
            "div",
            tag("input", class_="cap", type="text", readonly=True, value=text, aria_label=label, spellcheck="false"),
            tag("button", "Copy", type="button", data_copy=text, hidden=True, aria_label=f"Copy: {label}"),
            tag("a", "Open", class_="button quiet", href=object_path(text), aria_label=f"Open: {label}")
            if opens
            else None,
            class_="copy",
        ),
        class_="share-row",
    )
