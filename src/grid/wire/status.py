"""What can be said of, and done to, the connection to a server, whatever the transport. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from attrs import frozen

from grid.ports import ServerVersion, StorageServer


class ConnectionState(Enum):
    """Where a connection stands. IDLE: not asked for yet. WAITING: lost or refused, the next attempt comes later."""

    IDLE = "idle"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    WAITING = "waiting"


@frozen(kw_only=True)
class ConnectionStatus:
    """state, since Unix time `since`; detail: the last failure's message, if any; version: the server's last word.

    place: where the connection leads, as a location hint (`tcp:host:port`), "" unless connected; transport: what it speaks;
    fallback: why that is not the better transport, where the server announces one that does not work.
    """

    state: ConnectionState
    since: float
    detail: str = ""
    version: ServerVersion | None = None
    place: str = ""
    transport: str = ""
    fallback: str = ""


class RemoteServer(StorageServer, Protocol):
    """A StorageServer behind a connection."""

    @property
    def status(self) -> ConnectionStatus:
        """How the connection stands."""

    async def connect(self) -> None:
        """Return when connected; PeerError if that fails."""

    def close(self) -> None:
        """Give up the connection."""
