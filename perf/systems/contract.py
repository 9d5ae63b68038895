"""The interfaces between the runner, a system, and the system's clients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from attrs import field, frozen

from perf.campaigns.campaign import Encoding, Format, Load
from perf.network.contract import Placement
from perf.sampling.usage import Trace, Usage

T = TypeVar("T")


@frozen(kw_only=True)
class Fetch:
    """One download. length: bytes from offset on; None for the whole file."""

    cap: str
    target: Path
    offset: int = 0
    length: int | None = None


class NotOfferedError(Exception):
    """The system lacks the operation or client; the message says which it has."""


@frozen(kw_only=True)
class Capabilities:
    """What a system does with its bytes, to make unfair comparisons visible.

    expansion: bytes stored per byte put. encrypts: who cannot read the bytes: `server` (encrypted by the client),
    `line` (only in transit), or `nobody`. proves: what, if anything, lets the client verify returned data. syncs:
    whether "stored" means on the medium. survives: servers that may fail. versions: of every program involved. notes:
    anything else that makes a comparison unfair.
    """

    expansion: float
    encrypts: Literal["server", "line", "nobody"]
    proves: str
    syncs: bool
    survives: int
    versions: Mapping[str, str] = field(factory=dict)
    notes: str = ""


@frozen(kw_only=True)
class Member:
    """A process that runs as long as its system; its children are found through it.

    role: `client` for those that work for the client, `server` with its number, or `other` (introducers, ...).
    """

    role: Literal["client", "server", "other"]
    name: str
    pid: int
    index: int = 0


class WarmClient(Protocol):
    """A running client process with established connections."""

    @property
    def pids(self) -> Sequence[int]:
        """The processes that do the client's work."""

    @property
    def ports(self) -> Collection[int]:
        """The ports on which it listens for the harness; their traffic is not the grid's."""

    def put(self, sources: Sequence[Path], concurrency: int, format: Format) -> list[str]:
        """Upload the files; return their capabilities in order, write capabilities of mutable ones."""

    def get(self, fetches: Sequence[Fetch], concurrency: int) -> list[float]:
        """Download to the files; return for each the seconds until its first byte arrived."""

    def overwrite(self, cap: str, offset: int, source: Path) -> None:
        """Overwrite bytes of a mutable file with those of the source."""

    def make_directories(self, count: int) -> list[str]:
        """Create empty directories one after the other; return their write capabilities."""

    def add_children(self, directory: str, children: Sequence[tuple[str, str]], *, at_once: bool) -> None:
        """Link children, as (name, capability), to a directory: in one change, or in one each."""

    def list_children(self, directory: str) -> list[str]:
        """The names in a directory."""

    def status(self) -> str:
        """Its status pages on recent operations; empty if they say no more than trace."""

    def trace(self) -> Trace | None:
        """What was observed of the last request; None if unsupported."""


class CommandLine(Protocol):
    """How to write a system's commands."""

    @property
    def pids(self) -> Sequence[int]:
        """Processes other than the command that do the client's work."""

    def put(self, source: Path) -> list[str]:
        """The command that stores the file and prints its capability."""

    def get(self, cap: str, target: Path) -> list[str]:
        """The command that downloads to the file."""


class System(Protocol):
    """A grid and its clients, as the runner uses them. Each encoding has its own clients."""

    label: str

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding], placement: Placement) -> None:
        """Start a fresh grid with its files below root, on the hosts of an existing topology; ready on return."""

    def stop(self) -> None:
        """End every process and remove every file, even after a failed start."""

    def capabilities(self, encoding: Encoding) -> Capabilities:
        """What it does with bytes, and its versions; also available before start."""

    def refuses(self, load: Load, client: str) -> str:
        """Why it cannot do this load; empty if it can. The runner skips such cells, and the report lists them."""

    def members(self) -> Sequence[Member]:
        """All running processes, which are frozen while another system is measured."""

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int, format: Format = "chk"
    ) -> tuple[Sequence[str], Usage]:
        """Upload the files with this client, `concurrency` at a time; return their capabilities in order."""

    def get(self, client: str, encoding: Encoding, fetches: Sequence[Fetch], concurrency: int) -> Usage:
        """Download to the files, `concurrency` at a time."""

    def ask(self, encoding: Encoding, operation: Callable[[WarmClient], T], client: str = "warm") -> tuple[T, Usage]:
        """Measure any other operation of the warm client or the gateway."""

    def server_cpus_s(self) -> list[float]:
        """Processor seconds of each server so far."""

    def server_peaks(self) -> list[int]:
        """The peak memory of each server in bytes."""
