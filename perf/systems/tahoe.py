"""The real Tahoe-LAFS 1.20: ten storage nodes, an introducer, and a client node with its web gateway."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from perf.systems.processes import CommandLine, Encoding, ProcessSystem, WarmClient
from tests.support.clients import TahoeClient
from tests.support.node_directory import Kind, tahoe_executable
from tests.support.tahoe_grid import ClientSettings, ProcessGrid


@frozen
class TahoeGateway:
    """The warm client: the gateway's HTTP interface, which is the only library that 1.20 offers.

    The harness's own part, moving the file between disk and loopback, is in the wall time and not in the client's
    processor seconds.
    """

    client: TahoeClient

    @property
    def pids(self) -> Sequence[int]:
        """The client node."""
        return [self.client.node.pid]

    def put(self, source: Path) -> str:
        """`PUT /uri` with the file as its body."""
        return self.client.put(source)

    def get(self, cap: str, target: Path) -> None:
        """`GET /uri/CAP`, its body written to the file."""
        self.client.get(cap, target)


@frozen
class TahoeCommands:
    """`tahoe put` and `tahoe get`, through the gateway that runs already, as 1.20 needs it."""

    client: TahoeClient

    @property
    def pids(self) -> Sequence[int]:
        """The client node behind the commands."""
        return [self.client.node.pid]

    def put(self, source: Path) -> list[str]:
        """`tahoe put FILE`."""
        return [tahoe_executable(), "-d", str(self.client.directory), "put", str(source)]

    def get(self, cap: str, target: Path) -> list[str]:
        """`tahoe get CAP FILE`."""
        return [tahoe_executable(), "-d", str(self.client.directory), "get", cap, str(target)]


class TahoeSystem(ProcessSystem):
    """Ten storage nodes of Tahoe-LAFS 1.20, Foolscap forced."""

    kind: Kind = "tahoe"

    def start_clients(self, grid: ProcessGrid, encoding: Encoding) -> tuple[WarmClient, CommandLine]:
        """One client node serves both."""
        client = grid.add_client(
            ClientSettings(kind="tahoe", needed=encoding.needed, happy=encoding.happy, total=encoding.total)
        )
        assert isinstance(client, TahoeClient)
        return TahoeGateway(client), TahoeCommands(client)
