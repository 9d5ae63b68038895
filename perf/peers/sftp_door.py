"""The SFTP door of a grid, and sshfs: OpenSSH's clients at one of our client nodes, and mounted directories.

Directories are mounted from the door or from OpenSSH's server.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from perf.network.contract import Host
from perf.peers.commands import run_peer
from perf.peers.contract import Cost, Properties
from perf.peers.programs import MissingPeerError
from perf.peers.ssh import Sftp
from perf.processes.node_directory import Kind
from perf.processes.node_process import wait_until
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.processes.sftp_door import ACCOUNT, SftpDoor, open_sftp_door

MOUNT_S = 10.0


class SftpAtGrid(Sftp):
    """`sftp` at the SFTP door of a client, on a grid of `server_count` servers. The door counts as a client."""

    programs: tuple[str, ...] = ("ssh", "sftp")

    def __init__(self, label: str, options: Sequence[str] = ()) -> None:
        """options: `tuned`, which lets the door choose the cipher."""
        super().__init__(label, options)
        self.server_count = 10
        self.door: SftpDoor | None = None
        self._grid: ProcessGrid | None = None

    @property
    def cipher(self) -> str:
        """The door's cipher."""
        return ""

    @property
    def properties(self) -> Properties:
        """The grid's properties."""
        settings = ClientSettings.usual(self.server_count)
        return Properties(
            expansion=settings.total / settings.needed,
            encrypts="server",
            proves="every byte, from the capability",
            syncs=True,
            survives=settings.total - settings.needed,
        )

    @property
    def server_pids(self) -> Sequence[int]:
        """The storage nodes."""
        return [node.pid for node in self._grid.storage] if self._grid is not None else []

    @property
    def client_pids(self) -> Sequence[int]:
        """The node with the door."""
        return [self.door.node.pid] if self.door is not None else []

    @property
    def other_pids(self) -> Sequence[int]:
        """The introducer."""
        staying = {*self.server_pids}
        return [node.pid for node in self._grid.nodes if node.pid not in staying] if self._grid is not None else []

    def bring_up(self, server: Host) -> None:
        """Start a grid, and a client with an open door."""
        storage: list[Kind] = ["grid"] * self.server_count
        self._grid = ProcessGrid(
            self.root / "grid", introducer="grid", storage=storage, force_foolscap=False, placement=self.placement
        )
        self._grid.__enter__()
        self.door = open_sftp_door(self._grid, ClientSettings.usual(self.server_count), self.root / "user_key")
        host_key = self.door.client.directory / "private" / "ssh_host_key.pub"
        self.write_client_configuration("127.0.0.1", self.door.port, host_key, ACCOUNT)

    def take_down(self) -> None:
        """Stop every node."""
        door, self.door = self.door, None
        if door is not None:
            door.node.stop()
        grid, self._grid = self._grid, None
        if grid is not None:
            grid.stop()

    def settle(self) -> None:
        """Do nothing: nodes start no processes for a client."""

    def stored_bytes(self) -> int:
        """Bytes on all servers."""
        assert self._grid is not None
        folders = [node.directory / "storage" / "shares" for node in self._grid.storage]
        return sum(path.stat().st_blocks * 512 for each in folders for path in each.rglob("*") if path.is_file())

    def _remote(self, name: str) -> str:
        return f"/{name}"


class _Mounted(Sftp):
    """Copies files to and from an sshfs mount, remounted before each read so that nothing comes from a cache."""

    programs: tuple[str, ...] = ("sshd", "ssh", "sftp", "sshfs")

    @property
    def mount(self) -> Path:
        """The mount point."""
        return self.root / "mount"

    def bring_up(self, server: Host) -> None:
        """Start the server, and mount."""
        if not Path("/dev/fuse").exists():
            raise MissingPeerError("sshfs", "this machine has no /dev/fuse")
        super().bring_up(server)
        self.mount.mkdir()
        self._mount()

    def take_down(self) -> None:
        """Unmount, and end the server."""
        self._unmount()
        super().take_down()

    def put(self, source: Path, name: str) -> Cost:
        """`cp` to the mount."""
        return self._copy(source, self.mount / name)

    def get(self, name: str, target: Path) -> Cost:
        """`cp` from the mount, uncached."""
        self._unmount()
        self._mount()
        return self._copy(self.mount / name, target)

    def put_folder(self, source: Path, name: str) -> Cost:
        """`cp -r`."""
        return self._copy("-r", source, self.mount / name)

    def get_folder(self, name: str, target: Path) -> Cost:
        """`cp -r`."""
        self._unmount()
        self._mount()
        return self._copy("-r", self.mount / name, target)

    def _copy(self, *words: str | Path) -> Cost:
        return run_peer(self.client_host.command(["cp", *map(str, words)]), self.environment())

    def _mount(self) -> None:
        words = [
            self.program("sshfs").path,
            "-F",
            str(self.root / "ssh_config"),
            f"peer:{self._remote('')}",
            str(self.mount),
        ]
        run_peer(self.client_host.command(words), self.environment())
        wait_until(self.mount.is_mount, "the mount", MOUNT_S)

    def _unmount(self) -> None:
        if self.root != Path() and self.mount.is_mount():
            subprocess.run([shutil.which("fusermount3") or "fusermount", "-u", "-z", str(self.mount)], check=False)
            wait_until(lambda: not self.mount.is_mount(), "the mount to go", MOUNT_S)


class Sshfs(_Mounted):
    """A mounted directory of OpenSSH's server."""


class SshfsAtGrid(_Mounted, SftpAtGrid):
    """A mounted directory of the SFTP door."""

    programs = ("ssh", "sftp", "sshfs")
