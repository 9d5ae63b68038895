"""A whole grid on this machine under one directory: an introducer, storage nodes and a client directory.

Owns their layout and processes. Each node is a separate process that listens on loopback only. It stops only processes
that a node's `running.process` names or that it started itself.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from grid.errors import ConfigError, GridError
from grid.node.addresses import LOOPBACK, free_port
from grid.node.create import Listening, NewClient, NewStorage, create_client, create_introducer, create_storage
from grid.node.directory import open_directory
from grid.node.files import make_private_directory, read_text
from grid.node.redaction import one_line
from grid.node.running import STOP_S, RunningProcess, ask_to_stop, find_running, patience_s, stop
from grid.node.share_file import DOOR_URLS
from grid.plural import counted
from grid.values import define, frozen

MAX_NODES = 250
DEFAULT_NODES = 10
START_S = 90.0
RESERVED_SPACE = "100M"

GRID_COMMAND: Sequence[str] = (sys.executable, "-m", "grid.cli")
"""Runs `grid`, as each node's process does."""

_POLL_S = 0.02
_LOG_TAIL = 4096


@frozen
class LocalGrid:
    """The directories of a local grid, whether or not they exist yet."""

    path: Path

    @property
    def introducer(self) -> Path:
        """The introducer's directory."""
        return self.path / "introducer"

    @property
    def client(self) -> Path:
        """The client directory."""
        return self.path / "client"

    def storage(self, index: int) -> Path:
        """The directory of a storage node, counted from 0."""
        return self.path / f"storage{index}"

    @property
    def storages(self) -> list[Path]:
        """The existing storage nodes."""
        found = [path for path in self.path.glob("storage*") if path.name.removeprefix("storage").isdigit()]
        return sorted(found, key=lambda path: int(path.name.removeprefix("storage")))

    @property
    def exists(self) -> bool:
        """Whether a local grid was created here."""
        return self.introducer.is_dir()


@define(eq=False)
class StartedNode:
    """A node's directory, and its process if started here."""

    directory: Path
    child: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """The directory's last component."""
        return self.directory.name

    @property
    def ended(self) -> bool:
        """Whether it was started here and has ended."""
        return self.child is not None and self.child.poll() is not None

    def explain(self) -> GridError:
        """Why it ended: the last line of its output."""
        lines = log_tail(self.directory)
        why = lines[-1] if lines else f"with status {self.child.returncode if self.child else '?'}"
        return GridError(f"{self.name} did not start: {why} (see {log_file(self.directory)})")


def log_file(directory: Path) -> Path:
    """The log file of a node of a local grid."""
    return directory / "logs" / "node.log"


def log_tail(directory: Path) -> list[str]:
    """The last lines of a node's log."""
    try:
        with log_file(directory).open("rb") as file:
            file.seek(max(0, log_file(directory).stat().st_size - _LOG_TAIL))
            return [line for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return []


def share_counts(node_count: int) -> tuple[int, int, int]:
    """needed, happy and total for a grid of this size: 3, 7, 10 from ten servers on, proportionally less below."""
    total = min(10, node_count)
    needed = max(1, total * 3 // 10)
    return needed, max(needed, total * 7 // 10), total


def start_grid(grid: LocalGrid, node_count: int | None, *, detach: bool, started: list[StartedNode]) -> None:
    """Create what does not exist and start what does not run; GridError if that is impossible.

    node_count: storage nodes; None: those that exist, or ten. started: receives every node when it starts, so the
    caller can stop them in any event.
    """
    if node_count is not None and not 1 <= node_count <= MAX_NODES:
        raise ConfigError(f"a local grid has from 1 to {MAX_NODES} storage nodes")
    if grid.path.exists() and not grid.exists and any(grid.path.iterdir()):
        raise ConfigError(f"{grid.path} is not empty and holds no local grid: name another directory with --dir")
    make_private_directory(grid.path)
    existing = len(grid.storages)
    _require_count(grid, node_count, existing)
    count = node_count or existing or DEFAULT_NODES
    ports: set[int] = set()
    if not grid.exists:
        create_introducer(grid.introducer, _loopback(ports), nickname="introducer")
    started.append(start_node(grid.introducer, detach=detach))
    furl = _wait_for_furl(started[-1])
    for index in range(count):
        directory = grid.storage(index)
        if not directory.exists():
            new = NewStorage(
                listening=_loopback(ports),
                nickname=directory.name,
                introducer_furl=furl,
                reserved_space=RESERVED_SPACE,
            )
            create_storage(directory, new)
        started.append(start_node(directory, detach=detach))
    if not grid.client.exists():
        needed, happy, total = share_counts(count)
        create_client(
            grid.client,
            NewClient(nickname=_name_of(grid), introducer_furl=furl, needed=needed, happy=happy, total=total),
        )


def _name_of(grid: LocalGrid) -> str:
    """The name of its directory, which is shown on the first page of the client's gateway."""
    return one_line(os.fsencode(grid.path.resolve().name).decode("utf-8", "replace"))


def _require_count(grid: LocalGrid, wanted: int | None, existing: int) -> None:
    """Raise ConfigError if the grid has a different number of storage nodes, which cannot be changed now."""
    if wanted is None or not existing or wanted == existing:
        return
    nodes = counted(existing, "storage node")
    if wanted < existing:
        raise ConfigError(
            f"the grid in {grid.path} has {nodes}: leave --nodes out, or name another directory with --dir"
        )
    if any(running_processes(grid).values()):
        raise ConfigError(
            f"the grid in {grid.path} is running already, with {nodes}: `grid down --dir {grid.path}` stops it, and"
            f" `grid up --dir {grid.path} --nodes {wanted}` starts it with more"
        )


def start_gateway(grid: LocalGrid, *, detach: bool, started: list[StartedNode]) -> str:
    """Start the gateway of the grid's client unless it runs, and return its URL; GridError on failure."""
    file = grid.client / "node.url"
    if find_running(grid.client) is None:
        file.unlink(missing_ok=True)
        settings = open_directory(grid.client).settings
        listen = settings.web_port or f"tcp:{free_port(LOOPBACK)}:interface={LOOPBACK}"
        arguments = ["gateway", str(grid.client), "--listen", listen, *_lasting(detach)]
        started.append(_start(grid.client, arguments, detach=detach))
        wait_until(file.exists, started[-1:], "the gateway", START_S)
    return (read_text(file) or "").strip()


def door_urls(grid: LocalGrid) -> dict[str, str | None]:
    """The addresses of the other interfaces of the client's running gateway, by name; None for those that it has not."""
    return {name: (read_text(grid.client / file) or "").strip() or None for name, file in DOOR_URLS.items()}


def start_node(directory: Path, *, detach: bool) -> StartedNode:
    """Start the node's process unless it runs. Unless detached, it ends with this process."""
    open_directory(directory)
    if find_running(directory) is not None:
        return StartedNode(directory)
    return _start(directory, ["run", str(directory), *_lasting(detach)], detach=detach)


def _lasting(detach: bool) -> list[str]:
    """Arguments that make a process end with this one, unless it is detached."""
    return [] if detach else ["--stop-with-stdin"]


def _start(directory: Path, arguments: Sequence[str], *, detach: bool) -> StartedNode:
    log_file(directory).parent.mkdir(exist_ok=True)
    with log_file(directory).open("ab") as log:
        child = subprocess.Popen(
            [*GRID_COMMAND, *arguments],
            stdin=subprocess.DEVNULL if detach else subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return StartedNode(directory, child)


def wait_until(condition: Callable[[], bool], nodes: Sequence[StartedNode], what: str, timeout_s: float) -> None:
    """Wait until the condition holds; GridError if a node ends first or it takes too long."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        for node in nodes:
            if node.ended:
                raise node.explain()
        if time.monotonic() > deadline:
            raise GridError(f"still waiting for {what} after {timeout_s:.0f} s")
        time.sleep(_POLL_S)


def stop_nodes(directories: Sequence[Path]) -> list[Path]:
    """Stop the nodes of these directories in parallel, and return those that ran."""
    asked = [(directory, process) for directory in directories if (process := ask_to_stop(directory)) is not None]
    deadline = time.monotonic() + max((patience_s(directory) for directory, _ in asked), default=0.0)
    while any(process.is_alive() for _, process in asked) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    for directory, _ in asked:
        stop(directory, patience_s=0.5)
    return [directory for directory, _ in asked]


def end_children(nodes: Sequence[StartedNode]) -> bool:
    """Stop the processes started here, the introducer last; return whether all ended when asked."""
    clean = True
    for node in reversed(nodes):
        if node.child is not None and node.child.poll() is None:
            node.child.terminate()
    patience = max((patience_s(node.directory) for node in nodes if node.child is not None), default=STOP_S)
    deadline = time.monotonic() + patience
    for node in nodes:
        if node.child is None:
            continue
        try:
            clean &= node.child.wait(max(0.1, deadline - time.monotonic())) == 0
        except subprocess.TimeoutExpired:
            node.child.kill()
            node.child.wait()
            clean = False
        if node.child.stdin is not None:
            node.child.stdin.close()
    return clean


def running_processes(grid: LocalGrid) -> dict[Path, RunningProcess | None]:
    """The grid's nodes that are processes, each with its running process or None."""
    return {directory: find_running(directory) for directory in (grid.introducer, *grid.storages)}


def _loopback(ports: set[int]) -> Listening:
    port = free_port(LOOPBACK, ports)
    ports.add(port)
    return Listening(port=f"tcp:{port}:interface={LOOPBACK}", location=f"tcp:{LOOPBACK}:{port}")


def _wait_for_furl(introducer: StartedNode) -> str:
    """The FURL, once the introducer accepts connections: a client that connects too early retries much later."""
    file = introducer.directory / "private" / "introducer.furl"
    (hint,) = open_directory(introducer.directory).settings.tub_location or ("",)
    port = int(hint.rpartition(":")[2])

    def takes_connections() -> bool:
        try:
            with socket.create_connection((LOOPBACK, port), timeout=1.0):
                return bool((read_text(file) or "").strip())
        except OSError:
            return False

    wait_until(takes_connections, [introducer], "the introducer", START_S)
    return (read_text(file) or "").strip()
