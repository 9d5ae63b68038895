"""A real grid of ten storage nodes whose client has the S3 door open, with its own certificate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import field, frozen

from perf.peers.programs import MissingPeerError, find_program
from perf.processes.clients import GridClient
from perf.processes.node_directory import grid_executable
from perf.processes.node_process import NodeProcess, free_ports
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.support.certificates import make_certificate

DOMAIN = "s3.grid.test"
BUCKET = "bench"


@frozen(kw_only=True)
class OpenDoor:
    """A door that is open. port: of plain HTTP, or of TLS with the certificate in `authority`."""

    grid: ProcessGrid
    client: GridClient
    node: NodeProcess
    port: int
    scheme: str
    authority: Path
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def url(self) -> str:
        """Where the door is."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def environment(self, folder: Path) -> dict[str, str]:
        """That of a client: the account in it, and nothing of the user's own configuration."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CA_BUNDLE": str(self.authority),
        }


def program(name: str) -> str:
    """What to run; the test is skipped with the reason if it is not installed."""
    try:
        return find_program(name).path
    except MissingPeerError as error:
        pytest.skip(str(error))


def checkout(variable: str, name: str) -> Path:
    """Return the checkout of a suite that the environment names; skip the test with the reason if it names none."""
    found = os.environ.get(variable)
    if not found:
        pytest.skip(f"{variable} names no checkout of {name}")
    return Path(found).absolute()


@contextmanager
def open_door(folder: Path, *, storage_count: int = 10, tls: bool = False) -> Iterator[OpenDoor]:
    """A grid and its door, until the context ends."""
    with ProcessGrid(
        folder / "grid", introducer="grid", storage=["grid"] * storage_count, force_foolscap=False
    ) as grid:
        needed, happy = min(3, storage_count), min(7, storage_count)
        client = grid.add_client(ClientSettings(kind="grid", needed=needed, happy=happy, total=storage_count))
        assert isinstance(client, GridClient)
        web, port = free_ports(2)
        authority = make_certificate(client.directory, DOMAIN)
        certificate = f"certificate = {authority.name}\nprivate_key = key.pem\n" if tls else ""
        config = client.directory / "tahoe.cfg"
        text = config.read_text().replace("web.port = \n", f"web.port = {web}\n")
        config.write_text(f"{text}[s3]\nport = {port}\ndomain = {DOMAIN}\n{certificate}")
        client.run("create-alias", "home")
        client.run("mkdir", "home:buckets")
        client.run("mkdir", "home:bench")
        made = client.run("s3", "key", "add", "--bucket", f"{BUCKET}=home:bench", "--buckets-in", "home:buckets")
        said = dict(line.split(": ", 1) for line in made.decode().splitlines())
        node = NodeProcess(client.directory, [grid_executable(), "run", str(client.directory)])
        node.start()
        try:
            node.wait_for(lambda: "S3 interface at" in (client.directory / "run.log").read_text(), "its S3 door")
            yield OpenDoor(
                grid=grid,
                client=client,
                node=node,
                port=port,
                scheme="https" if tls else "http",
                authority=authority,
                access_key=said["access key"],
                secret_key=said["secret key"],
            )
        finally:
            node.stop()
