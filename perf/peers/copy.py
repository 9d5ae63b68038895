"""cp between two folders of the same machine: the lower bound for all other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perf.network.contract import Host
from perf.peers.commands import read_peer, run_peer
from perf.peers.contract import Cost, Peer, Properties

COPY_AND_SYNC = 'cp --recursive -- "$1" "$2" && sync --file-system "$2"'


class Copy(Peer):
    """`cp`; with the option `sync`, followed by a sync of the target's file system."""

    programs = ("cp",)

    def __init__(self, label: str, options: Sequence[str] = ()) -> None:
        super().__init__(label)
        self.options = tuple(options)

    @property
    def properties(self) -> Properties:
        """A second copy of each file, nothing more."""
        return Properties(
            expansion=1.0,
            encrypts="nobody",
            proves="nothing",
            syncs="sync" in self.options,
            survives=0,
            notes="no server",
        )

    def bring_up(self, server: Host) -> None:
        """Do nothing: there is no server."""

    def take_down(self) -> None:
        """Do nothing: nothing runs."""

    def put(self, source: Path, name: str) -> Cost:
        """`cp`."""
        return self._copy(source, self._stored(name))

    def get(self, name: str, target: Path) -> Cost:
        """`cp`."""
        return self._copy(self._stored(name), target)

    def put_folder(self, source: Path, name: str) -> Cost:
        """`cp --recursive`."""
        return self._copy(source, self._stored(name))

    def get_folder(self, name: str, target: Path) -> Cost:
        """`cp --recursive`."""
        return self._copy(self._stored(name), target)

    def list_folder(self, name: str) -> list[str]:
        """`ls -1`."""
        return sorted(read_peer(["ls", "-1", str(self._stored(name))], self.environment()).splitlines())

    def delete(self, name: str) -> Cost:
        """`rm`."""
        return run_peer(["rm", str(self._stored(name))], self.environment())

    def delete_folder(self, name: str) -> Cost:
        """`rm -r`."""
        return run_peer(["rm", "-r", str(self._stored(name))], self.environment())

    def _stored(self, name: str) -> Path:
        return self.root / "remote" / name

    def _copy(self, source: Path, target: Path) -> Cost:
        if "sync" in self.options:
            command = ["sh", "-c", COPY_AND_SYNC, "sh", str(source), str(target)]
        else:
            command = [self.program("cp").path, "--recursive", "--", str(source), str(target)]
        return run_peer(self.client_host.command(command), self.environment())
