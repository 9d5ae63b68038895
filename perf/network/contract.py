"""What a campaign asks of a network: hosts that processes are placed on, and what was found on the way between them.

A host is a value: an address, a directory, and the command that enters it. The starter of a process there puts the prefix
before its command and sets its environment; the process then has that host's network and limits, and dies with its starter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from attrs import field, frozen

LOOPBACK_ADDRESS = "127.0.0.1"


@frozen(kw_only=True)
class Host:
    """Where processes run.

    address: at which other hosts reach it. prefix: goes before every command that runs there; it executes the command in
    its own place, so that the process keeps its pid. environment: what its processes have besides. directory: where the
    files of its nodes lie; None for the directory of the grid.
    """

    name: str
    address: str = LOOPBACK_ADDRESS
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(factory=dict)
    directory: Path | None = None

    def command(self, command: Sequence[str]) -> list[str]:
        """The command that runs this one on the host."""
        return [*self.prefix, *command]


LOOPBACK = Host(name="loopback")
"""This machine as it is."""


@frozen(kw_only=True)
class Placement:
    """Which host each node of a grid runs on. servers: storage nodes take them in turn."""

    client: Host = LOOPBACK
    introducer: Host = LOOPBACK
    servers: tuple[Host, ...] = (LOOPBACK,)

    def server(self, index: int) -> Host:
        """The host of the storage node with this index."""
        return self.servers[index % len(self.servers)]


class Topology(Protocol):
    """A network that exists inside a `with`, which leaves nothing behind.

    Meanwhile the thread that entered is on the client's host: connections that it makes, and processes and threads that it
    starts, are there.
    """

    @property
    def name(self) -> str:
        """What campaigns and records call it."""

    @property
    def placement(self) -> Placement:
        """Its hosts; only inside the `with`."""

    def found(self) -> Mapping[str, Any]:
        """What was measured on the network before anything else used it, and what is in force: for the record."""

    def __enter__(self) -> Self:
        """Build the network and measure it; NetworkError if this machine cannot."""

    def __exit__(self, *details: object) -> None:
        """End what runs on its hosts, and remove them."""


@frozen(kw_only=True)
class Ability:
    """One thing that this machine can or cannot do. found: how it is here, or what is missing. remedy: how to get it, or empty."""

    name: str
    available: bool
    found: str
    remedy: str = ""


class NetworkError(Exception):
    """A network that cannot be made on this machine. The message says what is missing and how to get it."""


class Loopback:
    """The topology that is always there: no host, no delay, no privilege."""

    name = "loopback"
    placement = Placement()

    def found(self) -> Mapping[str, Any]:
        """Nothing was measured: all processes are on one machine."""
        return {"topology": self.name}

    def __enter__(self) -> Self:
        """Nothing has to be built."""
        return self

    def __exit__(self, *details: object) -> None:
        """Nothing has to be removed."""
