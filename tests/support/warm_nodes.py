"""Nodes that start warm: real child processes, forked from one that has imported what nodes need.

    with warm_nodes(), ProcessGrid(...) as grid:
        ...

A node takes more than a second of processor time to import what it is made of, and a tenth of that so. Its pid, its streams, its
files, its signals and its end are its own, as of a node started afresh. It must not be used where the memory of a node, or its
start, is what a test is about. Commands other than `PROGRAM run ...` start as always.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from attrs import define

from perf.processes import node_process
from perf.processes.node_directory import grid_executable, tahoe_executable
from perf.processes.node_process import Process
from tests.support.warm_caller import pack_call
from tests.support.warm_programs import socket_of_grid, socket_of_tahoe

PR_SET_CHILD_SUBREAPER = 36

C_LIBRARY = ctypes.CDLL(None)

_spawn_afresh = node_process.spawn


@define
class Child:
    """A child of this process that subprocess knows nothing of."""

    pid: int
    _command: Sequence[str]
    _status: int | None = None

    def poll(self) -> int | None:
        """Its exit code if it has ended."""
        if self._status is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; subprocess.TimeoutExpired if it does not end in time."""
        if (status := self.poll()) is not None:
            return status
        watched = os.pidfd_open(self.pid)
        try:
            ended, _, _ = select.select([watched], [], [], timeout)
        finally:
            os.close(watched)
        status = self.poll()
        if not ended or status is None:
            raise subprocess.TimeoutExpired(list(self._command), timeout or 0.0)
        return status


@contextmanager
def warm_nodes() -> Iterator[None]:
    """Nodes that are started meanwhile start warm."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_process, "spawn", _spawn)
        yield


def _spawn(command: Sequence[str], log: BinaryIO, environment: Mapping[str, str], folder: Path | None) -> Process:
    program, *arguments = command
    if arguments[:1] != ["run"]:
        return _spawn_afresh(command, log, environment, folder)
    if program == grid_executable():
        path, module = socket_of_grid(), "grid.cli"
    elif program == os.environ.get("GRID_TAHOE") and program == tahoe_executable():
        path, module = socket_of_tahoe(), program
    else:
        return _spawn_afresh(command, log, environment, folder)
    with Path(os.devnull).open("rb") as nothing, _adopting(), socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        variables = [os.fsencode(part) for pair in environment.items() for part in pair]
        text = pack_call(os.getpid(), module, os.fsencode(folder or Path.cwd()), arguments, variables)
        socket.send_fds(server, [len(text).to_bytes(4, "big")], [nothing.fileno(), log.fileno(), log.fileno()])
        server.sendall(text)
        answer = server.recv(4, socket.MSG_WAITALL)
        assert len(answer) == 4 and server.recv(1) == b"", "the server of warm programs started no node"
    return Child(int.from_bytes(answer, "big"), command)


@contextmanager
def _adopting() -> Iterator[None]:
    """Whatever descends from this process and loses its parent meanwhile becomes a child of this process."""
    C_LIBRARY.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        C_LIBRARY.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
