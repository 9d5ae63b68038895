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
from perf.peers.grid_behind_door import GridBehindDoor
from perf.peers.programs import MissingPeerError
from perf.peers.ssh import Sftp
from perf.processes.node_process import wait_until
from perf.processes.open_doors import ACCOUNT, SftpDoor, open_sftp_door
from perf.processes.process_grid import ClientSettings, ProcessGrid

MOUNT_S = 10.0


class SftpAtGrid(Sftp):
    """`sftp` at the SFTP door of a client, on a grid. The door counts as a client."""

    programs: tuple[str, ...] = ("ssh", "sftp")

    def __init__(self, label: str, options: Sequence[str] = ()) -> None:
        """options: `tuned`, which lets the door choose the cipher."""
        super().__init__(label, options)
        self.grid: GridBehindDoor[SftpDoor] = GridBehindDoor(self._open)

    @property
    def cipher(self) -> str:
        """The door's cipher."""
        return ""

    @property
    def properties(self) -> Properties:
        """The grid's properties."""
        return self.grid.properties("every byte, from the capability")

    @property
    def server_pids(self) -> Sequence[int]:
        """The storage nodes."""
        return self.grid.storage_pids

    @property
    def client_pids(self) -> Sequence[int]:
        """The node with the door."""
        return self.grid.door_pids

    @property
    def other_pids(self) -> Sequence[int]:
        """The introducer."""
        return self.grid.other_pids

    def bring_up(self, server: Host) -> None:
        """Start a grid, and a client with an open door."""
        door = self.grid.start(self.root, self.placement)
        host_key = door.client.directory / "private" / "ssh_host_key.pub"
        self.write_client_configuration("127.0.0.1", door.port, host_key, ACCOUNT)

    def take_down(self) -> None:
        """Stop every node."""
        self.grid.stop()

    def settle(self) -> None:
        """Do nothing: nodes start no processes for a client."""

    @property
    def store_folders(self) -> Sequence[Path]:
        """The shares of all servers."""
        return self.grid.share_folders

    def stored_bytes(self) -> int:
        """Bytes on all servers."""
        files = (path for folder in self.store_folders for path in folder.rglob("*") if path.is_file())
        return sum(path.stat().st_blocks * 512 for path in files)

    def _open(self, grid: ProcessGrid, settings: ClientSettings) -> SftpDoor:
        return open_sftp_door(grid, settings, self.root / "user_key")

    def _remote(self, name: str) -> str:
        return f"/{name}"


COPY = 'cp "$1" "$2" && sync "$2"'
COPY_FOLDER = 'cp -r "$1" "$2" && find "$2" -type f -exec sync {} +'
"""sshfs answers a close before the server does, so a copy counts once the files are synced."""


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

    def settle(self) -> None:
        """Do nothing: a mount's session goes on, and its usage counts once the next read has ended it."""

    def put(self, source: Path, name: str) -> Cost:
        """`cp` to the mount, and `sync`."""
        return self._run_script(COPY, source, self.mount / name)

    def get(self, name: str, target: Path) -> Cost:
        """`cp` from the mount, uncached."""
        self._unmount()
        self._mount()
        return self._copy(self.mount / name, target)

    def put_folder(self, source: Path, name: str) -> Cost:
        """`cp -r`, and `sync`."""
        return self._run_script(COPY_FOLDER, source, self.mount / name)

    def get_folder(self, name: str, target: Path) -> Cost:
        """`cp -r`."""
        self._unmount()
        self._mount()
        return self._copy("-r", self.mount / name, target)

    def _run_script(self, script: str, *words: Path) -> Cost:
        command = ["sh", "-c", script, "sh", *map(str, words)]
        return run_peer(self.client_host.command(command), self.environment())

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
