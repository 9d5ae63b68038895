"""The interface between campaigns and networks: hosts to run processes on, and measurements of the paths between them.

A host is a value: an address, a directory, and a command prefix that enters it. The starter of a process there puts the
prefix before its command and sets its environment. The process then has that host's network and limits, and dies with
its starter.
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

    address: at which other hosts reach it. prefix: goes before every command that runs there and execs it, so the
    process keeps its pid. environment: additional variables of its processes. directory: of its nodes' files; None for
    the directory of the grid.
    """

    name: str
    address: str = LOOPBACK_ADDRESS
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(factory=dict)
    directory: Path | None = None

    def command(self, command: Sequence[str]) -> list[str]:
        """The command with the host's prefix."""
        return [*self.prefix, *command]


LOOPBACK = Host(name="loopback")
"""The local machine, unchanged."""


@frozen(kw_only=True)
class Placement:
    """The host of each node of a grid. servers: storage nodes take them in turn."""

    client: Host = LOOPBACK
    introducer: Host = LOOPBACK
    servers: tuple[Host, ...] = (LOOPBACK,)

    def server(self, index: int) -> Host:
        """The host of the storage node with this index."""
        return self.servers[index % len(self.servers)]


class Topology(Protocol):
    """A network that exists while entered as a context manager, and leaves nothing behind.

    Meanwhile the thread that entered is on the client's host, and so are the connections that it makes and the
    processes and threads that it starts.
    """

    @property
    def name(self) -> str:
        """Its name in campaigns and records."""

    @property
    def placement(self) -> Placement:
        """Its hosts; only while entered."""

    def found(self) -> Mapping[str, Any]:
        """For the record: what was measured on the network before its use, and the settings in force."""

    def __enter__(self) -> Self:
        """Build the network and measure it; NetworkError if this machine cannot."""

    def __exit__(self, *details: object) -> None:
        """End what runs on its hosts, and remove them."""


@frozen(kw_only=True)
class Ability:
    """Something that this machine can or cannot do. found: its state, or what is missing.

    remedy: how to get it, or empty.
    """

    name: str
    available: bool
    found: str
    remedy: str = ""


class NetworkError(Exception):
    """A network that cannot be created on this machine. The message says what is missing and how to get it."""


class Loopback:
    """The topology that always works: no hosts, no delay, no privileges."""

    name = "loopback"
    placement = Placement()

    def found(self) -> Mapping[str, Any]:
        """Empty: all processes are on one machine, and nothing was measured."""
        return {"topology": self.name}

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(self, *details: object) -> None:
        """Do nothing."""
