"""How announced servers become clients: by Foolscap."""

from __future__ import annotations

from typing import Any

from grid.discovery.announcement import Announcement, storage_furl
from grid.discovery.server_set import MakeServer
from grid.ports import Clock, ServerIdentity
from grid.wire.foolscap.client import FoolscapServer
from grid.wire.status import RemoteServer


def foolscap_servers(tub: Any, clock: Clock) -> MakeServer:
    """Clients that reach servers by their FURL through that Tub, which the caller keeps running."""

    def make(identity: ServerIdentity, announcement: Announcement) -> RemoteServer:
        return FoolscapServer(identity, storage_furl(announcement), tub, clock)

    return make
