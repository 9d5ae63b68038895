"""Makes clients for announced servers, over Foolscap or HTTP as their announcements and the user allow.

A transport's modules are imported, and its local end is opened, when the first server needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from grid.discovery.announcement import Announcement, storage_furl
from grid.discovery.server_set import MakeServer
from grid.engine.server_memory import ServerMemory
from grid.ports import Runtime, ServerIdentity
from grid.values import frozen
from grid.wire.status import RemoteServer

Transport = Literal["auto", "foolscap", "http"]
"""`http`: for every server that announces it, Foolscap for the others. `auto`: see prefers_http, with a fallback to the other."""

OUR_VERSIONS = "grid/"
"""Prefix of the `my-version` of servers with batched calls."""


@frozen(kw_only=True)
class Transports:
    """The local ends for clients. tub, pool: return the process's only Tub and its only HTTP connection pool.

    plaintext_reads: read unencrypted, visible to any listener, if servers offer it.
    """

    tub: Callable[[], Any]
    pool: Callable[[], Any]
    runtime: Runtime
    memory: ServerMemory
    choice: Transport = "auto"
    plaintext_reads: bool = False

    def server_maker(self) -> MakeServer:
        """A function that makes the client of an announced server; FormatError if the announcement has no usable address."""
        return self._make

    def _make(self, identity: ServerIdentity, announcement: Announcement) -> RemoteServer:
        furl = storage_furl(announcement)
        memory, clock = self.memory, self.runtime.clock

        def note_quiet(since: float) -> None:
            memory.unreached(identity.server_id, since, clock.now())

        def by_foolscap() -> RemoteServer:
            from grid.wire.foolscap.client.server import FoolscapServer

            return FoolscapServer(identity, furl, self.tub(), clock, on_quiet=note_quiet)

        if self.choice == "foolscap":
            return by_foolscap()
        from grid.wire.http.format.announced import announced_nurls, announced_plain, tcp_addresses

        nurls = announced_nurls(announcement.fields)
        plain = announced_plain(announcement.fields) if self.plaintext_reads else None
        if not nurls:
            return by_foolscap()

        def over_http() -> RemoteServer:
            from grid.wire.http.client.server import HttpServer

            return HttpServer(identity, nurls, self.pool(), self.runtime, plain, note_quiet)

        if self.choice == "http":
            return over_http()
        from grid.wire.two_ways.fallback import FallbackServer, Way

        http = Way(name="HTTP", make=over_http, addresses=frozenset((nurl.host, nurl.port) for nurl in nurls))
        foolscap = Way(name="Foolscap", make=by_foolscap, addresses=tcp_addresses(furl))
        if plain is not None or prefers_http(announcement):
            return FallbackServer(identity, http, foolscap, clock)
        return FallbackServer(identity, foolscap, http, clock)


def prefers_http(announcement: Announcement) -> bool:
    """Whether HTTP is faster for a server that offers both. [docs/decisions/0021-transport-choice.md]"""
    version = announcement.fields.get("my-version")
    return isinstance(version, str) and version.startswith(OUR_VERSIONS)
