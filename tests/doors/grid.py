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
from perf.processes.node_process import NodeProcess
from perf.processes.open_doors import open_s3_door
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
def open_door(folder: Path, *, storage_count: int = 10, tls: bool = False, packs: bool = False) -> Iterator[OpenDoor]:
    """A grid and its door, until the context ends."""
    with ProcessGrid(
        folder / "grid", introducer="grid", storage=["grid"] * storage_count, force_foolscap=False
    ) as grid:
        needed, happy = min(3, storage_count), min(7, storage_count)
        authorities: list[Path] = []

        def prepare(directory: Path) -> str:
            authorities.append(make_certificate(directory, DOMAIN))
            certificate = f"certificate = {authorities[0].name}\nprivate_key = key.pem\n" if tls else ""
            return f"domain = {DOMAIN}\n{certificate}{'pack = yes' if packs else ''}\n"

        settings = ClientSettings(kind="grid", needed=needed, happy=happy, total=storage_count)
        door = open_s3_door(grid, settings, [BUCKET], prepare)
        try:
            yield OpenDoor(
                grid=grid,
                client=door.client,
                node=door.node,
                port=door.port,
                scheme="https" if tls else "http",
                authority=authorities[0],
                access_key=door.access_key,
                secret_key=door.secret_key,
            )
        finally:
            door.node.stop()
