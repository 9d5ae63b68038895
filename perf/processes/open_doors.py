"""A client node of Grid with an open door: S3 with an access key that makes buckets, or SFTP configured like a node of 1.20."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import field, frozen
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from perf.processes.clients import GridClient
from perf.processes.node_process import NodeProcess, free_ports
from perf.processes.process_grid import ClientSettings, ProcessGrid

HOME = "home"
"""The alias of the directory with the buckets that the access key has by name."""

BUCKETS = "buckets"
"""The alias of the directory of the buckets that it makes."""

ACCOUNT = "alice"
"""The account of the SFTP door."""


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
    _configure(client, web, f"[s3]\nport = {port}\n{prepare(client.directory)}")
    made_here = client.run("mkdir").decode().strip()
    client.run("add-alias", BUCKETS, made_here)
    client.run("create-alias", HOME)
    for bucket in buckets:
        client.run("mkdir", f"{HOME}:{bucket}")
    named = [word for bucket in buckets for word in ("--bucket", f"{bucket}={HOME}:{bucket}")]
    made = client.run("s3", "key", "add", *named, "--buckets-in", f"{BUCKETS}:")
    said = dict(line.split(": ", 1) for line in made.decode().splitlines())
    return S3Door(
        client=client,
        node=_start(grid, client, "S3 interface at"),
        port=port,
        web=web,
        access_key=said["access key"],
        secret_key=said["secret key"],
        buckets=made_here,
    )


@frozen(kw_only=True)
class SftpDoor:
    """An open door for ACCOUNT. root: the capability of the account's directory. key: the file of its private key."""

    client: GridClient
    node: NodeProcess
    port: int
    root: str
    key: Path


def make_key(file: Path) -> str:
    """Write a private key, with its public half beside it; return the public half as accounts list it."""
    key = Ed25519PrivateKey.generate()
    file.touch(0o600)
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    file.with_suffix(".pub").write_text(public + "\n")
    assert base64.b64decode(public.split()[1])
    return public


def open_sftp_door(grid: ProcessGrid, settings: ClientSettings, key: Path) -> SftpDoor:
    """Start a client with an open door; the caller stops its node. key: where to write the account's key."""
    client = grid.add_client(settings)
    assert isinstance(client, GridClient)
    web, port = free_ports(2)
    private = client.directory / "private"
    make_key(private / "ssh_host_key")
    root = client.run("mkdir").decode().strip()
    accounts = private / "accounts"
    accounts.touch(0o600)
    accounts.write_text(f"# everybody\n{ACCOUNT} {make_key(key)} of a test {root}\n")
    _configure(
        client,
        web,
        f"[sftpd]\nenabled = true\nport = tcp:{port}:interface=127.0.0.1\n"
        "host_pubkey_file = private/ssh_host_key.pub\nhost_privkey_file = private/ssh_host_key\n"
        "accounts.file = private/accounts\n",
    )
    node = _start(grid, client, "SFTP interface at")
    return SftpDoor(client=client, node=node, port=port, root=root, key=key)


def _configure(client: GridClient, web: int, section: str) -> None:
    """Add the door's section to the client's configuration. web: the port of its web gateway."""
    config = client.directory / "tahoe.cfg"
    text = config.read_text().replace("web.port = \n", f"web.port = {web}\n")
    config.write_text(text + section)


def _start(grid: ProcessGrid, client: GridClient, announced: str) -> NodeProcess:
    """Start the client's node, and wait until its log has these words; the caller stops it."""
    host = grid.placement.client
    words = [*client.command()[:1], "run", str(client.directory)]
    node = NodeProcess(client.directory, host.command(words), host.environment)
    node.start()
    try:
        node.wait_for(lambda: announced in node.log, f"{announced} ...")
    except BaseException:
        node.stop()
        raise
    return node
