"""What can be said of, and done to, the connection to a server, whatever the transport. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from attrs import frozen

from grid.errors import GridError, PeerError
from grid.ports import ServerVersion, StorageServer

MOST_LETTERS = 80
"""Of a reason: what fits a line beside the server's name."""


class ConnectionState(Enum):
    """Where a connection stands. IDLE: not asked for yet. WAITING: lost or refused, the next attempt comes later."""

    IDLE = "idle"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    WAITING = "waiting"


@frozen(kw_only=True)
class ConnectionStatus:
    """state, since Unix time `since`; detail: the last failure's message, if any; version: the server's last word.

    address: where the connection leads, as a location hint (`tcp:host:port`), "" unless connected; transport: what it speaks;
    fallback: why that is not the better transport, where the server announces one that does not work.
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
        """The host where the connection leads, "" unless connected."""
        return self.address.removeprefix("tcp:").rpartition(":")[0]


class RemoteServer(StorageServer, Protocol):
    """A StorageServer behind a connection."""

    @property
    def status(self) -> ConnectionStatus:
        """How the connection stands."""

    async def connect(self) -> None:
        """Return when connected; PeerError if that fails."""

    def forget_failures(self) -> None:
        """It has been announced again: the next call connects without waiting for the backoff."""

    def close(self) -> None:
        """Give up the connection."""


def brief(error: GridError) -> str:
    """What an error says, without the server's name where that is known, and short: for a list of servers."""
    text = error.reason if isinstance(error, PeerError) else str(error)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."
