"""What the runner asks of a system, and a system of its clients."""

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
    """The system has no such operation or client; the message says which it has."""


@frozen(kw_only=True)
class Capabilities:
    """What a system does with the bytes that it is given, so that nobody compares apples with pears in silence.

    expansion: bytes stored for each byte put. encrypts: who cannot read the bytes: `server` (encrypted by the client),
    `line` (in transit only), or `nobody`. proves: whether the client proves what comes back, by what. syncs: whether
    "stored" means that it is on the medium. survives: servers that may fail. versions: program -> version, of everything that runs.
    notes: anything else that makes a comparison unfair.
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
    """A process that runs for as long as its system does; what it started is found through it.

    role: `client` for what works for the client, `server` with its number, `other` (introducers, ...).
    """

    role: Literal["client", "server", "other"]
    name: str
    pid: int
    index: int = 0


class WarmClient(Protocol):
    """A client process that runs already and has its connections."""

    @property
    def pids(self) -> Sequence[int]:
        """The processes that do the client's work."""

    @property
    def ports(self) -> Collection[int]:
        """Where it listens for the harness: what goes through these is not the grid's."""

    def put(self, sources: Sequence[Path], concurrency: int, format: Format) -> list[str]:
        """Upload the files; their caps in order, write caps of mutable ones."""

    def get(self, fetches: Sequence[Fetch], concurrency: int) -> list[float]:
        """Download to the files; for each the seconds until its first byte was there."""

    def overwrite(self, cap: str, offset: int, source: Path) -> None:
        """Put the bytes of the source in the place of those in a mutable file."""

    def make_directories(self, count: int) -> list[str]:
        """New empty directories, one after the other; their write caps."""

    def add_children(self, directory: str, children: Sequence[tuple[str, str]], *, at_once: bool) -> None:
        """Link children, of name and cap, to a directory: in one change, or each by a change of its own."""

    def list_children(self, directory: str) -> list[str]:
        """The names in a directory."""

    def status(self) -> str:
        """What its status pages say of recent operations; empty where it has none that say more than trace."""

    def trace(self) -> Trace | None:
        """What was seen of the last question; None where nothing can be."""


class CommandLine(Protocol):
    """How to write a system's commands."""

    @property
    def pids(self) -> Sequence[int]:
        """Processes beside the command that do the client's work."""

    def put(self, source: Path) -> list[str]:
        """The command that prints the cap of the file."""

    def get(self, cap: str, target: Path) -> list[str]:
        """The command that downloads to the file."""


class System(Protocol):
    """A grid and its clients, as the runner drives them. Each encoding has clients of its own."""

    label: str

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding], placement: Placement) -> None:
        """Bring up a fresh grid with its files below root, on the hosts of a topology that exists; ready when this returns."""

    def stop(self) -> None:
        """End every process and remove every file; also after a start that failed."""

    def capabilities(self, encoding: Encoding) -> Capabilities:
        """What it does with bytes, and its versions; before start as well."""

    def refuses(self, load: Load, client: str) -> str:
        """Why it has no such operation; empty if it has. The runner leaves such cells out, and the report names them."""

    def members(self) -> Sequence[Member]:
        """Every process that runs now. All of them are frozen while another system is measured."""

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int, format: Format = "chk"
    ) -> tuple[Sequence[str], Usage]:
        """Upload the files, at most `at_once` at a time, with the client of that name; their caps in order."""

    def get(self, client: str, encoding: Encoding, fetches: Sequence[Fetch], concurrency: int) -> Usage:
        """Download to the files, at most `at_once` at a time."""

    def ask(self, encoding: Encoding, operation: Callable[[WarmClient], T], client: str = "warm") -> tuple[T, Usage]:
        """Measure anything else that is asked of the warm client, or of the gateway."""

    def server_cpus_s(self) -> list[float]:
        """Processor seconds of each server so far."""

    def server_peaks(self) -> list[int]:
        """Bytes that each server has held at its peak."""
