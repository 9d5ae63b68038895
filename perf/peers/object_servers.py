"""S3 servers for several clients: versitygw over a plain directory, MinIO over four erasure-coded ones, and our own door."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from perf.network.contract import Placement
from perf.peers.contract import Properties, new_secret
from perf.peers.grid_behind_door import GridBehindDoor
from perf.peers.programs import find_program
from perf.peers.servers import ServerProcess, free_port
from perf.processes.open_doors import S3Door, open_s3_door
from perf.processes.process_grid import ClientSettings, ProcessGrid

DRIVES = 4
"""MinIO's directories: with four, it uses 2-of-4 coding, and any two may fail."""


class ObjectServer(ABC):
    """An S3 server with an account."""

    program = ""
    """Its program in the index of installed peers; empty for our own."""

    def __init__(self) -> None:
        self.access_key = ""
        self.secret_key = ""
        self.url = ""

    @property
    @abstractmethod
    def properties(self) -> Properties:
        """What it does with bytes, whatever the client."""

    @property
    @abstractmethod
    def pids(self) -> Sequence[int]:
        """The processes that store."""

    @property
    def gateway_pids(self) -> Sequence[int]:
        """Processes on the client's machine that serve S3 and store nothing; they count as the client's."""
        return ()

    @property
    def other_pids(self) -> Sequence[int]:
        """Processes that are neither."""
        return ()

    @abstractmethod
    def start(self, root: Path, placement: Placement, environment: Mapping[str, str]) -> None:
        """Start it with its data below root; PeerError, MissingPeerError."""

    @abstractmethod
    def stop(self) -> None:
        """End it, if it was started."""

    def folders(self, root: Path) -> Sequence[Path]:
        """Where it stores. root: as given to `start`."""
        return [root / "remote"]


class SingleServer(ObjectServer):
    """One process on a free port of the first server host, with a random account."""

    def __init__(self) -> None:
        super().__init__()
        self.access_key = new_secret()[:20]
        self.secret_key = new_secret()
        self.process: ServerProcess | None = None

    @property
    def pids(self) -> Sequence[int]:
        """The one process."""
        return [self.process.pid] if self.process is not None else []

    @abstractmethod
    def command(self, program: str, address: str, data: Path) -> list[str]:
        """The command that runs it in the foreground."""

    @abstractmethod
    def account(self) -> Mapping[str, str]:
        """The environment variables with its account: everybody can read its command line."""

    def start(self, root: Path, placement: Placement, environment: Mapping[str, str]) -> None:
        """Start it with its data in root/remote; PeerError, MissingPeerError."""
        host, port = placement.server(0), free_port()
        self.url = f"http://{host.address}:{port}"
        command = self.command(find_program(self.program).path, f"{host.address}:{port}", root / "remote")
        account = {**environment, **self.account()}
        self.process = ServerProcess(command, account, root / "server.log", host, [port])

    def stop(self) -> None:
        """End it, if it was started."""
        process, self.process = self.process, None
        if process is not None:
            process.stop()


class Versity(SingleServer):
    """versitygw over a directory, with metadata in extended attributes, without which multipart uploads fail."""

    program = "versitygw"

    @property
    def properties(self) -> Properties:
        """Each object is a file on disk."""
        return Properties(
            expansion=1.0,
            encrypts="nobody",
            proves="nothing that the server did not compute itself",
            syncs=False,
            survives=0,
            notes="plain HTTP on loopback",
        )

    def command(self, program: str, address: str, data: Path) -> list[str]:
        """Run the posix back end."""
        return [program, "--port", address, "--quiet", "posix", str(data)]

    def account(self) -> Mapping[str, str]:
        """The root user."""
        return {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}


class Minio(SingleServer):
    """MinIO over four directories."""

    program = "minio"

    @property
    def properties(self) -> Properties:
        """Half of the stored bytes are parity."""
        return Properties(
            expansion=2.0,
            encrypts="nobody",
            proves="nothing: the server checks its disks, and the client believes the server",
            syncs=True,
            survives=DRIVES // 2,
            notes="plain HTTP on loopback; four directories of one disk stand for four disks",
        )

    def command(self, program: str, address: str, data: Path) -> list[str]:
        """Each directory counts as a drive."""
        drives = [str(data / f"drive{number}") for number in range(DRIVES)]
        return [program, "server", "--quiet", "--address", address, *drives]

    def account(self) -> Mapping[str, str]:
        """The root user, and a test mode in which MinIO accepts directories on the system's disk as drives."""
        return {
            "MINIO_ROOT_USER": self.access_key,
            "MINIO_ROOT_PASSWORD": self.secret_key,
            "MINIO_CI_CD": "1",
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
        }


class GridServer(ObjectServer):
    """The S3 door of a client node, on a grid."""

    def __init__(self) -> None:
        super().__init__()
        self.packs = False
        """Whether the door puts small objects into packs."""
        self.grid: GridBehindDoor[S3Door] = GridBehindDoor(self._open_door)

    def _open_door(self, grid: ProcessGrid, settings: ClientSettings) -> S3Door:
        return open_s3_door(grid, settings, prepare=lambda _: "pack = yes\n" if self.packs else "")

    @property
    def properties(self) -> Properties:
        """The grid's properties."""
        return self.grid.properties("every byte, from the capability; plain HTTP from the door to the client")

    @property
    def pids(self) -> Sequence[int]:
        """The storage nodes."""
        return self.grid.storage_pids

    @property
    def gateway_pids(self) -> Sequence[int]:
        """The node with the door."""
        return self.grid.door_pids

    @property
    def other_pids(self) -> Sequence[int]:
        """The introducer."""
        return self.grid.other_pids

    def start(self, root: Path, placement: Placement, environment: Mapping[str, str]) -> None:
        """Start a grid, and a client with an open door."""
        door = self.grid.start(root, placement)
        self.access_key, self.secret_key = door.access_key, door.secret_key
        self.url = f"http://127.0.0.1:{door.port}"

    def stop(self) -> None:
        """Stop every node."""
        self.grid.stop()

    def folders(self, root: Path) -> Sequence[Path]:
        """The shares of all servers."""
        return self.grid.share_folders


OBJECT_SERVERS: Mapping[str, type[ObjectServer]] = {"versitygw": Versity, "minio": Minio, "grid": GridServer}
