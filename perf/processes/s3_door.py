"""A client node of Grid with an open S3 door, and an access key that makes buckets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import field, frozen

from perf.processes.clients import GridClient
from perf.processes.node_process import NodeProcess, free_ports
from perf.processes.process_grid import ClientSettings, ProcessGrid

HOME = "home"
"""The alias of the directory with the buckets that the access key has by name."""

BUCKETS = "buckets"
"""The alias of the directory of the buckets that it makes."""


@frozen(kw_only=True)
class S3Door:
    """An open door. port, web: of the door and of the web gateway, on loopback. buckets: the capability of the directory of the
    buckets that the access key makes.
    """

    client: GridClient
    node: NodeProcess
    port: int
    web: int
    access_key: str
    secret_key: str = field(repr=False)
    buckets: str = field(repr=False)


def open_s3_door(
    grid: ProcessGrid,
    settings: ClientSettings,
    buckets: Sequence[str] = (),
    prepare: Callable[[Path], str] = lambda directory: "",
) -> S3Door:
    """Start a client with an open door; the caller stops its node.

    buckets: that the access key has by name. prepare: given the node's directory, writes files there and returns more
    lines of the section [s3].
    """
    client = grid.add_client(settings)
    assert isinstance(client, GridClient)
    web, port = free_ports(2)
    config = client.directory / "tahoe.cfg"
    text = config.read_text().replace("web.port = \n", f"web.port = {web}\n")
    config.write_text(f"{text}[s3]\nport = {port}\n{prepare(client.directory)}")
    made_here = client.run("mkdir").decode().strip()
    client.run("add-alias", BUCKETS, made_here)
    client.run("create-alias", HOME)
    for bucket in buckets:
        client.run("mkdir", f"{HOME}:{bucket}")
    named = [word for bucket in buckets for word in ("--bucket", f"{bucket}={HOME}:{bucket}")]
    made = client.run("s3", "key", "add", *named, "--buckets-in", f"{BUCKETS}:")
    said = dict(line.split(": ", 1) for line in made.decode().splitlines())
    host = grid.placement.client
    words = [*client.command()[:1], "run", str(client.directory)]
    node = NodeProcess(client.directory, host.command(words), host.environment)
    node.start()
    try:
        node.wait_for(lambda: "S3 interface at" in node.log, "its S3 interface")
    except BaseException:
        node.stop()
        raise
    return S3Door(
        client=client,
        node=node,
        port=port,
        web=web,
        access_key=said["access key"],
        secret_key=said["secret key"],
        buckets=made_here,
    )
