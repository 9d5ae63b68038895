"""A client node of Grid with an open SFTP door, configured like a node of 1.20."""

from __future__ import annotations

import base64
from pathlib import Path

from attrs import frozen
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from perf.processes.clients import GridClient
from perf.processes.node_process import NodeProcess, free_ports
from perf.processes.process_grid import ClientSettings, ProcessGrid

ACCOUNT = "alice"


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
    config = client.directory / "tahoe.cfg"
    text = config.read_text().replace("web.port = \n", f"web.port = {web}\n")
    config.write_text(
        f"{text}[sftpd]\nenabled = true\nport = tcp:{port}:interface=127.0.0.1\n"
        "host_pubkey_file = private/ssh_host_key.pub\nhost_privkey_file = private/ssh_host_key\n"
        "accounts.file = private/accounts\n"
    )
    host = grid.placement.client
    node = NodeProcess(
        client.directory, host.command([*client.command()[:1], "run", str(client.directory)]), host.environment
    )
    node.start()
    try:
        node.wait_for(lambda: "SFTP interface at" in node.log, "its SFTP interface")
    except BaseException:
        node.stop()
        raise
    return SftpDoor(client=client, node=node, port=port, root=root, key=key)
