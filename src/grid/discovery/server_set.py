"""The live set of storage servers: those in the static file, and those that introducers announce.

A known server stays in the set; only a request shows whether it answers. No announcement overrides an entry of the
static file. [spec wire 9, 10] Servers announced at one address count as one,
so that nobody can make one machine count as several. [decision 0313]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from twisted.logger import Logger

from grid.crypto.ed25519 import VerifyingKey
from grid.discovery.announcement import (
    STORAGE_SERVICE,
    Address,
    Announcement,
    address_of,
    identify,
    merge_addresses,
    replaces,
    storage_furl,
)
from grid.discovery.grid_manager import permit_expires
from grid.errors import FormatError
from grid.limits import MAX_ANNOUNCEMENTS, MAX_LOCATION_HINTS
from grid.ports import Clock, ServerId, ServerIdentity, StorageServer
from grid.values import define, frozen
from grid.wire.http.format.announced import NURLS_FIELD, PLAIN_FIELD
from grid.wire.status import ConnectionStatus, RemoteServer

log = Logger()

MakeServer = Callable[[ServerIdentity, Announcement], RemoteServer]
"""Makes the client of an announced server, over a transport of its choice; FormatError if it cannot."""


@frozen(kw_only=True)
class ServerEntry:
    """One announced server, for display. counts_as: the server that it counts as; another one, if that is at its address.

    is_recalled: no introducer lists it now, so it serves reads only.
    """

    identity: ServerIdentity
    announcement: Announcement
    is_static: bool
    status: ConnectionStatus
    counts_as: ServerId
    is_recalled: bool = False

    @property
    def is_counted(self) -> bool:
        """Whether it counts under its own id."""
        return self.counts_as == self.identity.server_id

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where it says that it can be reached, as location hints (`tcp:host:port`)."""
        return storage_furl(self.announcement).hints

    @property
    def is_vouched_for(self) -> bool:
        """Whether the static file names it or an introducer has announced it in this process: it is not only cached."""
        return self.is_static or self.announcement.signed is not None


@define
class _Known:
    announcement: Announcement
    identity: ServerIdentity
    is_static: bool
    is_recalled: bool = False

    @property
    def rank(self) -> tuple[bool, bool]:
        """Rank among servers with the same address: the static file's first, then those with upload permits."""
        return self.is_static, self.identity.upload_permit_expires > -inf


@define
class _Machine:
    """The servers announced at one address. leader: the one that counts; the first of the highest rank."""

    members: dict[ServerId, _Known]
    leader: _Known
    server: RemoteServer


class ServerSet:
    """All known storage servers, each with one client, whatever names announce it."""

    def __init__(
        self,
        make_server: MakeServer,
        clock: Clock,
        manager_keys: Sequence[VerifyingKey] = (),
        on_return: Callable[[ServerId], None] = lambda _: None,
    ) -> None:
        """manager_keys: of the grid managers whose certificates permit uploads; none permit all.
        on_return: called for known servers that are announced again, because they have just started.
        """
        self._make_server = make_server
        self._clock = clock
        self._manager_keys = tuple(manager_keys)
        self._known: dict[ServerId, _Known] = {}
        self._machines: dict[Address, _Machine] = {}
        self._on_return = on_return

    @property
    def servers(self) -> list[StorageServer]:
        """All servers, connected or not."""
        return [machine.server for machine in self._machines.values()]

    def find(self, server_id: ServerId) -> StorageServer | None:
        """The client of that server, or None."""
        known = self._known.get(server_id)
        return None if known is None else self._machine_of(known).server

    @property
    def entries(self) -> list[ServerEntry]:
        """All announced servers, with their states."""
        return [self._entry(known) for known in self._known.values()]

    def _entry(self, known: _Known) -> ServerEntry:
        machine = self._machine_of(known)
        return ServerEntry(
            identity=known.identity,
            announcement=known.announcement,
            is_static=known.is_static,
            status=machine.server.status,
            counts_as=machine.leader.identity.server_id,
            is_recalled=known.is_recalled,
        )

    def _machine_of(self, known: _Known) -> _Machine:
        return self._machines[address_of(known.announcement)]

    def add_static(self, announcement: Announcement) -> None:
        """Add a server of the static file; FormatError if it is unusable."""
        self._put(announcement, is_static=True)

    def announced(self, announcement: Announcement) -> None:
        """Add or update a server from an announcement that an introducer client has accepted."""
        known = self._known.get(announcement.server_id)
        if announcement.service_name != STORAGE_SERVICE or (known is None and len(self._known) >= MAX_ANNOUNCEMENTS):
            return
        if (
            known is None
            or known.is_recalled
            or (not known.is_static and _supersedes(announcement, known.announcement))
        ):
            self._try_to_put(announcement)

    def recalled(self, announcement: Announcement) -> None:
        """Add a server that an introducer listed earlier and does not list now: it serves reads until it is announced."""
        is_new = announcement.server_id not in self._known and len(self._known) < MAX_ANNOUNCEMENTS
        if is_new and announcement.service_name == STORAGE_SERVICE:
            self._try_to_put(announcement, is_recalled=True)

    def _try_to_put(self, announcement: Announcement, *, is_recalled: bool = False) -> None:
        try:
            self._put(announcement, is_static=False, is_recalled=is_recalled)
        except FormatError as error:
            log.info("server {id} cannot be used: {error}", id=announcement.server_id, error=error)

    def close(self) -> None:
        """Close all connections."""
        for machine in self._machines.values():
            machine.server.close()

    def _put(self, announcement: Announcement, *, is_static: bool, is_recalled: bool = False) -> None:
        certificates = announcement.fields.get("grid-manager-certificates")
        expires = permit_expires(certificates, announcement.server_id, self._manager_keys)
        identity = identify(announcement, -inf if is_recalled else expires)
        new = _Known(announcement, identity, is_static, is_recalled)
        known = self._known.get(announcement.server_id)
        if known is not None and known.identity == new.identity and _same_place(known.announcement, announcement):
            is_news = announcement.seqnum != known.announcement.seqnum
            known.announcement, known.is_static, known.is_recalled = announcement, is_static, is_recalled
            if is_news:
                machine = self._machine_of(known)
                machine.server.forget_failures()
                self._on_return(machine.leader.identity.server_id)
            return
        # The old client stays with its current users; both may share one connection.
        self._join(new)
        if known is not None:
            self._leave(known, new)
            self._on_return(self._machine_of(new).leader.identity.server_id)
        self._known[announcement.server_id] = new

    def _join(self, new: _Known) -> None:
        """Add it to the servers at its address. FormatError if no client can be made."""
        server_id, address = new.identity.server_id, address_of(new.announcement)
        machine = self._machines.get(address)
        if machine is None:
            server = self._make_server(new.identity, new.announcement)
            self._machines[address] = _Machine({server_id: new}, new, server)
            return
        members = {**machine.members, server_id: new}
        if server_id not in machine.members:
            log.warn(
                "{id} is announced at the address of {other}: they are one server, and count as one",
                id=server_id,
                other=machine.leader.identity.server_id,
            )
            if len(members) > MAX_LOCATION_HINTS and new.rank <= machine.leader.rank:
                machine.members = members
                return
        self._machines[address] = self._machine(members)

    def _leave(self, old: _Known, new: _Known) -> None:
        """Remove it from its old address, because it has moved."""
        address = address_of(old.announcement)
        if address == address_of(new.announcement):
            return
        members = self._machines[address].members
        del members[old.identity.server_id]
        if members:
            self._machines[address] = self._machine(members)
        else:
            del self._machines[address]

    def _machine(self, members: dict[ServerId, _Known]) -> _Machine:
        rank = max(each.rank for each in members.values())
        heard = [each for each in members.values() if each.rank == rank]
        announcement = merge_addresses([each.announcement for each in heard[:MAX_LOCATION_HINTS]])
        return _Machine(members, heard[0], self._make_server(heard[0].identity, announcement))


def _supersedes(new: Announcement, kept: Announcement) -> bool:
    """Like `replaces`; in addition, a cached announcement gives way to any other of the same signer."""
    if kept.signed is None and new.signed is not None:
        return True
    return replaces(new, kept)


def _same_place(one: Announcement, other: Announcement) -> bool:
    def place(announcement: Announcement) -> tuple[str, Any, Any]:
        fields = announcement.fields
        return storage_furl(announcement).to_string(), fields.get(NURLS_FIELD), fields.get(PLAIN_FIELD)

    return place(one) == place(other)
