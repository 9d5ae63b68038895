"""S3 servers for several clients: versitygw over a plain directory, and MinIO over four erasure-coded ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from perf.network.contract import Host
from perf.peers.contract import Properties, new_secret
from perf.peers.programs import find_program
from perf.peers.servers import ServerProcess, free_port

DRIVES = 4
"""MinIO's directories: with four, it uses 2-of-4 coding, and any two may fail."""


class ObjectServer(ABC):
    """An S3 server on a free port with a random account."""

    program = ""

    def __init__(self) -> None:
        self.access_key = new_secret()[:20]
        self.secret_key = new_secret()
        self.url = ""
        self.process: ServerProcess | None = None

    @property
    @abstractmethod
    def properties(self) -> Properties:
        """What it does with bytes, whatever the client."""

    @abstractmethod
    def command(self, program: str, address: str, data: Path) -> list[str]:
        """The command that runs it in the foreground."""

    @abstractmethod
    def account(self) -> Mapping[str, str]:
        """The environment variables with its account: everybody can read its command line."""

    def start(self, root: Path, host: Host, environment: Mapping[str, str]) -> None:
        """Start it with its data in root/remote; PeerError, MissingPeerError."""
        port = free_port()
        self.url = f"http://{host.address}:{port}"
        command = self.command(find_program(self.program).path, f"{host.address}:{port}", root / "remote")
        account = {**environment, **self.account()}
        self.process = ServerProcess(command, account, root / "server.log", host, [port])

    def stop(self) -> None:
        """End it, if it was started."""
        process, self.process = self.process, None
        if process is not None:
            process.stop()


class Versity(ObjectServer):
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


class Minio(ObjectServer):
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


OBJECT_SERVERS: Mapping[str, type[ObjectServer]] = {"versitygw": Versity, "minio": Minio}
