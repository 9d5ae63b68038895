"""A grid and the door of one of its clients, at which other programs are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from perf.network.contract import Placement
from perf.peers.contract import Properties
from perf.peers.grids import grid_properties
from perf.processes.node_directory import Kind
from perf.processes.node_process import NodeProcess
from perf.processes.process_grid import ClientSettings, ProcessGrid


class Door(Protocol):
    """An open door."""

    @property
    def node(self) -> NodeProcess:
        """The client node."""
        ...


D = TypeVar("D", bound=Door)


class GridBehindDoor(Generic[D]):
    """Owns the grid's processes and the node with the door."""

    def __init__(self, open_door: Callable[[ProcessGrid, ClientSettings], D]) -> None:
        self._open = open_door
        self._grid: ProcessGrid | None = None
        self.door: D | None = None
        self.server_count = 10
        """Storage nodes; with fewer than ten, each gets one share."""

    def properties(self, proves: str) -> Properties:
        """What the grid does with bytes. proves: what the client behind the door verifies of returned data."""
        return grid_properties(ClientSettings.usual(self.server_count), proves=proves, syncs=True)

    @property
    def storage_pids(self) -> Sequence[int]:
        """The storage nodes."""
        return [node.pid for node in self._grid.storage] if self._grid is not None else []

    @property
    def door_pids(self) -> Sequence[int]:
        """The node with the door."""
        return [self.door.node.pid] if self.door is not None else []

    @property
    def other_pids(self) -> Sequence[int]:
        """The introducer."""
        storing = {*self.storage_pids}
        return [node.pid for node in self._grid.nodes if node.pid not in storing] if self._grid is not None else []

    @property
    def share_folders(self) -> Sequence[Path]:
        """Where the servers store."""
        return [node.directory / "storage" / "shares" for node in self._grid.storage] if self._grid is not None else []

    def start(self, root: Path, placement: Placement) -> D:
        """Start the grid below root, and a client with an open door."""
        storage: list[Kind] = ["grid"] * self.server_count
        self._grid = ProcessGrid(
            root / "grid", introducer="grid", storage=storage, force_foolscap=False, placement=placement
        )
        self._grid.__enter__()
        self.door = self._open(self._grid, ClientSettings.usual(self.server_count))
        return self.door

    def stop(self) -> None:
        """Stop every node."""
        door, self.door = self.door, None
        if door is not None:
            door.node.stop()
        grid, self._grid = self._grid, None
        if grid is not None:
            grid.stop()
