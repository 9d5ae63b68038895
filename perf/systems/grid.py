"""Grid as a system: storage nodes, an introducer, the library in a warm process, and the command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from grid.version import __version__
from perf.campaigns.campaign import Format, Load
from perf.campaigns.labels import Codec, Durability
from perf.network.contract import LOOPBACK, Host
from perf.processes.clients import GridClient, GridGateway
from perf.processes.installation import OWN, Installation
from perf.processes.node_directory import Kind, Transport
from perf.processes.node_process import child_environment, tether
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.sampling.usage import Trace
from perf.systems.contract import CommandLine, Fetch, WarmClient
from perf.systems.gateway import HttpGateway
from perf.systems.processes import ProcessSystem


class LibraryError(Exception):
    """The warm process failed to carry out a request."""


class LibraryProcess:
    """The warm client: perf.systems.library in a separate process, with requests as lines of JSON on its stdin."""

    def __init__(
        self,
        directory: Path,
        servers: int,
        codec: Codec,
        installation: Installation = OWN,
        host: Host = LOOPBACK,
        *,
        options: Sequence[str] = (),
    ) -> None:
        """Wait until it is connected to this many servers; LibraryError if it lacks the codec.

        installation: provides the library, and the harness's part that runs it. host: where it runs. options: of
        perf.systems.engine_options.
        """
        words = [str(directory), str(servers), codec, *options]
        self._process = subprocess.Popen(
            [*tether(), *host.command(installation.module("perf.systems.library", *words))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=installation.tree,
            env={**child_environment(), **host.environment},
        )
        (present,) = self._answer()
        if present != codec:
            self.stop()
            raise LibraryError(f"the library codes with {present}, not with {codec}")

    @property
    def pids(self) -> Sequence[int]:
        """The one process."""
        return [self._process.pid]

    @property
    def ports(self) -> Collection[int]:
        """Empty: the harness uses pipes."""
        return ()

    def put(self, sources: Sequence[Path], concurrency: int, format: Format) -> list[str]:
        """Upload the files with the library's engines."""
        return [str(cap) for cap in self._ask("put", [[str(source), format] for source in sources], concurrency)]

    def get(self, fetches: Sequence[Fetch], concurrency: int) -> list[float]:
        """Download to the files, each opened anew."""
        items = [[fetch.cap, str(fetch.target), fetch.offset, fetch.length] for fetch in fetches]
        return [float(first) for first in self._ask("get", items, concurrency)]

    def overwrite(self, cap: str, offset: int, source: Path) -> None:
        """Change bytes of a mutable file, opened anew."""
        self._ask("overwrite", [[cap, offset, str(source)]])

    def make_directories(self, count: int) -> list[str]:
        """Create empty directories in the library's default format."""
        return [str(cap) for cap in self._ask("mkdir", [[]] * count)]

    def add_children(self, directory: str, children: Sequence[tuple[str, str]], *, at_once: bool) -> None:
        """Link children to a directory that is opened once."""
        self._ask("add", [[directory, children, at_once]])

    def list_children(self, directory: str) -> list[str]:
        """The names in a directory, opened anew."""
        (names,) = self._ask("list", [[directory]])
        return [str(name) for name in names]

    def status(self) -> str:
        """Empty: the trace says more."""
        return ""

    def trace(self) -> Trace:
        """The observer's events of the last request."""
        requests, timeline = self._ask("trace", [])
        return Trace(requests, timeline)

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, what: str, items: Sequence[Sequence[Any]], concurrency: int = 1) -> list[Any]:
        assert self._process.stdin is not None
        question = {"what": what, "items": items, "concurrency": concurrency}
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> list[Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LibraryError(f"the warm process ended with status {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise LibraryError(answer["error"])
        return list(answer["results"])


@frozen
class GridCommands:
    """`grid put` and `grid get`; nothing runs between commands."""

    client: GridClient

    @property
    def pids(self) -> Sequence[int]:
        """Empty: the command does everything."""
        return []

    def put(self, source: Path) -> list[str]:
        """`grid put FILE`."""
        return self.client.command("put", str(source))

    def get(self, cap: str, target: Path) -> list[str]:
        """`grid get CAP FILE`."""
        return self.client.command("get", cap, str(target))


class GridSystem(ProcessSystem):
    """Storage nodes of Grid."""

    kind: Kind = "grid"

    def __init__(
        self,
        label: str,
        transport: Transport = "foolscap",
        *,
        plaintext_reads: bool = False,
        durability: Durability = "full",
        codec: Codec = "isal",
        installation: Installation = OWN,
        options: Sequence[str] = (),
    ) -> None:
        """label: its name in records. plaintext_reads: only over HTTP. codec, options: of the warm client.

        installation: used by nodes, commands and the warm client.
        """
        super().__init__(
            label, transport, plaintext_reads=plaintext_reads, durability=durability, program=installation.program
        )
        self._codec: Codec = codec
        self._installation = installation
        self._options = options
        self._libraries: list[LibraryProcess] = []

    def versions(self) -> Mapping[str, str]:
        """Grid's version; the record's header names the commit."""
        return {"grid": __version__}

    def start_clients(self, grid: ProcessGrid, settings: ClientSettings) -> tuple[WarmClient, CommandLine]:
        """A library process and a command line over the same client directory."""
        client = grid.add_client(settings)
        assert isinstance(client, GridClient)
        host = grid.placement.client
        library = LibraryProcess(
            client.directory, grid.server_count, self._codec, self._installation, host, options=self._options
        )
        self._libraries.append(library)
        return library, GridCommands(client)

    def start_gateway(self, grid: ProcessGrid, settings: ClientSettings, warm: WarmClient) -> WarmClient:
        """A separate node that serves the web interface."""
        client = grid.add_client(evolve(settings, gateway=True))
        assert isinstance(client, GridGateway)
        return HttpGateway(client)

    def refuses(self, load: Load, client: str) -> str:
        """As for both programs; in addition, engine options apply only to the library's warm process."""
        if self._options and client != "warm":
            return f"{', '.join(self._options)}: only the client `warm` has options of the engine"
        return super().refuses(load, client)

    def stop_clients(self) -> None:
        """End the library processes."""
        while self._libraries:
            self._libraries.pop().stop()
