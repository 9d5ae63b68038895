"""How announced servers become clients: by Foolscap or over HTTP, whichever their announcement and the user allow.

A transport's modules are imported, and its end opened, when the first server needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from attrs import frozen

from grid.discovery.announcement import Announcement, storage_furl
from grid.discovery.server_set import MakeServer
from grid.ports import Runtime, ServerIdentity
from grid.wire.locators import Nurl
from grid.wire.status import RemoteServer

Transport = Literal["auto", "foolscap", "http"]
"""`http`: for every server that announces it, Foolscap for the others. `auto`: see prefers_http."""

OUR_VERSIONS = "grid/"
"""How the `my-version` of servers with batched calls begins."""


@frozen(kw_only=True)
class Transports:
    """The ends that clients are made with. tub, pool: give the process's one Tub, and its one HTTP connection pool.

    plaintext_reads: read in the clear, which all who listen can see, where servers offer it.
    """

    tub: Callable[[], Any]
    pool: Callable[[], Any]
    runtime: Runtime
    choice: Transport = "auto"
    plaintext_reads: bool = False

    def server_maker(self) -> MakeServer:
        """Makes the client of each announced server; FormatError if the announcement has no address for it."""
        return self._make

    def _make(self, identity: ServerIdentity, announcement: Announcement) -> RemoteServer:
        if self.choice != "foolscap":
            from grid.wire.http.announced import announced_nurls, announced_plain

            nurls = announced_nurls(announcement.fields)
            plain = announced_plain(announcement.fields) if self.plaintext_reads else None
            if nurls and (self.choice == "http" or plain is not None or prefers_http(announcement)):
                return self._over_http(identity, nurls, plain)
        from grid.wire.foolscap.client import FoolscapServer

        return FoolscapServer(identity, storage_furl(announcement), self.tub(), self.runtime.clock)

    def _over_http(
        self, identity: ServerIdentity, nurls: tuple[Nurl, ...], plain: tuple[str, int] | None
    ) -> RemoteServer:
        from grid.wire.http.client import HttpServer

        return HttpServer(identity, nurls, self.pool(), self.runtime, plain)


def prefers_http(announcement: Announcement) -> bool:
    """Whether HTTP is the faster way to a server that offers both. [docs/decisions/0021-transport-choice.md]"""
    version = announcement.fields.get("my-version")
    return isinstance(version, str) and version.startswith(OUR_VERSIONS)
