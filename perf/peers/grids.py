"""Grids as peers: Grid and Tahoe-LAFS 1.20 with their commands, a client node's gateway, or Grid's library."""

from __future__ import annotations

import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path, PurePath
from typing import Literal

from attrs import evolve

from perf.campaigns.campaign import Encoding
from perf.campaigns.labels import Label, parse_label
from perf.network.contract import Host
from perf.peers.commands import read_peer, run_peer, timed, timed_each
from perf.peers.contract import Cost, Peer, PeerError, Properties
from perf.peers.library_client import LibraryClient
from perf.peers.programs import MissingPeerError, settle_tahoe
from perf.processes.clients import Client, GridClient, WebClient
from perf.processes.node_directory import Kind, Transport, grid_executable, tahoe_executable
from perf.processes.node_process import child_environment
from perf.processes.process_grid import ClientSettings, ProcessGrid

ANSWER_S = 300.0

GridClientName = Literal["cli", "gateway", "links", "library", "cp", "transfer", "transfer-pack"]
"""transfer, transfer-pack: folders use `grid transfer`, the latter with packs; single files use cli. links: a gateway that
stores each file in one directory, one after the other.
"""


def grid_properties(settings: ClientSettings, *, proves: str, syncs: bool) -> Properties:
    """What a grid does with the bytes of a client with these settings."""
    return Properties(
        expansion=settings.total / settings.needed,
        encrypts="server",
        proves=proves,
        syncs=syncs,
        survives=settings.total - settings.needed,
    )


@cache
def tahoe_version(program: str) -> str:
    """What `tahoe --version` says, asked once; MissingPeerError."""
    try:
        said = read_peer([program, "--version"], child_environment())
    except (OSError, PeerError) as error:
        raise MissingPeerError("tahoe", f"it does not say its version: {error}") from None
    return said.strip().removeprefix("tahoe-lafs/")


class GridPeer(Peer):
    """A grid of ten servers, 3-of-10, with a client of GridClientName.

    Names are kept here, since the grid knows capabilities.
    """

    def __init__(
        self, text: str, client: GridClientName = "cli", servers: int = 10, encoding: Encoding | None = None
    ) -> None:
        """text: a grid of perf.campaigns.labels.

        servers: without an encoding, fewer than ten get one share each, and fewer are needed.
        """
        super().__init__(f"{text}/{client}")
        self.kind: Kind = "grid" if parse_label(text).is_grid else "tahoe"
        self.client = client
        self._label: Label = parse_label(text)
        self._servers = servers
        self._encoding = encoding
        self._grid: ProcessGrid | None = None
        self._clients: list[Client] = []
        self._used = 0
        self._library: LibraryClient | None = None
        self._caps: dict[str, str] = {}
        self._folder = ""
        self._turn = threading.Lock()
        self.stays = client in ("gateway", "links", "library")
        self.words: Sequence[str] = ()
        """Additional options of `grid transfer`."""

    @property
    def settings(self) -> ClientSettings:
        """The client's settings: 3-of-10 with ten servers."""
        usual = evolve(ClientSettings.usual(self._servers, self.kind), gateway=self.client in ("gateway", "links"))
        given = self._encoding
        if given is None:
            return usual
        return evolve(usual, needed=given.needed, happy=given.happy, total=given.total)

    @property
    def properties(self) -> Properties:
        """The same for both programs, except for syncing."""
        is_synced = self._label.durability == "full"
        return grid_properties(self.settings, proves="every byte, from the capability", syncs=is_synced)

    @property
    def server_pids(self) -> Sequence[int]:
        """The storage nodes."""
        return [node.pid for node in self._grid.storage] if self._grid is not None else []

    @property
    def client_pids(self) -> Sequence[int]:
        """The client nodes in use, if there are any: 1.20's commands use one as well."""
        library = [self._library.pid] if self._library is not None else []
        used = self._clients[: self._used]
        return [*library, *(client.node.pid for client in used if isinstance(client, WebClient))]

    @property
    def other_pids(self) -> Sequence[int]:
        """The introducer, and clients that are not in use."""
        staying = {*self.server_pids, *self.client_pids}
        return [node.pid for node in self._grid.nodes if node.pid not in staying] if self._grid is not None else []

    @property
    def gateway_url(self) -> str:
        """The URL of the first client's gateway."""
        client = self._clients[0]
        assert isinstance(client, WebClient)
        return client.url

    @property
    def status(self) -> Callable[[], str] | None:
        """The status page of the first client that is a node, whose gateway 1.20's commands use too."""
        node = next((client for client in self._clients[:1] if isinstance(client, WebClient)), None)
        return node.status if node is not None else None

    def forget(self) -> None:
        """The library alone keeps events."""
        if self._library is not None:
            self._library.forget()

    def timeline(self) -> str | None:
        """The library's events."""
        return self._library.timeline() if self._library is not None else None

    def versions(self) -> dict[str, str]:
        """What 1.20's program says; Grid's version is the commit in a record's environment."""
        return {} if self.kind == "grid" else {"tahoe": tahoe_version(settle_tahoe())}

    def bring_up(self, server: Host) -> None:
        """Start a grid of one kind of node, and one client."""
        transport: Transport = "foolscap" if self._label.base.endswith("@foolscap") else "http"
        self._grid = ProcessGrid(
            self.root / "grid",
            introducer=self.kind,
            storage=[self.kind] * self._servers,
            force_foolscap=transport == "foolscap",
            transport=transport,
            durability=self._label.durability or "full",
            plaintext_reads=self._label.base == "grid@http-plain",
            placement=self.placement,
        )
        self._grid.__enter__()
        self.use_clients(1)
        if self.client == "library":
            self._library = self.open_library()

    def open_library(self) -> LibraryClient:
        """Start a warm process of Grid's library on the first client's directory; the caller stops it."""
        codec, options = self._label.codec or "isal", self._label.options
        return LibraryClient(self._clients[0].directory, self._servers, codec, options, self.placement.client)

    def use_clients(self, count: int) -> None:
        """Use this many clients, each with its own node directory; those of an earlier call stay idle."""
        assert self._grid is not None
        self._used = count
        while len(self._clients) < count:
            self._clients.append(self._grid.add_client(self.settings))

    def restart(self) -> None:
        """Start the library's process or the gateway anew, and wait until it is connected."""
        if self._library is not None:
            self._library.stop()
            self._library = self.open_library()
            return
        client = self._clients[0]
        assert isinstance(client, WebClient)
        assert self._grid is not None
        client.node.stop()
        client.node.start()
        self._grid.wait_connected(client)

    def warm_up(self, name: str) -> None:
        """Read the first five bytes of a stored file; PeerError."""
        cap, count = self.cap(name), 5
        if self._library is not None:
            target = self.root / "warm-up"
            self._library.get(cap, target, count)
            target.unlink()
            return
        head = {"Range": f"bytes=0-{count - 1}"}
        request = urllib.request.Request(f"{self.gateway_url}uri/{urllib.parse.quote(cap, safe='')}", headers=head)
        timed(lambda: urllib.request.urlopen(request, timeout=ANSWER_S).close())

    def take_down(self) -> None:
        """Stop every node."""
        library, self._library = self._library, None
        if library is not None:
            library.stop()
        grid, self._grid = self._grid, None
        self._clients.clear()
        self._used = 0
        self._folder = ""
        if grid is not None:
            grid.stop()

    def stored_bytes(self) -> int:
        """Bytes on all servers."""
        return sum(path.stat().st_blocks * 512 for path in self.share_files())

    def command(self, *words: str, number: int = 0) -> list[str]:
        """`grid -d CLIENT WORDS` or `tahoe -d CLIENT WORDS`. number: of the client."""
        client = self._clients[number]
        if isinstance(client, GridClient):
            return self.client_host.command(client.command(*words))
        program = tahoe_executable() if self.kind == "tahoe" else grid_executable()
        return self.client_host.command([program, "-d", str(client.directory), *words])

    @property
    def store_folders(self) -> Sequence[Path]:
        """The shares of all servers."""
        return [node.directory / "storage" / "shares" for node in self._grid.storage] if self._grid is not None else []

    def put(self, source: Path, name: str, number: int = 0, words: Sequence[str] = ()) -> Cost:
        """`grid put FILE`, or PUT /uri. number: of the client. words: additional options of the command."""
        if self.client == "gateway":
            return self._through_gateway(lambda client: self._caps.__setitem__(name, client.put(source)), number)
        if self.client == "links":
            return self._linked(lambda client, folder, entry: client.put_in(folder, entry, source), name)
        if self._library is not None:
            library = self._library
            return timed(lambda: self._caps.__setitem__(name, library.put(source)))
        answer = self.root / f"{name}.cap"
        cost = run_peer(self.command("put", *words, str(source), number=number), self.environment(), output=answer)
        self._caps[name] = answer.read_text().strip()
        return cost

    def get(self, name: str, target: Path, number: int = 0) -> Cost:
        """`grid get CAP FILE`, or GET /uri/CAP. number: of the client."""
        cap = self.cap(name)
        if self.client == "gateway":
            return self._through_gateway(lambda client: client.get(cap, target), number)
        if self.client == "links":
            return self._linked(lambda client, folder, entry: client.get_from(folder, entry, target), name)
        if self._library is not None:
            library = self._library
            return timed(lambda: library.get(cap, target))
        return run_peer(self.command("get", cap, str(target), number=number), self.environment())

    def put_folder(self, source: Path, name: str) -> Cost:
        """`grid cp FILES ALIAS:NAME`, or PUT /uri for each file, 8 at a time."""
        if self.stays:
            return timed_each(lambda path: self.put(path, f"{name}/{path.name}"), sorted(source.iterdir()))
        if self.client.startswith("transfer"):
            return self._transfer_folder(source, name)
        return self.copy_into(sorted(source.iterdir()), name)

    def _transfer_folder(self, source: Path, name: str) -> Cost:
        """`grid transfer FOLDER ALIAS:NAME`."""
        self.make_folder(name)
        self._caps |= {f"{name}/{path.name}": f"bench:{name}/{path.name}" for path in source.iterdir()}
        packs = "--pack" if self.client == "transfer-pack" else "--no-pack"
        return run_peer(self.command("transfer", packs, *self.words, str(source), f"bench:{name}"), self.environment())

    def copy_into(self, paths: Sequence[Path], name: str, *words: str) -> Cost:
        """`grid cp FILES ALIAS:NAME`, which skips files already stored. words: additional options."""
        self.make_folder(name)
        return run_peer(self.copy_command(paths, name, *words), self.environment())

    def make_folder(self, name: str) -> None:
        """`grid mkdir`, once per folder."""
        if "bench:" not in self._caps:
            read_peer(self.command("create-alias", "bench"), self.environment())
            self._caps["bench:"] = ""
        if f"{name}:" not in self._caps:
            read_peer(self.command("mkdir", f"bench:{name}"), self.environment())
            self._caps[f"{name}:"] = ""

    def copy_command(self, paths: Sequence[Path], name: str, *words: str) -> list[str]:
        """The command that copies the files into an existing folder."""
        self._caps |= {f"{name}/{path.name}": f"bench:{name}/{path.name}" for path in paths}
        return self.command("cp", *words, *map(str, paths), f"bench:{name}")

    def check(self, name: str) -> Cost:
        """`grid check`, which reads no contents."""
        return run_peer(self.command("check", self.cap(name)), self.environment())

    def repair(self, name: str) -> Cost:
        """`grid check --repair`."""
        return run_peer(self.command("check", "--repair", self.cap(name)), self.environment())

    def share_files(self) -> set[Path]:
        """The share files of all servers."""
        return {path for folder in self.store_folders for path in folder.rglob("*") if path.is_file()}

    def get_folder(self, name: str, target: Path, *words: str) -> Cost:
        """`grid cp -r ALIAS:NAME FOLDER`, or GET for each file, 8 at a time. words: additional options."""
        target.mkdir()
        if self.stays:
            names = [one for one in self._caps if one.startswith(f"{name}/")]
            return timed_each(lambda one: self.get(one, target / one.partition("/")[2]), names)
        if self.client.startswith("transfer"):
            command = self.command("transfer", *self.words, f"bench:{name}", str(target))
            return run_peer(command, self.environment())
        cost = run_peer(self.command("cp", "-r", *words, f"bench:{name}", str(target)), self.environment())
        copy = target / PurePath(name).name  # It keeps its name.
        moved = copy.rename(target.with_name(f"{target.name}-copied"))
        moved.replace(target)  # An empty folder gives way.
        return cost

    def list_folder(self, name: str) -> list[str]:
        """`grid ls`, or the names that were put."""
        if self.stays:
            return sorted(one.partition("/")[2] for one in self._caps if one.startswith(f"{name}/"))
        return sorted(read_peer(self.command("ls", f"bench:{name}"), self.environment()).splitlines())

    def delete(self, name: str) -> Cost:
        """Forget the capability: files on a grid expire."""
        del self._caps[name]
        return Cost(seconds=0.0)

    def delete_folder(self, name: str) -> Cost:
        """`grid unlink`, or forget the capabilities."""
        for one in [one for one in self._caps if one.startswith(f"{name}/")]:
            del self._caps[one]
        if self.stays:
            return Cost(seconds=0.0)
        return run_peer(self.command("unlink", f"bench:{name}"), self.environment())

    def cap(self, name: str) -> str:
        """The capability of a stored file; PeerError if there is none."""
        if name not in self._caps:
            raise PeerError(f"nothing is stored as {name}")
        return self._caps[name]

    def _through_gateway(self, operation: Callable[[WebClient], object], number: int) -> Cost:
        client = self._clients[number]
        assert isinstance(client, WebClient)
        return timed(lambda: operation(client))

    def _linked(self, operation: Callable[[WebClient, str, str], object], name: str) -> Cost:
        """Through the gateway, on files of one directory, one at a time."""
        client = self._clients[0]
        assert isinstance(client, WebClient)
        with self._turn:
            self._folder = self._folder or client.make_directory()
            self._caps[name] = ""
            return timed(lambda: operation(client, self._folder, name.replace("/", "-")))
