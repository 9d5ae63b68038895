"""Peers' servers: processes that end with the run that started them in any event, and their resource usage."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from perf.network.contract import Host
from perf.peers.contract import PeerError
from perf.peers.programs import MissingPeerError
from perf.processes.node_process import free_ports, wait_until

START_S = 60.0
STOP_S = 10.0
_TICKS_S = os.sysconf("SC_CLK_TCK")


@frozen(kw_only=True)
class ServerUse:
    """A server's processor seconds so far, including reaped children, and its peak memory in bytes."""

    user_s: float
    system_s: float
    peak_rss: int


class ServerProcess:
    """One server in the foreground. The kernel kills it when the thread that started it ends."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, host: Host, ports: Sequence[int]
    ) -> None:
        """Wait until all ports accept connections; PeerError with the end of its log if it ends first."""
        tether = shutil.which("setpriv")
        if tether is None:
            raise MissingPeerError("setpriv", "it is part of util-linux, and ends servers together with the run")
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [tether, "--pdeathsig", "KILL", "--", *host.command(command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environment, **host.environment},
            )
        try:
            for port in ports:
                wait_until(lambda port=port: self._answers(host.address, port), f"port {port}", START_S)  # type: ignore[misc]
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The server's pid."""
        return self._process.pid

    def stop(self) -> None:
        """End the server."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answers(self, address: str, port: int) -> bool:
        if self._process.poll() is not None:
            said = self._log.read_text(errors="replace")[-600:].strip()
            raise PeerError(f"the server ended with status {self._process.returncode}: {said}")
        try:
            socket.create_connection((address, port), timeout=1.0).close()
        except OSError:
            return False
        return True


def server_use(pid: int) -> ServerUse:
    """Usage of a process and the children that it has reaped, accurate to 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, children_user, children_system = (int(field) / _TICKS_S for field in fields[11:15])
    peak = 0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            peak = int(line.split()[1]) * 1024
    return ServerUse(user_s=user + children_user, system_s=system + children_system, peak_rss=peak)


def free_port() -> int:
    """A port on which nothing listens now."""
    (port,) = free_ports(1)
    return port
