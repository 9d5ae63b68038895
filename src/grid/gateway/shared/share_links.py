"""Share links: what each opens, until when and how often; and the text of the file that keeps them. (decision 460)

A link's address ends with a token of 192 random bits. Only the SHA-256 of the token is kept, so the file opens no link to
its reader; but it contains read capabilities, and is private to its owner. Nothing here is logged.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal, Protocol

from grid.caps import DirectoryCap, KnownCap, UnknownCap, parse_cap
from grid.errors import CapError, ConfigError, GridError, NoSuchChildError
from grid.gateway.shared.passwords import PasswordHash
from grid.values import field, frozen

MAX_LINKS = 1000
"""Links kept, with those that ended lately."""

MAX_NAME = 255
"""Characters of a link's name."""

KEPT_S = 30 * 86400
"""Seconds that a link stays in the list after it ended."""

DEFAULT_S = 7 * 86400
"""Seconds after which a link ends, if nobody says otherwise."""

MOST_S = 100 * 365 * 86400
MOST_DOWNLOADS = 10**9

_TOKEN_SIZE = 24
_LONGEST_TOKEN = 200
_ID_DIGITS = 10
_LIFETIME = re.compile(r"([0-9]{1,9})\s*(m|h|d|w)", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_UNIT_S = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

State = Literal["open", "expired", "used up"]


@frozen(kw_only=True)
class ShareLink:
    """One link. digest: of its token. cap: can only read. created, expires: Unix times. uses: pages and files opened.

    downloads: files and archives begun, at most `most_downloads`. has_expired: somebody found it expired, which counts
    whatever the clock says later.
    """

    digest: bytes = field(repr=False)
    cap: KnownCap = field(repr=False)
    name: str
    created: int
    expires: int | None = None
    most_downloads: int | None = None
    password: PasswordHash | None = field(default=None, repr=False)
    downloads: int = 0
    uses: int = 0
    has_expired: bool = False

    @property
    def identifier(self) -> str:
        """What names the link in lists. It opens nothing."""
        return self.digest.hex()[:_ID_DIGITS]

    @property
    def is_directory(self) -> bool:
        """Whether it opens a directory."""
        return isinstance(self.cap, DirectoryCap)

    def state(self, now: float) -> State:
        """Whether it can be opened at this Unix time."""
        if self.has_expired or (self.expires is not None and now >= self.expires):
            return "expired"
        is_used_up = self.most_downloads is not None and self.downloads >= self.most_downloads
        return "used up" if is_used_up else "open"


class LinkStore(Protocol):
    """Where links are kept. Calls block. ConfigError if the links cannot be read; OSError."""

    def read(self) -> Sequence[ShareLink]:
        """All links, as they are now."""

    def changing(self) -> AbstractContextManager[dict[bytes, ShareLink]]:
        """Lock the links, by digest, and store durably what the block made of them."""


def new_token(random_bytes: Callable[[int], bytes]) -> str:
    """A new token, of characters that need no quoting in an address."""
    return urlsafe_b64encode(random_bytes(_TOKEN_SIZE)).decode("ascii")


def token_digest(token: str) -> bytes | None:
    """What is kept of a token; None for text that is too long to be one."""
    return sha256(token.encode("utf-8", "replace")).digest() if len(token) <= _LONGEST_TOKEN else None


def make_link(
    token: str,
    cap: KnownCap,
    name: str,
    now: float,
    *,
    expires: int | None,
    most_downloads: int | None = None,
    password: PasswordHash | None = None,
) -> ShareLink:
    """A new link to what the capability reads; GridError for a verify capability. expires: Unix time, None for never."""
    if cap.authority == "verify":
        raise GridError("a verify capability reads nothing, so it cannot be shared by a link")
    digest = token_digest(token)
    assert digest is not None
    return ShareLink(
        digest=digest,
        cap=cap.read_cap(),
        name=link_name(name, is_directory=isinstance(cap, DirectoryCap)),
        created=int(now),
        expires=expires,
        most_downloads=most_downloads,
        password=password,
    )


def link_name(name: str, *, is_directory: bool) -> str:
    """The name as one segment of an address and one line of a list."""
    shown = "".join("_" if character == "/" or not character.isprintable() else character for character in name)
    shown = shown.strip()[:MAX_NAME].rstrip()
    return shown if shown not in ("", ".", "..") else "directory" if is_directory else "file"


def add_link(links: dict[bytes, ShareLink], link: ShareLink, now: float) -> None:
    """Add a link, and drop those that ended long ago; ConfigError if there are too many."""
    for each in [each for each in links.values() if each.expires is not None and now >= each.expires + KEPT_S]:
        del links[each.digest]
    links[link.digest] = link
    if len(links) > MAX_LINKS:
        raise ConfigError(f"there are {MAX_LINKS} share links already: take some back with `grid unshare`")


def find_link(links: Iterable[ShareLink], text: str) -> ShareLink:
    """The link with this identifier or name; NoSuchChildError, GridError if several have the name."""
    every = list(links)
    found = [link for link in every if link.identifier == text] or [link for link in every if link.name == text]
    if not found:
        raise NoSuchChildError(f"there is no share link {text}; `grid shares` lists them", name=text)
    if len(found) > 1:
        identifiers = ", ".join(link.identifier for link in found)
        raise GridError(f"{len(found)} share links have the name {text}: name one by its ID, {identifiers}")
    return found[0]


def parse_lifetime(text: str) -> int | None:
    """The seconds of `30m`, `12h`, `7d` or `2w`; None for `never`. ValueError, which says what was expected."""
    word = text.strip().lower()
    if word == "never":
        return None
    match = _LIFETIME.fullmatch(word)
    seconds = int(match[1]) * _UNIT_S[match[2]] if match else 0
    if not 0 < seconds <= MOST_S:
        raise ValueError("expected a time such as 12h, 7d or 4w, or never")
    return seconds


def parse_end(text: str, now: float) -> int | None:
    """The Unix time at which a link ends: after a time such as `12h`, with a day such as `2030-12-31` (UTC), or None for `never`.

    ValueError, which says what was expected.
    """
    word = text.strip()
    if _DAY.fullmatch(word) is None:
        try:
            lifetime_s = parse_lifetime(word)
        except ValueError:
            raise ValueError("expected a time such as 12h, 7d or 4w, a day such as 2030-12-31, or never") from None
        return None if lifetime_s is None else int(now) + lifetime_s
    try:
        ends = int(datetime.strptime(word, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) + _UNIT_S["d"]
    except ValueError:
        raise ValueError("expected a day of the calendar, such as 2030-12-31") from None
    if not now < ends <= now + MOST_S:
        raise ValueError("this day is over, or a hundred years away")
    return ends


def describe_link(link: ShareLink, now: float) -> dict[str, object]:
    """The link for programs, without anything that opens it."""
    return {
        "id": link.identifier,
        "name": link.name,
        "type": "directory" if link.is_directory else "file",
        "state": link.state(now).replace(" ", "-"),
        "created": link.created,
        "expires": link.expires,
        "uses": link.uses,
        "downloads": link.downloads,
        "most_downloads": link.most_downloads,
        "password": link.password is not None,
    }


def parse_links(text: str, file: str) -> list[ShareLink]:
    """Parse the file's text; ConfigError, which names the file and quotes nothing of it."""
    try:
        said = json.loads(text)
        if said["version"] != 1:
            raise ConfigError(f"{file}: made by a newer version of Grid; use that version")
        found = [_link(each) for each in said["links"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, CapError):
        raise ConfigError(
            f"{file}: not a file of share links; restore it, or remove it, which takes all share links back"
        ) from None
    return found


def pack_links(links: Iterable[ShareLink]) -> str:
    """The text of the file."""
    return json.dumps({"version": 1, "links": [_said(link) for link in links]}, indent=1) + "\n"


def _said(link: ShareLink) -> dict[str, object]:
    password = link.password
    return {
        "token_sha256": link.digest.hex(),
        "cap": link.cap.to_string(),
        "name": link.name,
        "created": link.created,
        "expires": link.expires,
        "most_downloads": link.most_downloads,
        "password": None
        if password is None
        else {
            "scrypt_cost": password.cost,
            "salt": b64encode(password.salt).decode("ascii"),
            "key": b64encode(password.key).decode("ascii"),
        },
        "downloads": link.downloads,
        "uses": link.uses,
        "has_expired": link.has_expired,
    }


def _link(said: Mapping[str, object]) -> ShareLink:
    digest, name = bytes.fromhex(_text(said["token_sha256"])), _text(said["name"])
    cap = parse_cap(_text(said["cap"]))
    # A link that could change something was not made here.
    if isinstance(cap, UnknownCap) or cap.authority != "read" or len(digest) != sha256().digest_size:
        raise ValueError
    if not isinstance(said["has_expired"], bool):
        raise ValueError
    return ShareLink(
        digest=digest,
        cap=cap,
        # What is printable differs between versions of Python.
        name=link_name(name, is_directory=isinstance(cap, DirectoryCap)),
        created=_count(said["created"]),
        expires=None if said["expires"] is None else _count(said["expires"]),
        most_downloads=None if said["most_downloads"] is None else _count(said["most_downloads"]),
        password=None if said["password"] is None else _password(said["password"]),
        downloads=_count(said["downloads"]),
        uses=_count(said["uses"]),
        has_expired=said["has_expired"],
    )


def _password(said: object) -> PasswordHash:
    if not isinstance(said, dict):
        raise ValueError
    salt, key = (b64decode(_text(said[name]), validate=True) for name in ("salt", "key"))
    return PasswordHash(salt=salt, key=key, cost=_count(said["scrypt_cost"]))


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError
    return value
