"""Peers by their labels in campaigns and records.

`rclone@versitygw+tuned`: a client program, a server if there is a choice, and options. perf.campaigns.labels.PEERS
lists them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perf.campaigns.labels import PEERS, parse_label
from perf.peers.boto3_peer import Boto3
from perf.peers.contract import Peer
from perf.peers.copy import Copy
from perf.peers.object_servers import GridServer
from perf.peers.presigned import Presigned
from perf.peers.restic import Restic
from perf.peers.s3_commands import AwsCommand, Rclone, S3Peer, S5cmd
from perf.peers.sftp_door import SftpAtGrid, Sshfs, SshfsAtGrid
from perf.peers.ssh import Scp, Sftp

S3_CLIENTS: Mapping[str, type[S3Peer]] = {
    "rclone": Rclone,
    "s5cmd": S5cmd,
    "aws": AwsCommand,
    "boto3": Boto3,
    "http": Presigned,
}
PLAIN: Mapping[str, type[Scp | Sftp | Copy]] = {
    "scp": Scp,
    "sftp": Sftp,
    "sftp@grid": SftpAtGrid,
    "sshfs": Sshfs,
    "sshfs@grid": SshfsAtGrid,
    "cp": Copy,
}


def make_peer(text: str, servers: int = 10) -> Peer:
    """The peer with this label, not started; ValueError if there is none. servers: storage nodes behind a door of ours."""
    label = parse_label(text)
    if not label.is_peer:
        raise ValueError(f"{text} is a grid; the peers are {', '.join(PEERS)}")
    client, _, server = label.base.partition("@")
    if client in S3_CLIENTS:
        found = S3_CLIENTS[client](text, server, label.options)
        if isinstance(found.server, GridServer):
            found.server.grid.server_count = servers
            found.server.packs = "packed" in label.options
        return found
    if client == "restic":
        return Restic(text, server, label.options)
    plain = PLAIN[label.base](text, label.options)
    if isinstance(plain, SftpAtGrid):
        plain.grid.server_count = servers
    return plain


def default_and_tuned() -> Sequence[str]:
    """Every peer with its defaults, and each that has options for speed also with those."""
    return [
        text
        for base, options in PEERS.items()
        for text in (base, f"{base}+tuned")
        if text == base or "tuned" in options
    ]
