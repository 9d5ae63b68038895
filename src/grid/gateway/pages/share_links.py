"""The owner's share links: the form that makes one, a new one with its QR code, and the list of all. Pure. [spec webapi 10.1]"""

from __future__ import annotations

from collections.abc import Sequence

from grid.gateway.pages.file_cards import copy_field
from grid.gateway.pages.markup import Markup, Value, icon, join, tag, time_mark
from grid.gateway.pages.qr_codes import qr_code
from grid.gateway.pages.shell import button, card, document, hidden, notice
from grid.gateway.shared.passwords import LONGEST_PASSWORD, SHORTEST_PASSWORD
from grid.gateway.shared.share_links import MAX_NAME, MOST_DOWNLOADS, ShareLink
from grid.plural import counted

LIFETIMES = (("1d", "1 day"), ("7d", "7 days"), ("30d", "30 days"), ("never", "Never"))
"""The choices of the form, and their labels; the second is chosen at first."""


def ending_card(read_cap: str, name: str) -> Markup:
    """The card that makes a link which ends. Scripts show it to browsers that `grid web` opened, and fill in the list.

    read_cap: of what is shared.
    """
    options = [tag("option", label, value=value, selected=value == "7d") for value, label in LIFETIMES]
    form = tag(
        "form",
        hidden(t="create", uri=read_cap),
        tag("label", "Ends after", for_="expires"),
        tag("select", options, name="expires", id="expires"),
        tag("details", tag("summary", "More options", class_="more"), _options(name)),
        button("Make a link", "primary", "share"),
        action="/shares",
        method="post",
        enctype="application/x-www-form-urlencoded",
    )
    words = "This link shows no capability, and you can take it back. It works as long as this gateway runs."
    parts = tag("div", id="made-link"), tag("div", id="share-links")
    return tag("div", card("Link that ends", tag("p", words), form, *parts, id="ending"), data_ending=True, hidden=True)


def _options(name: str) -> list[Markup]:
    """The fields for what `grid share` takes as options besides."""
    return [
        _field("Password", "password", "password", "link-password", f"Visitors have to enter it. At least {SHORTEST_PASSWORD} characters.",
            minlength=SHORTEST_PASSWORD, maxlength=LONGEST_PASSWORD, autocomplete="new-password"),
        _field("Number of downloads", "number", "downloads", "link-downloads", "After that many files or ZIP files, the link ends. Empty: no limit.",
            min=1, max=MOST_DOWNLOADS, inputmode="numeric", autocomplete="off"),
        _field("Last day", "date", "until", "link-until", "The link ends with this day, in UTC, and not after the time above."),
        _field("Name", "text", "name", "link-name", "What visitors see.", value=name or None, maxlength=MAX_NAME, autocomplete="off"),
    ]  # fmt: skip


def _field(label: str, kind: str, name: str, id: str, hint: str, **more: Value) -> Markup:
    described = f"{id}-hint"
    entry = tag("input", type=kind, name=name, id=id, aria_describedby=described, **more)
    return tag("div", tag("label", label, for_=id), entry, tag("p", hint, class_="hint", id=described), class_="field")


def render_links(
    links: Sequence[ShareLink],
    now: float,
    made: tuple[str, ShareLink] | None = None,
    removed: ShareLink | None = None,
) -> str:
    """The list, from which scripts take the parts. made: a new link's address, and the link. removed: just taken back."""
    return document(
        "Share links",
        tag("h1", "Share links"),
        tag("div", _made(*made) if made is not None else None, _removed(removed), id="made-link"),
        tag("div", _list(links, now), id="share-links"),
    )


def _made(address: str, link: ShareLink) -> Markup:
    until = "works until you take it back" if link.expires is None else join("ends on ", time_mark(link.expires))
    words = join("This link ", until, ". It is shown only now: copy it.")
    code = qr_code(address, "QR code of the link that ends")
    return tag("div", notice("good", tag("p", words)), code, copy_field("Link that ends", address))


def _removed(link: ShareLink | None) -> Markup | None:
    if link is None:
        return None
    return notice("good", tag("p", "Taken back: ", tag("bdi", link.name), ". The link opens nothing any more."))


def _list(links: Sequence[ShareLink], now: float) -> Markup | None:
    if not links:
        return None
    return tag(
        "div", tag("h3", "Your share links"), tag("ul", [_row(link, now) for link in links], class_="given-links")
    )


def _row(link: ShareLink, now: float) -> Markup:
    label = f"name-{link.identifier}"
    take = tag(
        "button",
        "Take back",
        type="button",
        class_="small quiet",
        data_take_back=link.identifier,
        id=f"take-{link.identifier}",
        aria_labelledby=f"take-{link.identifier} {label}",
    )
    name = tag("bdi", link.name, id=label)
    return tag(
        "li",
        tag("div", icon("folder" if link.is_directory else "file"), name, take),
        tag("p", _state(link, now), class_="hint"),
    )


def _state(link: ShareLink, now: float) -> Markup:
    state: str
    match link.state(now):
        case "expired":
            state = "Expired"
        case "used up":
            state = "All downloads used"
        case _:
            state = "Never ends" if link.expires is None else join("Ends on ", time_mark(link.expires))
    most = "" if link.most_downloads is None else f" of {link.most_downloads}"
    protected = ", with a password" if link.password is not None else ""
    used = f", opened {counted(link.uses, 'time')}, {link.downloads}{most} downloads"
    return join(state, protected, "; made ", time_mark(link.created), used)
