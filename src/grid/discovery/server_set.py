"""The live set of storage servers: those that a file names, and those that introducers announce.

A server stays in the set once it is known: whether it answers is found out by asking it. An entry of the
static file is never overridden by an announcement. [spec wire 9, 10]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, frozen
from twisted.logger import Logger

from grid.crypto.ed25519 import VerifyingKey
from grid.discovery.announcement import STORAGE_SERVICE, Announcement, identify, replaces, storage_furl
from grid.discovery.grid_manager import permit_expires
from grid.errors import FormatError
from grid.limits import MAX_ANNOUNCEMENTS
from grid.ports import Clock, ServerId, ServerIdentity, StorageServer
from grid.wire.http.format.announced import NURLS_FIELD, PLAIN_FIELD
from grid.wire.status import ConnectionStatus, RemoteServer

log = Logger()

MakeServer = Callable[[ServerIdentity, Announcement], RemoteServer]
"""Makes the client of an announced server, by whatever transport it chooses; FormatError if it cannot."""


@frozen(kw_only=True)
class ServerEntry:
    """One known server, for those who show it."""

    identity: ServerIdentity
    announcement: Announcement
    is_static: bool
    status: ConnectionStatus

    @property
    def is_vouched_for(self) -> bool:
        """Whether the static file names it or an introducer has announced it now: it is not just remembered."""
        return self.is_static or self.announcement.signed is not None


@define
class _Known:
    announcement: Announcement
    server: RemoteServer
    is_static: bool


class ServerSet:
    """All known storage servers, each with one client."""

    def __init__(
        self,
        make_server: MakeServer,
        clock: Clock,
        manager_keys: Sequence[VerifyingKey] = (),
        on_return: Callable[[ServerId], None] = lambda _: None,
    ) -> None:
        """manager_keys: of the grid managers whose certificates permit uploads; none permit all.

        on_return: called for known servers that announce themselves again: they have just started.
        """
        self._make_server = make_server
        self._clock = clock
        self._manager_keys = tuple(manager_keys)
        self._known: dict[ServerId, _Known] = {}
        self._on_return = on_return

    @property
    def servers(self) -> list[StorageServer]:
        """All of them, connected or not."""
        return [known.server for known in self._known.values()]

    def find(self, server_id: ServerId) -> StorageServer | None:
        """The client of that server, if it is known."""
        known = self._known.get(server_id)
        return None if known is None else known.server

    @property
    def entries(self) -> list[ServerEntry]:
        """All of them, with how they stand."""
        return [
            ServerEntry(
                identity=known.server.identity,
                announcement=known.announcement,
                is_static=known.is_static,
                status=known.server.status,
            )
            for known in self._known.values()
        ]

    def add_static(self, announcement: Announcement) -> None:
        """Add a server of the static file; FormatError if it cannot be used."""
        self._put(announcement, is_static=True)

    def announced(self, announcement: Announcement) -> None:
        """Take in an announcement that an introducer client has accepted."""
        known = self._known.get(announcement.server_id)
        if announcement.service_name != STORAGE_SERVICE or (known is None and len(self._known) >= MAX_ANNOUNCEMENTS):
            return
        if known is not None and (known.is_static or not _supersedes(announcement, known.announcement)):
            return
        try:
            self._put(announcement, is_static=False)
        except FormatError as error:
            log.info("server {id} cannot be used: {error}", id=announcement.server_id, error=error)

    def close(self) -> None:
        """Give up all connections."""
        for known in self._known.values():
            known.server.close()

    def _put(self, announcement: Announcement, *, is_static: bool) -> None:
        expires = permit_expires(
            announcement.fields.get("grid-manager-certificates"), announcement.server_id, self._manager_keys
        )
        identity = identify(announcement, expires)
        known = self._known.get(announcement.server_id)
        if known is not None and known.server.identity == identity and _same_place(known.announcement, announcement):
            is_news = announcement.seqnum != known.announcement.seqnum
            known.announcement, known.is_static = announcement, is_static
            if is_news:
                known.server.forget_failures()
                self._on_return(announcement.server_id)
            return
        # The old client stays with those who still use it: both may share one connection.
        server = self._make_server(identity, announcement)
        self._known[announcement.server_id] = _Known(announcement, server, is_static)
        if known is not None:
            self._on_return(announcement.server_id)


def _supersedes(new: Announcement, kept: Announcement) -> bool:
    """As between announcements; what came from a cache gives way to whatever else a signer says."""
    if kept.signed is None and new.signed is not None:
        return True
    return replaces(new, kept)


def _same_place(one: Announcement, other: Announcement) -> bool:
    def place(announcement: Announcement) -> tuple[str, Any, Any]:
        fields = announcement.fields
        return storage_furl(announcement).to_string(), fields.get(NURLS_FIELD), fields.get(PLAIN_FIELD)

    return place(one) == place(other)
