"""What all handlers share: the grid, the settings, and who may be shown what."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from attrs import define, field, frozen

from grid.caps import DirectoryCap, KnownCap, LitCap
from grid.directory.file_store import FileStore
from grid.gateway.faults import Forbidden, Unauthorized
from grid.gateway.files.open_files import OpenFiles
from grid.gateway.files.uploads import Stores
from grid.gateway.history.history import History
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.guards import AllowedHosts
from grid.gateway.http.spool import SpoolFolder
from grid.gateway.http.traffic import Traffic
from grid.gateway.monitoring.event_stream import EventStreams
from grid.gateway.monitoring.log_stream import LogStreams
from grid.gateway.monitoring.statistics import Statistics
from grid.gateway.monitoring.storage_status import StorageView
from grid.gateway.pages.server_view import ServerView
from grid.gateway.tree.operations import Operations
from grid.gateway.tree.recorded_store import RecordedStore


@frozen(kw_only=True)
class GatewaySettings:
    """spools: where uploads are kept while they are; private. api_token: of this start of the node.

    hosts: what a Host header may have, None for anything. happy: servers that a put takes. drain_s: how long requests
    under way may go on when the gateway ends.
    """

    spools: SpoolFolder
    static_directory: Path
    api_token: bytes = field(repr=False)
    hosts: AllowedHosts | None = None
    happy: int = 7
    nickname: str = ""
    incidents_directory: Path | None = None
    max_concurrent: int = 1000
    drain_s: float = 60.0


class ClientView(Protocol):
    """What the gateway shows of its node."""

    def servers(self) -> Sequence[ServerView]:
        """All servers known, connected or not."""

    def introducers(self) -> Sequence[str]:
        """The state of the connection to each introducer, one line each."""


class Blocks(Protocol):
    """What may not be shown. [spec webapi 11]"""

    def reason(self, storage_index: bytes) -> str | None:
        """Why the object must not be shown; None if it may."""


class _BlocksNothing:
    def reason(self, storage_index: bytes) -> str | None:
        return None


@define(kw_only=True, eq=False)
class Gateway:
    """One gateway. store: its grid, whose list of servers is live."""

    store: FileStore
    client: ClientView
    settings: GatewaySettings
    blocks: Blocks = field(factory=_BlocksNothing)
    storage: StorageView | None = None
    history: History = field(init=False)
    operations: Operations = field(init=False)
    statistics: Statistics = field(init=False)
    streams: EventStreams = field(init=False)
    logs: LogStreams = field(init=False, factory=LogStreams)
    traffic: Traffic = field(init=False, factory=Traffic)
    open_files: OpenFiles = field(init=False)
    stores: Stores = field(init=False, factory=Stores)

    def __attrs_post_init__(self) -> None:
        clock = self.store.runtime.clock
        self.history = History(clock)
        self.operations = Operations(clock)
        self.statistics = Statistics(clock, self.history.counters)
        self.streams = EventStreams(self.history, clock)
        self.store = RecordedStore.over(self.store, self.history).restricted_by(self.require_allowed)
        self.open_files = OpenFiles(self.store.servers, self.store.runtime)

    def end_streams(self) -> None:
        """Let go of those who only follow, who would never end by themselves."""
        self.operations.close()
        self.streams.close()
        self.logs.close()

    def require_allowed(self, cap: KnownCap) -> None:
        """Forbidden if the object is on the list of those that may not be shown."""
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

    def require_token(self, exchange: Exchange) -> None:
        """Unauthorized unless the request has the node's token. [spec webapi 9.6]"""
        scheme, _, token = (exchange.headers.get("authorization") or "").partition(" ")
        right = hmac.compare_digest(token.strip().encode("utf-8", "replace"), self.settings.api_token)
        if scheme.lower() != "tahoe-lafs" or not right:
            challenge = ("WWW-Authenticate", 'tahoe-lafs realm="tahoe-lafs"')
            raise Unauthorized("Unauthorized", headers=(challenge,))
