"""The state of a connection to a server, and operations on it, for any transport. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from attrs import frozen

from grid.errors import GridError, PeerError
from grid.ports import ServerVersion, StorageServer

MOST_LETTERS = 80
"""Most characters of a reason: it must fit on a line beside the server's name."""


class ConnectionState(Enum):
    """The state of a connection. IDLE: not needed yet. WAITING: lost or refused; the next attempt comes later."""

    IDLE = "idle"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    WAITING = "waiting"


@frozen(kw_only=True)
class ConnectionStatus:
    """state, since Unix time `since`; detail: the last failure's message, if any; version: the server's latest one.

    address: the connection's endpoint as a location hint (`tcp:host:port`), "" unless connected; transport: its protocol;
    fallback: why it is not the better transport, if the server announces one that does not work.
    """

    state: ConnectionState
    since: float
    detail: str = ""
    version: ServerVersion | None = None
    address: str = ""
    transport: str = ""
    fallback: str = ""

    @property
    def host(self) -> str:
        """The host of the connection, "" unless connected."""
        return self.address.removeprefix("tcp:").rpartition(":")[0]


class RemoteServer(StorageServer, Protocol):
    """A StorageServer behind a connection."""

    @property
    def status(self) -> ConnectionStatus:
        """The state of the connection."""

    async def connect(self) -> None:
        """Return when connected; PeerError if that fails."""

    def forget_failures(self) -> None:
        """Connect at the next call without waiting for the backoff, because the server was announced again."""

    def close(self) -> None:
        """Close the connection."""


def brief(error: GridError) -> str:
    """A short form of an error without the server's name, for a list of servers."""
    text = error.reason if isinstance(error, PeerError) else str(error)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."
