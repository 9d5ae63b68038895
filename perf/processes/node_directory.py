"""Writes the directories that nodes run from, for Tahoe-LAFS 1.20 and for Grid alike. [spec cli 4.1]

Without `create-node`, a grid of ten starts seven seconds sooner.
"""

from __future__ import annotations

import base64
import os
import socket
import sys
from pathlib import Path
from typing import Literal

from attrs import field, frozen

from perf.network.contract import LOOPBACK, LOOPBACK_ADDRESS, Host
from perf.processes.node_process import NodeProcess

Kind = Literal["grid", "tahoe"]
"""The program that runs a node."""

Role = Literal["introducer", "storage", "client"]

Transport = Literal["auto", "foolscap", "http"]


@frozen(kw_only=True)
class NodeSettings:
    """The settings of one node.

    port: to listen on; 0 for none. address: of its host. convergence, lease_master: 32 bytes, or None to let the node
    draw them. segment_size: the largest segment of new files, in bytes, or None for the default of 1 MiB. gateway:
    whether it serves the web interface, on any port. transport, plaintext_reads, durability: keys of Grid's nodes,
    which 1.20 does not have. program: the `grid` that runs it; the installed one by default.
    """

    kind: Kind
    role: Role
    introducer_furl: str = ""
    port: int = 0
    address: str = LOOPBACK_ADDRESS
    needed: int = 3
    happy: int = 7
    total: int = 10
    force_foolscap: bool = True
    reserved_space: str = "1M"
    segment_size: int | None = None
    transport: Transport = "auto"
    plaintext_reads: bool = False
    durability: Literal["full", "none"] = "full"
    gateway: bool = False
    convergence: bytes | None = field(default=None, repr=False)
    lease_master: bytes | None = field(default=None, repr=False)
    program: str = ""


def tahoe_executable() -> str:
    """The `tahoe` that GRID_TAHOE names; RuntimeError if it is not set."""
    path = os.environ.get("GRID_TAHOE", "")
    if not path:
        raise RuntimeError("set GRID_TAHOE to the path of a tahoe 1.20 executable")
    return path


def grid_executable() -> str:
    """The `grid` installed beside the running Python."""
    return str(Path(sys.executable).with_name("grid"))


def make_node(directory: Path, settings: NodeSettings, host: Host = LOOPBACK) -> NodeProcess:
    """Write the directory, and return the process, not started, that runs it on the host."""
    (directory / "private").mkdir(parents=True)
    (directory / "private").chmod(0o700)
    for name, content in node_files(directory.name, settings).items():
        path = directory / name
        path.write_text(content)
        if path.parent != directory:
            path.chmod(0o600)
    if settings.kind == "grid":
        (directory / "grid.cfg").symlink_to("tahoe.cfg")
    return NodeProcess(directory, host.command([*node_command(settings), str(directory)]), host.environment)


def node_files(nickname: str, settings: NodeSettings) -> dict[str, str]:
    """The initial files of a node's directory, by path. Grid's nodes also read tahoe.cfg as grid.cfg."""
    role = "introducer" if settings.role == "introducer" else "client"
    files = {"tahoe.cfg": _configuration(nickname, settings), f"tahoe-{role}.tac": ""}
    if settings.introducer_furl:
        files["private/introducers.yaml"] = f"introducers:\n  default:\n    furl: {settings.introducer_furl}\n"
    for name, secret in (("convergence", settings.convergence), ("secret", settings.lease_master)):
        if secret is not None:
            files[f"private/{name}"] = _base32(secret) + "\n"
    return files


def node_command(settings: NodeSettings) -> list[str]:
    """The command that runs such a node in the foreground, except for its directory."""
    if settings.kind == "tahoe":
        return [tahoe_executable(), "run", "--allow-stdin-close"]
    return [settings.program or grid_executable(), "run"]


def start_node(node: NodeProcess) -> None:
    """Restart a storage node, and wait until it accepts connections."""
    node.start()
    wait_listening(node)


def wait_listening(node: NodeProcess) -> None:
    """Wait until a storage node accepts connections at its configured port."""
    configuration = (node.directory / "tahoe.cfg").read_text()
    address, _, port = configuration.partition("tub.location = tcp:")[2].partition("\n")[0].rpartition(":")

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((address, int(port))) == 0

    node.wait_for(listens, "to take connections")


def _configuration(nickname: str, settings: NodeSettings) -> str:
    lines = [
        "[node]",
        f"nickname = {nickname}",
        f"web.port = {'tcp:0:interface=127.0.0.1' if settings.gateway else ''}",
        f"tub.port = {f'tcp:{settings.port}:interface={settings.address}' if settings.port else 'disabled'}",
        f"tub.location = {f'tcp:{settings.address}:{settings.port}' if settings.port else 'disabled'}",
    ]
    if settings.role == "introducer":
        return "\n".join(lines) + "\n"
    lines += [
        "[client]",
        f"shares.needed = {settings.needed}",
        f"shares.happy = {settings.happy}",
        f"shares.total = {settings.total}",
        f"force_foolscap = {settings.force_foolscap}",
    ]
    if settings.segment_size is not None:
        lines.append(f"shares._max_immutable_segment_size_for_testing = {settings.segment_size}")
    if settings.kind == "grid":
        # 1.20 refuses files with Grid's own keys, so they are written only where they differ from the defaults.
        lines += [f"transport = {settings.transport}"] if settings.transport != "auto" else []
        lines += ["plaintext_reads = true"] if settings.plaintext_reads else []
    lines += ["[storage]", f"enabled = {settings.role == 'storage'}"]
    if settings.role == "storage":
        lines += [f"reserved_space = {settings.reserved_space}", f"force_foolscap = {settings.force_foolscap}"]
        if settings.kind == "grid" and settings.durability != "full":
            lines.append(f"durability = {settings.durability}")
        if settings.kind == "grid" and settings.plaintext_reads:
            lines.append(f"plaintext_reads = tcp:0:interface={settings.address}")
    return "\n".join(lines) + "\n"


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode("ascii").rstrip("=").lower()
