"""What a peer is: a program of others that stores files, driven as its users drive it, with what it does for them.

A peer keeps everything below the directory that it is started with, has secrets of its own for each start, and runs in an
environment of its own: nothing that configures the same program for the user who measures reaches it.
"""

from __future__ import annotations

import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from attrs import frozen

from perf.network.contract import LOOPBACK, Host, Placement
from perf.peers.programs import Program, find_program
from perf.processes.node_process import wait_until

SESSIONS_S = 10.0
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class PeerError(Exception):
    """A peer did not do what it was asked; the message has the last words of its program."""


@frozen(kw_only=True)
class Properties:
    """What a peer does with bytes, so that nobody compares unlike things in silence.

    expansion: bytes stored for each byte put. encrypts: who cannot read the bytes: `server` (encrypted by the client),
    `line` (in transit only), or `nobody`. proves: what the client proves of what comes back, whatever the server did.
    syncs: whether "stored" means that it is on the medium. survives: servers or disks that may fail.
    """

    expansion: float
    encrypts: Literal["server", "line", "nobody"]
    proves: str
    syncs: bool
    survives: int
    notes: str = ""


@frozen(kw_only=True)
class Cost:
    """Of one operation: wall seconds, and what its own process used. Zeros where a process that stays did the work."""

    seconds: float
    user_s: float = 0.0
    system_s: float = 0.0
    peak_rss: int = 0


class Peer(ABC):
    """A program, its server if it needs one, and the operations of its users. Names are plain: no slash in them.

    After `start` all operations may be called from several threads at once, and raise PeerError.
    """

    programs: tuple[str, ...] = ()
    """What it runs, as the index of installed peers names it."""

    stays = False
    """Whether its client is a process that stays, rather than a command for each operation."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.root = Path()
        self.client_host = LOOPBACK
        self.placement = Placement()

    @property
    @abstractmethod
    def properties(self) -> Properties:
        """What it does with bytes."""

    @property
    def server_pids(self) -> Sequence[int]:
        """Its server processes; none of a program that needs none."""
        return ()

    @property
    def client_pids(self) -> Sequence[int]:
        """Processes that stay and do the client's work."""
        return ()

    @property
    def other_pids(self) -> Sequence[int]:
        """Processes that stay and are neither, such as introducers."""
        return ()

    def versions(self) -> Mapping[str, str]:
        """Program -> version, of all that it runs; MissingPeerError names what is not installed."""
        return {name: self.program(name).version for name in self.programs}

    def program(self, name: str) -> Program:
        """An installed program; MissingPeerError."""
        return find_program(name)

    def start(self, root: Path, placement: Placement | None = None) -> None:
        """Make the directory, and bring up all that runs; MissingPeerError, PeerError.

        placement: where servers and the client's programs run. A peer that has one server has it on the first server host.
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
        """End every process and remove every file; also after a start that failed."""
        self.take_down()
        if self.root != Path() and self.root.exists():
            shutil.rmtree(self.root)

    @abstractmethod
    def bring_up(self, server: Host) -> None:
        """Start the server and write configurations; the directory is there."""

    @abstractmethod
    def take_down(self) -> None:
        """End what bring_up started."""

    def settle(self) -> None:
        """Return when servers have reaped the processes that served clients, and count what those used as their own."""
        for pid in self.server_pids:
            children = Path(f"/proc/{pid}/task/{pid}/children")
            wait_until(lambda children=children: not children.read_text().strip(), "sessions to end", SESSIONS_S)  # type: ignore[misc]

    def environment(self) -> dict[str, str]:
        """Of every program that runs: nothing of the user's own but a home that is empty."""
        home = str(self.root / "home")
        return {"PATH": PATH, "HOME": home, "LANG": "C.UTF-8", "TMPDIR": home, **self.client_host.environment}

    def write_secret(self, name: str, text: str) -> Path:
        """A file that nobody else can read."""
        path = self.root / name
        path.touch(mode=0o600)
        path.write_text(text)
        return path

    def stored_bytes(self) -> int:
        """What lies on the server's disks now, by what is allocated."""
        return sum(path.stat().st_blocks * 512 for path in (self.root / "remote").rglob("*") if path.is_file())

    @abstractmethod
    def put(self, source: Path, name: str) -> Cost:
        """Store one file."""

    @abstractmethod
    def get(self, name: str, target: Path) -> Cost:
        """Fetch one file; the target does not exist yet."""

    @abstractmethod
    def put_folder(self, source: Path, name: str) -> Cost:
        """Store the files of a folder, which has no folders in it, in one go: as the program does it by itself."""

    @abstractmethod
    def get_folder(self, name: str, target: Path) -> Cost:
        """Fetch them; the target does not exist yet."""

    @abstractmethod
    def list_folder(self, name: str) -> list[str]:
        """The names of the files in a stored folder, in order."""

    @abstractmethod
    def delete(self, name: str) -> Cost:
        """Remove a stored file."""

    @abstractmethod
    def delete_folder(self, name: str) -> Cost:
        """Remove a stored folder with all its files."""


def new_secret() -> str:
    """40 characters that nobody can guess."""
    return secrets.token_hex(20)
