"""The parts common to all pages: the document, its navigation, and empty states. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from grid.gateway.pages.assets import asset_path, styles
from grid.gateway.pages.links import object_path
from grid.gateway.pages.markup import Markup, all_icons, icon, join, tag

_NOTE = "Anyone who has a capability can open what it leads to. Keep capabilities as safe as keys."

_PLACES = (("/", "Home"), ("/servers", "Servers"), ("/status", "Operations"), ("/statistics", "Statistics"))


def document(
    title: str,
    *main: object,
    here: str = "",
    live: str | None = None,
    name: str = "Grid",
    is_visit: bool = False,
    note: str = _NOTE,
    is_alone: bool = False,
) -> str:
    """A whole page. here: the current item of the navigation. live: the address that announces its changes.

    is_visit: for a visitor of a read-only gateway, who may not open what the navigation leads to. note: at the end.
    is_alone: it loads nothing else, since that would be refused, too.
    """
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title if title == name else f"{title} · {name}"),
        tag("style", Markup(styles())) if is_alone else _assets(),
    )
    places = [
        tag("li", tag("a", label, href=path, aria_current="page" if path == here else None)) for path, label in _PLACES
    ]
    body = join(
        all_icons(),
        tag("a", "Skip to content", class_="skip", href="#main"),
        tag(
            "header",
            tag("a", icon("grid"), tag("span", "Grid"), class_="brand", href="/"),
            None if is_visit else tag("nav", tag("ul", places), aria_label="Main"),
            class_="top",
        ),
        tag("main", *main, id="main", tabindex="-1", data_live=live),
        tag(
            "footer",
            tag("p", note),
            tag(
                "p",
                tag(
                    "button",
                    "Keyboard shortcuts",
                    type="button",
                    class_="small quiet",
                    data_shortcuts=True,
                    hidden=True,
                ),
            ),
        ),
        tag("div", id="announce", class_="unseen", role="status", aria_live="polite"),
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def with_styles(html: str) -> str:
    """The page with the style sheet in it instead of a link to it, so that it is drawn while its scripts are on the way.

    The styles come last in the head, so that browsers find the scripts first. (decision 365)
    """
    head, end, body = html.partition("</head>")
    return f"{head.replace(_link_to_styles(), '', 1)}<style>{styles()}</style>{end}{body}"


def _assets() -> Markup:
    """What the head of a page names."""
    picture = tag("link", rel="icon", type="image/svg+xml", href=asset_path("grid.svg"))
    return join(_link_to_styles(), picture, tag("script", type="module", src=asset_path("app.js")))


def _link_to_styles() -> Markup:
    return tag("link", rel="stylesheet", href=asset_path("grid.css"))


def crumbs(root: str, names: Sequence[str], *, last: str = "", top: str = "") -> Markup:
    """Breadcrumbs from a root directory to the current page.

    last: the address of the last item, if it is not a directory. top: the name of the root directory.
    """
    items = []
    for depth, label in enumerate((top or "Top", *names)):
        is_last = depth == len(names)
        address = last if is_last and last else object_path(root, names[:depth], directory=True)
        here = tag("a", tag("bdi", label or "(no name)"), href=address, aria_current="page" if is_last else None)
        items.append(tag("li", here))
    return tag("nav", tag("ol", items), class_="crumbs", aria_label="Path")


def card(title: str | None, *parts: object, id: str | None = None, class_: str = "", level: int = 2) -> Markup:
    """A section of a page, with its heading."""
    heading_id = f"{id}-title" if id else None
    heading = tag(f"h{level}", title, id=heading_id) if title else None
    return tag("section", heading, *parts, class_=f"card {class_}".strip(), id=id, aria_labelledby=heading_id)


def nothing_here(title: str, hint: str, picture: str = "folder") -> Markup:
    """The empty state of a list."""
    return tag("div", icon(picture), tag("p", title, class_="lead"), tag("p", hint), class_="empty")


def notice(kind: str, *parts: object) -> Markup:
    """A notice. kind: good, warn or bad."""
    return tag("div", *parts, class_=f"notice {kind}", role="alert" if kind == "bad" else None)


def facts(*pairs: tuple[str, object]) -> Markup:
    """A list of names and values."""
    return tag("dl", [(tag("dt", name), tag("dd", value)) for name, value in pairs], class_="facts")


def hidden(**values: str) -> Markup:
    """Hidden fields of a form."""
    return join(*(tag("input", type="hidden", name=name, value=value) for name, value in values.items()))


def button(label: str, kind: str = "", picture: str | None = None) -> Markup:
    """A button that submits a form."""
    return tag("button", icon(picture) if picture else None, tag("span", label), class_=kind or None)


def render_error(status: int, message: str) -> str:
    """An error page for programs, which look for this title and heading, and for requests whose sender is not known."""
    home = tag("p", tag("a", "Home", class_="button", href="/"))
    # By another name, whatever the page leads to would be refused for the same reason.
    is_alone = status == HTTPStatus.MISDIRECTED_REQUEST
    if is_alone:  # No program looks for it, so it may be a sentence.
        message = f"{message[:1].upper()}{message[1:].removesuffix('.')}."
    return document(
        f"{status} - Error",
        tag(
            "div",
            tag("h1", "Error"),
            tag("p", message, class_="lead"),
            None if is_alone else home,
            class_="failure",
        ),
        is_visit=True,
        is_alone=is_alone,
    )
