"""An existing grid: only clients of Grid over the node directory that its user names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perf.campaigns.campaign import Encoding, Format, Load
from perf.campaigns.labels import parse_label
from perf.network.contract import NetworkError, Placement
from perf.processes.existing import ExistingGrid
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.sampling.usage import Usage
from perf.systems.contract import CommandLine, WarmClient
from perf.systems.grid import GridCommands, GridSystem, LibraryProcess


class _GuestLibrary(LibraryProcess):
    """A warm client whose new directories are counted."""

    guest: ExistingGrid

    def make_directories(self, count: int) -> list[str]:
        """Create empty directories, if that many may be left there."""
        self.guest.expect([0] * count)
        caps = super().make_directories(count)
        self.guest.note(caps, [0] * count)
        return caps


class ExistingSystem(GridSystem):
    """The user's grid, with the node directory's encoding and transport."""

    def __init__(self, label: str, guest: ExistingGrid) -> None:
        """label: of a Grid, with its codec and engine toggles, in the version of this tree.

        ValueError for any other.
        """
        wanted = parse_label(label)
        if not wanted.is_guest:
            raise ValueError(
                f"{label}: a grid that exists is measured through Grid's own client: name one Grid, without a commit"
            )
        super().__init__(label, codec=wanted.codec or "isal", options=wanted.options)
        self._guest = guest

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding], placement: Placement) -> None:
        """Start the clients; NetworkError if the grid cannot be reached. Ignores servers and placement."""
        reached = self._guest.client.connected_count()
        least = self._guest.settings.happy
        if reached < least:
            raise NetworkError(
                f"{self._guest.directory} reaches {reached} servers, and its files need {least}: see grid status"
            )
        self.join(root, "the node's own", reached, encodings)

    def start_clients(self, grid: ProcessGrid, settings: ClientSettings) -> tuple[WarmClient, CommandLine]:
        """A library process and a command line over the user's directory."""
        library = _GuestLibrary(self._guest.directory, grid.server_count, self._codec, options=self._options)
        library.guest = self._guest
        self._libraries.append(library)
        return library, GridCommands(self._guest.client)

    def refuses(self, load: Load, client: str) -> str:
        """Refuses what is too large, and what only a node could do, since none is started."""
        if client == "gateway":
            return "no node is started on a grid that exists: the clients are warm and cli"
        try:
            self._guest.expect([load.size] * (load.count if load.scenario == "put-get" else 1))
        except ValueError as error:
            return str(error)
        return super().refuses(load, client)

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int, format: Format = "chk"
    ) -> tuple[Sequence[str], Usage]:
        """Upload the files, if they are small enough."""
        sizes = [source.stat().st_size for source in sources]
        self._guest.expect(sizes)
        caps, usage = super().put(client, encoding, sources, concurrency, format)
        self._guest.note(caps, sizes)
        return caps, usage
