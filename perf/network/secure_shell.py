"""Mounts a directory over OpenSSH: a private sshd on loopback, and sshfs."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from perf.network.contract import LOOPBACK_ADDRESS, NetworkError
from perf.network.namespaces import dies_with_starter, run_tool

READY_S = 20.0

_CONFIGURATION = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {work}/host_key
PidFile none
AuthorizedKeysFile {work}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
Subsystem sftp internal-sftp
"""


def mount_over_ssh(work: Path, far: Path, near: Path, stack: ExitStack, cipher: str = "") -> None:
    """Mount the directory `far` at `near`. The stack unmounts it and ends the server.

    work: for keys and logs. cipher: OpenSSH's choice by default.
    """
    server = shutil.which("sshd") or "/usr/sbin/sshd"
    for tool in (server, "sshfs"):
        if shutil.which(tool) is None:
            raise NetworkError(f"{tool} is not installed: apt-get install openssh-server sshfs")
    for key in ("host_key", "user_key"):
        run_tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(work / key))
    with socket.create_server((LOOPBACK_ADDRESS, 0)) as probe:
        port = probe.getsockname()[1]
    (work / "sshd_config").write_text(_CONFIGURATION.format(port=port, work=work))
    Path("/run/sshd").mkdir(exist_ok=True)
    with (work / "sshd.log").open("wb") as log:
        process = subprocess.Popen(
            [*dies_with_starter(), server, "-D", "-e", "-f", str(work / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stderr=log,
        )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    _wait_for(port, work / "sshd.log")
    options = {
        "port": str(port),
        "IdentityFile": str(work / "user_key"),
        "IdentitiesOnly": "yes",
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": str(work / "known_hosts"),
        **({"Ciphers": cipher} if cipher else {}),
    }
    arguments = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    run_tool("sshfs", f"root@{LOOPBACK_ADDRESS}:{far}", str(near), *arguments)
    stack.callback(run_tool, "umount", "-l", str(near))


def _wait_for(port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK_ADDRESS, port)) == 0:
                return
        if time.monotonic() > deadline:
            raise NetworkError(f"sshd does not listen: {log.read_text()[-500:]}")
        time.sleep(0.02)
