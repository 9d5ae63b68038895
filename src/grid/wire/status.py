"""The state of a connection to a server, and operations on it, for any transport. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from grid.errors import GridError, PeerError
from grid.ports import ServerVersion, StorageServer
from grid.values import frozen

MOST_LETTERS = 80
"""Most characters of a reason: it must fit on a line beside the server's name."""

CLOCK_MATTERS_S = 60.0
"""From which difference on a server's clock is shown."""


_LOST = "is the machine on, or does a firewall drop what you send?"

_NEXT = (
    ("connection refused", "nothing listens there: is the node running, and is that its port?"),
    ("host name not found", "is the name right, and does this machine know it?"),
    ("no route to host", "is the machine on, and is the address right?"),
    ("another node", "has its node lost private/, or does another node have its address now?"),
    ("the node does not answer", "it hangs or is suspended: restart it"),
    ("no answer", _LOST),
    ("did not finish connecting", _LOST),
    ("timed out", _LOST),
)
"""What to ask about a server that is offline, by a part of the reason. The first match counts."""


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
    fallback: why it is not the better transport, if the server announces one that does not work. clock_ahead_s: by how much the
    server's clock is certainly ahead of ours, negative if behind; None if unknown.
    """

    state: ConnectionState
    since: float
    detail: str = ""
    version: ServerVersion | None = None
    address: str = ""
    transport: str = ""
    fallback: str = ""
    clock_ahead_s: float | None = None

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


def next_question(reason: str) -> str:
    """What to look at if a server is offline for this reason; "" if it is none of the common ones."""
    return next((question for part, question in _NEXT if part in reason), "")


def clock_text(ahead_s: float | None) -> str:
    """How a server's clock differs from ours, if that matters; otherwise ""."""
    if ahead_s is None or abs(ahead_s) < CLOCK_MATTERS_S:
        return ""
    return f"clock {duration(abs(ahead_s))} {'ahead' if ahead_s > 0 else 'behind'}"


def duration(seconds: float) -> str:
    """A length of time in its two largest units from days to minutes, such as "1 h 30 min"."""
    minutes = round(seconds / 60)
    parts = [(minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min")]
    first = next((index for index, (count, _) in enumerate(parts) if count), 2)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count) or "0 min"


def brief(error: GridError) -> str:
    """A short form of an error without the server's name, for a list of servers."""
    text = error.reason if isinstance(error, PeerError) else str(error)
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."
