"""The page that helps to share a file or directory: a link, a capability, and what its recipient can do. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from grid.caps import DirectoryCap, KnownCap
from grid.gateway.pages.file_cards import copy_field
from grid.gateway.pages.links import file_path, named_directory
from grid.gateway.pages.markup import Markup, join, tag
from grid.gateway.pages.qr_codes import qr_code
from grid.gateway.pages.share_links import ending_card
from grid.gateway.pages.shell import card, document, notice
from grid.values import field, frozen


@frozen(kw_only=True)
class Sharing:
    """What is shared. cap: not a verify capability. origin: the gateway's scheme and host. back: the object's page.

    public: the gateway's name for other machines, "" if unknown. is_visit: see `document`. can_end: whether the page offers
    links that end.
    """

    cap: KnownCap = field(repr=False)
    name: str
    origin: str
    public: str = ""
    back: str = field(repr=False)
    is_visit: bool = False
    can_end: bool = False

    @property
    def thing(self) -> str:
        """What it is."""
        return "directory" if isinstance(self.cap, DirectoryCap) else "file"

    @property
    def read_cap(self) -> str:
        """The capability that its receiver gets."""
        return self.cap.read_cap().to_string()

    @property
    def link(self) -> str:
        """The address on this gateway. It contains no more than the read capability."""
        if isinstance(self.cap, DirectoryCap):
            return self.base + named_directory(self.read_cap, self.name)
        return self.base + file_path(self.read_cap, self.name)

    @property
    def base(self) -> str:
        """The gateway's scheme and host for other machines, as far as known."""
        return base_for_others(self.origin, self.public)


def base_for_others(origin: str, public: str) -> str:
    """The scheme and host with which links begin. origin: those by which the client reached the gateway.

    public: the gateway's name for other machines, "" if unknown.
    """
    parts = urlsplit(origin)
    if not public or not _is_loopback(parts.hostname or ""):
        return origin
    return f"{parts.scheme}://{public}{f':{parts.port}' if parts.port else ''}"


def render_sharing(view: Sharing) -> str:
    """Render the page, which scripts show as a dialog."""
    title = f"Share {view.name or f'this {view.thing}'}"
    return document(
        title,
        tag("h1", "Share ", tag("bdi", view.name or f"this {view.thing}")),
        card("Link", _reach(view), _code(view.link, "link"), copy_field("Link", view.link), id="share-link"),
        ending_card(view.read_cap, view.name) if view.can_end else None,
        card(
            "Capability",
            tag(
                "p",
                "For people with a gateway or client of their own: they open it on the Home page, or with ",
                _commands(view),
                ".",
            ),
            copy_field("Read capability", view.read_cap),
            tag("details", tag("summary", "QR code", class_="more"), _code(view.read_cap, "capability")),
            id="share-capability",
        ),
        card(
            "What the recipient can and cannot do",
            tag("ul", [tag("li", words) for words in _powers(view)]),
            id="share-powers",
        ),
        tag("p", tag("a", "Close", href=view.back, class_="button quiet", data_close=True)),
        is_visit=view.is_visit,
    )


def _commands(view: Sharing) -> Markup:
    """The commands that open the capability."""
    if view.thing == "file":
        return tag("code", "grid get")
    return join(tag("code", "grid ls"), " and ", tag("code", "grid cp -r"))


def _code(text: str, what: str) -> Markup:
    found = qr_code(text, f"QR code of the {what}")
    return tag("p", "The name is too long for a QR code.", class_="hint") if found is None else found


def _reach(view: Sharing) -> Markup:
    """Who can open the link."""
    parts = urlsplit(view.base)
    if _is_loopback(parts.hostname or ""):
        words = (
            "This link works only on this computer: its address stands for “this computer”. Others need the "
            "capability, or a gateway they can reach; “Sharing” in the documentation explains how to set one up."
        )
        return notice("warn", tag("p", words))
    if parts.scheme != "https":
        words = (
            "Anyone who can reach this gateway can open the link. It is not encrypted in transit: others on the "
            "network can copy it."
        )
        return notice("warn", tag("p", words))
    reach = "Anyone who can reach this gateway can open the link with a browser."
    if view.base == view.origin:
        return tag("p", reach)
    return tag(
        "p",
        f"{reach} If others reach this computer by a name other than {view.public}, put that name into the link, after ",
        tag("code", "grid config set node.web.allowed_hosts NAME"),
        " and a restart of the gateway. Its IP address works without that.",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _powers(view: Sharing) -> list[str | Markup]:
    below = ", and everything below it, now and later" if view.thing == "directory" and view.cap.is_mutable else ""
    if view.thing == "directory" and not view.cap.is_mutable:
        below = ", and everything below it"
    found: list[str | Markup] = [f"Read the {view.thing}{below}."]
    if view.cap.is_mutable:
        found.append(f"See later changes, but not make any. To let others change it, give them the capability “Read and write” on the page of the {view.thing}.")  # fmt: skip
    else:
        found.append("The contents never change.")
    words = "Pass it on to others. This link and this capability cannot be taken back."
    if view.is_visit:
        return [*found, words]
    where = "make one above, or with " if view.can_end else "make one with "
    return [*found, join(words, " A link that ends can: ", where, tag("code", "grid share"), ".")]
