"""What all handlers of a gateway share: the grid, settings, open files, and the blacklist.

Below everything that speaks HTTP; `grid.gateway.site` adds what single rooms keep between requests.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol

from twisted.logger import Logger

from grid.caps import DirectoryCap, KnownCap, LitCap
from grid.directory.file_store import FileStore
from grid.gateway.faults import Forbidden, Unauthorized
from grid.gateway.history.history import History
from grid.gateway.history.recorded_store import RecordedStore
from grid.gateway.history.undo_file import UndoFile
from grid.gateway.history.undo_journal import UndoJournal
from grid.gateway.shared.home import Home, OwnFiles
from grid.gateway.shared.node_view import ClientView, DoorView
from grid.gateway.shared.open_files import OpenFiles
from grid.gateway.shared.proxies import NO_PROXIES, TrustedProxies
from grid.gateway.shared.resumable_uploads import ResumableUploads
from grid.gateway.shared.share_links import LinkStore
from grid.gateway.shared.spool import SpoolFolder
from grid.gateway.shared.store_turns import Stores
from grid.gateway.shared.traffic import Traffic
from grid.values import define, field, frozen

_log = Logger()


@frozen
class AllowedHosts:
    """Names accepted in a Host header. names: lower case, IPv6 addresses in brackets.

    any_address: accept any IP address: DNS rebinding cannot send a browser to an address under which it loaded a page.
    public: the name for links that other machines open; "" if they cannot, or nobody knows how.
    """

    names: frozenset[str]
    any_address: bool = False
    public: str = ""

    def __contains__(self, name: str) -> bool:
        return name in self.names or (self.any_address and _is_address(name))


def _warn(text: str) -> None:
    _log.warn("{text}", text=text)


LOOPBACK_HOSTS = AllowedHosts(frozenset({"127.0.0.1", "localhost", "[::1]"}))


def _is_address(name: str) -> bool:
    bracketed = name.startswith("[")
    try:
        return (ip_address(name[1:-1] if bracketed else name).version == 6) == bracketed
    except ValueError:
        return False


@frozen(kw_only=True)
class GatewaySettings:
    """spools: private directory for uploads in progress. api_token: a fresh one for each start of the node.

    hosts: names accepted in a Host header, None for any. happy: servers that a put requires. drain_s: seconds that
    requests may still run when the gateway shuts down. own_files: of the client directory that the gateway belongs to.
    undo_file: where changes of directories are kept, None for memory. share_links: where they are kept, None for none.
    is_read_only: it only reads, except for browsers that `grid web` opened. proxies: those that are believed.
    """

    spools: SpoolFolder
    static_directory: Path
    api_token: bytes = field(repr=False)
    hosts: AllowedHosts | None = None
    happy: int = 7
    nickname: str = ""
    incidents_directory: Path | None = None
    undo_file: Path | None = None
    max_concurrent: int = 1000
    drain_s: float = 60.0
    own_files: OwnFiles | None = None
    share_links: LinkStore | None = None
    is_read_only: bool = False
    proxies: TrustedProxies = NO_PROXIES


class Blocks(Protocol):
    """Objects that must not be shown. [spec webapi 11]"""

    def reason(self, storage_index: bytes) -> str | None:
        """Why the object must not be shown, or None if it may."""


class _BlocksNothing:
    def reason(self, storage_index: bytes) -> str | None:
        return None


@define(kw_only=True, eq=False)
class Services:
    """What a gateway's handlers share. store: its grid, with a live list of servers."""

    _store: FileStore = field(alias="store")
    client: ClientView
    settings: GatewaySettings
    blocks: Blocks = field(factory=_BlocksNothing)
    store: RecordedStore = field(init=False)
    history: History = field(init=False)
    traffic: Traffic = field(init=False, factory=Traffic)
    s3_traffic: Traffic = field(init=False, factory=Traffic)
    sftp_traffic: Traffic = field(init=False, factory=Traffic)
    doors: list[DoorView] = field(init=False, factory=list)
    open_files: OpenFiles = field(init=False)
    stores: Stores = field(init=False, factory=Stores)
    home: Home = field(init=False)
    uploads: ResumableUploads = field(init=False)

    def __attrs_post_init__(self) -> None:
        runtime, path = self._store.runtime, self.settings.undo_file
        self.history = History(runtime.clock)
        self.home = Home(runtime.clock, runtime.entropy, self.settings.own_files)
        journal = UndoJournal(None if path is None else UndoFile(path, runtime.entropy.random_bytes, _warn))
        self.store = RecordedStore(self._store.restricted_by(self.require_allowed), self.history, journal)
        self.uploads = ResumableUploads(self.settings.spools, self._store.runtime)
        self.open_files = OpenFiles(self.store.grid, self.require_allowed)

    def require_allowed(self, cap: KnownCap) -> None:
        """Raise Forbidden if the object is on the blacklist."""
        body = cap.body if isinstance(cap, DirectoryCap) else cap
        if isinstance(body, LitCap) or body.storage_index is None:
            return
        reason = self.blocks.reason(body.storage_index)
        if reason is not None:
            raise Forbidden(f"Access Prohibited: {reason}")

    def is_allowed(self, cap: KnownCap) -> bool:
        """Whether the object may be shown."""
        try:
            self.require_allowed(cap)
        except Forbidden:
            return False
        return True

    def require_token(self, authorization: str | None) -> None:
        """Raise Unauthorized unless the Authorization header has the node's token. [spec webapi 9.6]"""
        scheme, _, token = (authorization or "").partition(" ")
        right = hmac.compare_digest(token.strip().encode("utf-8", "replace"), self.settings.api_token)
        if scheme.lower() != "tahoe-lafs" or not right:
            challenge = ("WWW-Authenticate", 'tahoe-lafs realm="tahoe-lafs"')
            raise Unauthorized("Unauthorized", headers=(challenge,))
