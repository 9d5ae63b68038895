"""What the list of pages is made of: a case for each state of a page or dialog, and what brings a browser there."""

from __future__ import annotations

import json
import secrets
import time
from base64 import b64decode
from collections.abc import Callable
from urllib.parse import unquote

from attrs import define, field, frozen

from grid.caps import DirectoryCap, KnownCap, LitCap, UnknownCap, parse_cap
from grid.codec.base32 import encode
from grid.gateway.shared.passwords import hash_password
from grid.gateway.shared.share_links import add_link, make_link, new_token
from grid.node.own_files import hand_over
from grid.node.share_file import ShareFile
from tests.browser.served import Served
from tests.browser.tabs import Tab
from tests.browser.visitor import GatewayClient

PICTURE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNgYGBgAAAABQABpfZFTgAAAABJRU5ErkJggg==")
MARKDOWN = b"# A title\n\n- one\n- *two*\n\n[a link](https://example.org/)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
LONG = f"{'long' * 30}.txt"
"""A name that fits on no phone."""

FILES = {
    "a.txt": b"the contents of a text, which is long enough to have shares of its own",
    "b.png": PICTURE,
    "c.md": MARKDOWN,
    LONG: b"the contents of a file with a long name, which is long enough to have shares of its own",
}


@define(eq=False)
class Scene:
    """A tab, and the gateway whose pages it shows."""

    tab: Tab
    served: Served
    client: GatewayClient = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.client = GatewayClient(self.served.address)

    def go(self, path: str, ready: str = "document.querySelector('main')") -> None:
        """Open a page of the gateway, and wait until this is true."""
        self.tab.go(self.served.address + path)
        self.tab.wait_for(ready)

    def directory(self) -> str:
        """A new directory with a few files and a directory; its path."""
        path = self.client.make_directory(FILES)
        self.client.ask("PUT", f"{path}sub?t=mkdir")
        return path

    def go_directory(self) -> str:
        """Open a new directory, whose scripts are ready; its path."""
        path = self.directory()
        self.go(path, READY)
        return path

    def press(self, part: str, words: str) -> None:
        """Press the last button or link with these words in a part of the page, once it is there."""
        found = (
            f"[...document.querySelectorAll('{part} :is(button, a, summary)')]"
            f".filter((e) => e.textContent.trim() === '{words}')"
        )
        self.tab.wait_for(f"{found}.length > 0")
        self.tab.run(f"{found}.at(-1).click()")

    def wait_for_heading(self, words: str, part: str = "dialog:last-of-type") -> None:
        """Wait until a heading begins with these words."""
        self.tab.wait_for(f"document.querySelector('{part} :is(h1, h2)')?.textContent.startsWith('{words}')")

    def give(self, selector: str, *names: str, text: str = "contents") -> None:
        """Put files into a field for files, as a person does who chooses them."""
        made = ", ".join(f"new File(['{text} of {name}'], '{name}', {{lastModified: 1}})" for name in names)
        self.tab.run(
            f"(() => {{ const field = document.querySelector('{selector}'), all = new DataTransfer();"
            f" for (const each of [{made}]) all.items.add(each); field.files = all.files;"
            " field.dispatchEvent(new Event('change', { bubbles: true })); })()"
        )

    def send(self, path: str, ready: str, **fields: str) -> None:
        """Send a form as browsers do without scripts, and wait until the page that it leads to has this heading."""
        self.tab.run(
            "(() => { const form = document.createElement('form'); form.method = 'post';"
            f" form.action = {json.dumps(path)}; form.enctype = 'multipart/form-data';"
            f" for (const [name, value] of Object.entries({json.dumps(fields)})) {{"
            " const field = document.createElement('input'); field.type = 'hidden';"
            " field.name = name; field.value = value; form.append(field); }"
            " document.body.append(form); form.submit(); })()"
        )
        self.wait_for_heading(ready, "main")

    def enter(self) -> None:
        """Let `grid web` open the first page."""
        self.go(f"/#own={hand_over(self.served.folder, time.time())}", "document.querySelector('#own #aliases')")

    def link_to(self, path: str, name: str, password: str = "", most_downloads: int | None = None) -> str:
        """The path of a new share link to what is at a path of the gateway."""
        cap, file, now = cap_in(path), ShareFile(self.served.folder), time.time()
        token, secret = new_token(secrets.token_bytes), hash_password(password, bytes(16)) if password else None
        with file.changing() as links:
            expires = int(now) + 86400
            link = make_link(token, cap, name, now, expires=expires, most_downloads=most_downloads, password=secret)
            add_link(links, link, now)
        return f"/s/{token}/"

    def block(self, path: str, reason: str) -> None:
        """Block what is at a path of the gateway, and nothing else."""
        cap = cap_in(path)
        body = cap.body if isinstance(cap, DirectoryCap) else cap
        assert not isinstance(body, LitCap)
        index = body.storage_index
        assert index is not None
        (self.served.folder / "access.blacklist").write_text(f"{encode(index)} {reason}\n")


def cap_in(path: str) -> KnownCap:
    """The capability with which a path of the gateway begins."""
    found = parse_cap(unquote(path.split("/")[2].partition("?")[0]))
    assert not isinstance(found, UnknownCap)
    return found


def cap_text(path: str) -> str:
    """The same as text."""
    return cap_in(path).to_string()


DONE = "document.querySelector('main h1')"
DROP = "document.querySelector('#drop:not([hidden])')"
READY = "document.querySelector('form.selection')?.hidden && !document.querySelector('form.selection[data-early]')"
"""A directory whose scripts have run."""


@frozen(kw_only=True)
class Shown:
    """A state of a page, or of a dialog over one.

    renders: the functions that render it, as `serving.note_pages` names them. dialog: the script that opens the dialog,
    without `.js`; "" for a page.
    """

    name: str
    renders: tuple[str, ...]
    dialog: str
    show: Callable[[Scene], None]


SHOWN: list[Shown] = []
"""All pages and dialogs."""


def shown(*renders: str, dialog: str = "") -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    """Put a function that brings a browser to a page into the list. For the arguments see Shown."""

    def add(show: Callable[[Scene], None]) -> Callable[[Scene], None]:
        SHOWN.append(Shown(name=show.__name__.removeprefix("show_"), renders=renders, dialog=dialog, show=show))
        return show

    return add
