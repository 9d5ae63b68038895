"""Tahoe-LAFS 1.20 as a system: storage nodes, an introducer, and a client node with its web gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from perf.processes.clients import TahoeClient, run_command
from perf.processes.node_directory import Kind, Transport, tahoe_executable
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.systems.contract import CommandLine, WarmClient
from perf.systems.gateway import HttpGateway
from perf.systems.processes import ProcessSystem


@frozen
class TahoeCommands:
    """`tahoe put` and `tahoe get`, through the running gateway that 1.20 requires."""

    client: TahoeClient

    @property
    def pids(self) -> Sequence[int]:
        """The client node behind the commands."""
        return [self.client.node.pid]

    def put(self, source: Path) -> list[str]:
        """`tahoe put FILE`."""
        return self.client.command("put", str(source))

    def get(self, cap: str, target: Path) -> list[str]:
        """`tahoe get CAP FILE`."""
        return self.client.command("get", cap, str(target))


class TahoeSystem(ProcessSystem):
    """Storage nodes of Tahoe-LAFS 1.20."""

    kind: Kind = "tahoe"

    def __init__(self, label: str, transport: Transport = "foolscap") -> None:
        super().__init__(label, transport, durability="none")

    def versions(self) -> Mapping[str, str]:
        """The version that the program reports."""
        return {"tahoe": run_command([tahoe_executable(), "--version"]).decode().strip().removeprefix("tahoe-lafs/")}

    def start_clients(self, grid: ProcessGrid, settings: ClientSettings) -> tuple[WarmClient, CommandLine]:
        """One client node for both; its gateway is the warm client."""
        client = grid.add_client(settings)
        assert isinstance(client, TahoeClient)
        return HttpGateway(client), TahoeCommands(client)

    def stop_clients(self) -> None:
        """Do nothing: they are nodes of the grid, which stops them."""
