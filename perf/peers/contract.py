"""The interface of peers: other programs that store files, used as their users use them, and their guarantees.

A peer keeps everything below the directory that it is started with, has new secrets for each start, and runs in a clean
environment: the user's own configuration of the same program does not affect it.
"""

from __future__ import annotations

import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from attrs import field, frozen

from perf.network.contract import LOOPBACK, Host, Placement
from perf.peers.programs import Program, find_program
from perf.processes.node_process import wait_until

SESSIONS_S = 10.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class PeerError(Exception):
    """A peer failed; the message contains the last output of its program."""


@frozen(kw_only=True)
class Properties:
    """What a peer does with bytes, to make unfair comparisons visible.

    expansion: bytes stored per byte put. encrypts: who cannot read the bytes: `server` (encrypted by the client),
    `line` (only in transit), or `nobody`. proves: what the client verifies of returned data, whatever the server does.
    syncs: whether "stored" means on the medium. survives: servers or disks that may fail.
    """

    expansion: float
    encrypts: Literal["server", "line", "nobody"]
    proves: str
    syncs: bool
    survives: int
    notes: str = ""


@frozen(kw_only=True)
class Cost:
    """The cost of one operation: wall seconds, and its own process's usage.

    Zeros if a permanent process did the work. peak_rss: also 0 if it is not known, because the harness itself held more. each: when each of several transfers began and ended, in seconds from the start, where the
    harness makes them itself.
    """

    seconds: float
    user_s: float = 0.0
    system_s: float = 0.0
    peak_rss: int = 0
    each: Sequence[tuple[float, float]] = field(default=(), repr=False)


class Peer(ABC):
    """A program, its server if it needs one, and its users' operations. Names contain no slash.

    After `start`, all operations may be called from several threads at once, and raise PeerError.
    """

    programs: tuple[str, ...] = ()
    """Its programs, as named in the index of installed peers."""

    stays = False
    """Whether its client is a permanent process rather than a command per operation."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.root = Path()
        self.client_host = LOOPBACK
        self.placement = Placement()

    @property
    @abstractmethod
    def properties(self) -> Properties:
        """Its guarantees."""

    @property
    def server_pids(self) -> Sequence[int]:
        """Its server processes; empty for a program without one."""
        return ()

    @property
    def client_pids(self) -> Sequence[int]:
        """Permanent processes that do the client's work."""
        return ()

    @property
    def other_pids(self) -> Sequence[int]:
        """Permanent processes that are neither, such as introducers."""
        return ()

    @property
    def status(self) -> Callable[[], str] | None:
        """What fetches the status page of its client; None for a client without one."""
        return None

    def forget(self) -> None:  # noqa: B027 - most clients keep nothing
        """Let the client drop the events of earlier transfers."""

    def timeline(self) -> str | None:
        """The events of the slowest transfer since `forget`, in the form of perf.sampling.timeline; None if the client reports none."""
        return None

    def versions(self) -> Mapping[str, str]:
        """Versions by program; MissingPeerError, which names what is not installed."""
        return {name: self.program(name).version for name in self.programs}

    def program(self, name: str) -> Program:
        """An installed program; MissingPeerError."""
        return find_program(name)

    def start(self, root: Path, placement: Placement | None = None) -> None:
        """Create the directory and start everything; MissingPeerError, PeerError.

        placement: where servers and the client's programs run. A peer's only server runs on the first server host.
        """
        self.versions()
        self.root = root
        self.placement = placement or Placement()
        self.client_host = self.placement.client
        root.mkdir(parents=True, mode=0o700)
        for name in ("home", "remote"):
            (root / name).mkdir(mode=0o700)
        self.bring_up(self.placement.server(0))

    def stop(self) -> None:
        """End every process and remove every file, even after a failed start."""
        self.take_down()
        if self.root != Path() and self.root.exists():
            shutil.rmtree(self.root)

    @abstractmethod
    def bring_up(self, server: Host) -> None:
        """Start the server and write configurations; the directory exists."""

    @abstractmethod
    def take_down(self) -> None:
        """End what bring_up started."""

    def settle(self) -> None:
        """Wait until servers have reaped the processes that served clients, and count their usage."""
        for pid in self.server_pids:
            children = Path(f"/proc/{pid}/task/{pid}/children")
            wait_until(lambda children=children: not children.read_text().strip(), "sessions to end", SESSIONS_S)  # type: ignore[misc]

    def environment(self) -> dict[str, str]:
        """The environment of every program: nothing of the user's, and an empty home directory."""
        home = str(self.root / "home")
        return {"PATH": PATH, "HOME": home, "LANG": "C.UTF-8", "TMPDIR": home, **self.client_host.environment}

    @property
    def store_folders(self) -> Sequence[Path]:
        """Where its servers keep what is stored; empty if that is on no disk of this machine."""
        return [self.root / "remote"]

    def write_secret(self, name: str, text: str) -> Path:
        """Write a private file."""
        path = self.root / name
        path.touch(mode=0o600)
        path.write_text(text)
        return path

    def stored_bytes(self) -> int:
        """Bytes allocated on the server's disks now."""
        return sum(path.stat().st_blocks * 512 for path in (self.root / "remote").rglob("*") if path.is_file())

    @abstractmethod
    def put(self, source: Path, name: str) -> Cost:
        """Store one file."""

    @abstractmethod
    def get(self, name: str, target: Path) -> Cost:
        """Fetch one file; the target does not exist yet."""

    def get_one_of(self, folder: str, entry: str, target: Path) -> Cost:
        """Fetch one file of a stored folder; the target does not exist yet."""
        return self.get(f"{folder}/{entry}", target)

    @abstractmethod
    def put_folder(self, source: Path, name: str) -> Cost:
        """Store the files of a flat folder at once, with the program's own concurrency."""

    @abstractmethod
    def get_folder(self, name: str, target: Path) -> Cost:
        """Fetch them; the target does not exist yet."""

    @abstractmethod
    def list_folder(self, name: str) -> list[str]:
        """The names of the files in a stored folder, sorted."""

    @abstractmethod
    def delete(self, name: str) -> Cost:
        """Delete a stored file."""

    @abstractmethod
    def delete_folder(self, name: str) -> Cost:
        """Delete a stored folder with all its files."""


def new_secret() -> str:
    """40 random characters."""
    return secrets.token_hex(20)
