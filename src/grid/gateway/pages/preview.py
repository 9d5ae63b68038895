"""A look at a file without saving it. Pure.

What is shown of a file never runs as a page of the gateway: pictures, sound and films are embedded by their types, text is
set as text by a script, and anything else is not shown.
"""

from __future__ import annotations

from grid.gateway.content_type import content_type
from grid.gateway.pages.markup import Markup, tag
from grid.gateway.pages.shell import card

_TEXTS = frozenset({"application/json", "application/xml", "application/x-sh", "application/toml", "application/yaml"})


def kind_of(name: str) -> str:
    """How a file of that name can be shown: image, video, audio, pdf, text, or "" for not at all."""
    described = content_type(name)
    if described.encoding is not None:
        return ""
    kind = described.type
    family = kind.partition("/")[0]
    if family in ("image", "video", "audio"):
        return family
    if kind == "application/pdf":
        return "pdf"
    return "text" if family == "text" or kind in _TEXTS else ""


def preview(name: str, address: str) -> Markup | None:
    """The part of a page that shows a file. address: where its contents are."""
    match kind_of(name):
        case "image":
            shown = tag("img", src=address, alt=name or "the image", loading="lazy")
        case "video":
            shown = tag("video", src=address, controls=True, preload="metadata", aria_label=name or "the film")
        case "audio":
            shown = tag("audio", src=address, controls=True, preload="metadata", aria_label=name or "the recording")
        case "pdf" | "text" as kind:
            wait = tag("p", "With scripts it is shown here; without, ", tag("a", "open it", href=address), ".")
            shown = tag("div", wait, data_preview=kind, data_address=address, data_name=name)
        case _:
            return None
    return card("Preview", tag("div", shown, class_="frame"), id="preview")
