"""What the gateway shows of its node and of the grid's servers. Pure.

A port: `grid.node.gateway` implements it for a running client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from grid.placement.space import LackOfRoom, lack_of_room
from grid.values import frozen


@frozen(kw_only=True)
class ServerView:
    """A storage server. status: one line. available_space: bytes. host: its announced host, "" if none.

    is_connecting: it is tried for the first time, and nothing is known to be wrong. is_read_only: None if it does not say.

    clock_ahead_s: by how much its clock is certainly ahead of this machine's, negative if behind; None if unknown.
    """

    server_id: str
    nickname: str
    is_connected: bool
    status: str
    version: str | None = None
    available_space: int | None = None
    last_received_at: float | None = None
    transport: str = ""
    latency_s: float | None = None
    host: str = ""
    clock_ahead_s: float | None = None
    is_connecting: bool = False
    is_read_only: bool | None = None

    @property
    def has_room(self) -> bool:
        """Whether it is connected and may take new files; also if it does not say how much space it has."""
        return self.is_connected and self.available_space != 0

    @property
    def no_room(self) -> LackOfRoom | None:
        """Why it takes no new files although it is connected; None if it may, or is not."""
        return lack_of_room(self.available_space, self.is_read_only) if self.is_connected else None


class ClientView(Protocol):
    """What the gateway shows of its node."""

    def servers(self) -> Sequence[ServerView]:
        """All known servers, connected or not."""

    def introducers(self) -> Sequence[str]:
        """The state of the connection to each introducer, one line each."""


@frozen
class DoorUser:
    """A user of a door: an account's name or an access key, never a secret.

    opens: what the user can reach, in words.
    """

    name: str
    opens: str


@frozen(kw_only=True)
class DoorView:
    """An open door. users: its current users. active: requests under way."""

    name: str
    address: str
    users: Callable[[], Sequence[DoorUser]]
    active: Callable[[], int]
