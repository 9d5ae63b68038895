"""Who this gateway belongs to: browsers that `grid web` has opened, and what is shown to them alone. (decision 352)

Owns the sessions of those browsers and what they uploaded lately, in memory only. A session has two secrets: a cookie,
which no script can read, and a key, which scripts of this address keep and send in a header. Browsers send cookies to
every port of a machine, but keep what scripts store apart by port, so no other server gets both.
"""

from __future__ import annotations

import hmac
from collections import deque
from collections.abc import Sequence
from hashlib import sha256
from ipaddress import ip_address
from typing import Protocol

from grid.caps import DirectoryCap, KnownCap
from grid.codec import base32
from grid.ports import Clock, Entropy
from grid.values import field, frozen

MAX_SESSIONS = 16
"""Browsers known at once; the oldest are forgotten first."""

MAX_RECENT = 50
"""Uploads remembered."""

SESSION_S = 30 * 24 * 3600.0
"""Seconds after which a browser is forgotten."""

KEY_HEADER = "X-Grid-Home"

_SECRET_SIZE = 32
_LONGEST_SECRET = 200
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

Alias = tuple[str, DirectoryCap]


class OwnFiles(Protocol):
    """What the gateway reads of its client directory. Calls block."""

    def handed_over(self, now: float) -> bytes | None:
        """The SHA-256 of the token that `grid web` has handed over and that no browser has used; None without one."""

    def take(self) -> bool:
        """Remove the token; whether it was still there."""

    def aliases(self) -> Sequence[Alias]:
        """The client's aliases that name directories, sorted."""


class RequestHeaders(Protocol):
    """The headers of a request."""

    def get(self, name: str) -> str | None:
        """A header's value."""


@frozen(kw_only=True)
class Keys:
    """The secrets of a new session."""

    cookie: str = field(repr=False)
    key: str = field(repr=False)


@frozen(kw_only=True)
class RecentUpload:
    """An upload of a known browser. time: Unix time."""

    name: str
    cap: KnownCap = field(repr=False)
    size: int
    time: float


@frozen(kw_only=True)
class _Session:
    cookie: bytes = field(repr=False)
    key: bytes = field(repr=False)
    ends_at: float


class Home:
    """The sessions of one gateway. files: None if it belongs to no client directory, so that nobody can enter."""

    def __init__(self, clock: Clock, entropy: Entropy, files: OwnFiles | None) -> None:
        self._clock = clock
        self._entropy = entropy
        self.files = files
        self._sessions: deque[_Session] = deque(maxlen=MAX_SESSIONS)
        self._recent: deque[RecentUpload] = deque(maxlen=MAX_RECENT)
        self._names: dict[str, str] = {}

    def enter(self, token: str) -> Keys | None:
        """Exchange the token that `grid web` has handed over; None if it is wrong, used or too old. Blocks."""
        if self.files is None or len(token) > _LONGEST_SECRET:
            return None
        expected = self.files.handed_over(self._clock.unix_time())
        if expected is None or not hmac.compare_digest(_digest(token), expected) or not self.files.take():
            return None
        keys = Keys(cookie=self._secret(), key=self._secret())
        ends_at = self._clock.now() + SESSION_S
        self._sessions.append(_Session(cookie=_digest(keys.cookie), key=_digest(keys.key), ends_at=ends_at))
        return keys

    def knows(self, headers: RequestHeaders) -> bool:
        """Whether the request comes from a known browser. That alone shows no capability: see `admits`."""
        return self._session(headers) is not None

    def admits(self, headers: RequestHeaders) -> bool:
        """Whether a script of this gateway's own pages asks, in a known browser."""
        session, key = self._session(headers), headers.get(KEY_HEADER) or ""
        return session is not None and hmac.compare_digest(_digest(key[:_LONGEST_SECRET]), session.key)

    def leave(self, headers: RequestHeaders) -> None:
        """Forget the browser; with the last one, also what was uploaded."""
        session = self._session(headers)
        if session is not None:
            self._sessions.remove(session)
        if not self._sessions:
            self._recent.clear()

    def note_upload(self, headers: RequestHeaders, name: str, cap: KnownCap, size: int) -> None:
        """Remember an upload if it comes from a known browser."""
        if self.knows(headers):
            self._recent.append(RecentUpload(name=name, cap=cap, size=size, time=self._clock.unix_time()))

    @property
    def recent(self) -> list[RecentUpload]:
        """Uploads of known browsers, the newest first."""
        return list(reversed(self._recent))

    def aliases(self) -> Sequence[Alias]:
        """The aliases, read anew. Blocks."""
        found = () if self.files is None else self.files.aliases()
        self._names = {base32.encode(cap.storage_index): f"{name}:" for name, cap in found if cap.storage_index}
        return found

    def alias_of(self, storage_index: str) -> str | None:
        """The alias of the directory with this storage index in base32, as `aliases` found it last."""
        return self._names.get(storage_index)

    def _session(self, headers: RequestHeaders) -> _Session | None:
        cookie = _cookie_in(headers) if self._sessions else None
        if cookie is None:
            return None
        now, wanted, found = self._clock.now(), _digest(cookie), None
        for session in self._sessions:
            if hmac.compare_digest(wanted, session.cookie) and now < session.ends_at:
                found = session
        return found

    def _secret(self) -> str:
        return self._entropy.random_bytes(_SECRET_SIZE).hex()


def cookie_name(headers: RequestHeaders) -> str:
    """The name of the cookie, which differs between gateways on one machine."""
    port = (headers.get("host") or "").rpartition(":")[2]
    return f"grid-home-{port}" if port.isascii() and port.isdigit() and len(port) < 6 else "grid-home"


def is_local(peer: str, headers: RequestHeaders) -> bool:
    """Whether a request was made on this machine, to a name of this machine, and was not forwarded by a proxy."""
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    host = (headers.get("host") or "").lower()
    name = host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    is_forwarded = any(headers.get(each) is not None for each in _FORWARDED)
    return address.is_loopback and name in _LOCAL_NAMES and not is_forwarded


def _cookie_in(headers: RequestHeaders) -> str | None:
    wanted = cookie_name(headers)
    for part in (headers.get("cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted and len(value) <= _LONGEST_SECRET:
            return value
    return None


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()
