"""The library as a client in this process, connected straight to storage nodes by the FURLs in their directories.

No introducer and no node directory of its own: tests that put something between the engine and a server use this.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import evolve
from twisted.internet.defer import DeferredList, ensureDeferred

from grid.caps import ChkCap, LitCap, parse_cap
from grid.codec import base32
from grid.engine.grid import Encoding, Grid
from grid.immutable.check import CheckResult, check
from grid.immutable.get import ImmutableFile
from grid.immutable.put import PutResult, put
from grid.placement.leases import LeaseMaster
from grid.ports import Buffer, Runtime, ServerId, ServerIdentity, StorageServer
from grid.wire.foolscap.client.server import FoolscapServer
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.locators import parse_furl
from tests.support.grids import grid_of


class BytesSource:
    """Bytes in memory as the source of a put."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size(self) -> int:
        return len(self._data)

    async def read_at(self, offset: int, length: int) -> Buffer:
        return self._data[offset : offset + length]


class BytesSink:
    """Bytes in memory as where a get writes."""

    def __init__(self) -> None:
        self.data = bytearray()

    async def write(self, data: Buffer) -> None:
        self.data += data


class LibraryClient:
    """Puts, gets and checks immutable files on the storage nodes whose directories it was given."""

    def __init__(self, directories: Sequence[Path], runtime: Runtime, encoding: Encoding) -> None:
        """The connections are made as they are needed; close() ends them."""
        self._runtime = runtime
        self._tubs: list[Any] = []
        self.servers: list[StorageServer] = [self._server(directory) for directory in directories]
        self.grid = grid_of(self.servers, runtime, encoding=encoding, convergence=b"", leases=LeaseMaster(bytes(32)))

    def _server(self, directory: Path) -> FoolscapServer:
        furl = parse_furl((directory / "private" / "storage.furl").read_text().strip())
        public_key = (directory / "node.pubkey").read_text().strip().removeprefix("pub-")
        identity = ServerIdentity(
            server_id=ServerId(public_key),
            nickname=directory.name,
            permutation_seed=base32.decode(public_key.removeprefix("v0-")),
            lease_seed=furl.node_id,
        )
        tub = start_tub()
        self._tubs.append(tub)
        return FoolscapServer(identity, furl, tub, self._runtime.clock)

    async def put(
        self, data: bytes, servers: Sequence[StorageServer] | None = None, happy: int | None = None
    ) -> PutResult:
        """Store the bytes on all servers, or on the views of them that are given; always with the same secrets."""
        encoding = self.grid.encoding if happy is None else evolve(self.grid.encoding, happy=happy)
        return await put(BytesSource(data), evolve(self._on(servers), encoding=encoding))

    async def get(self, cap: ChkCap | LitCap | str, servers: Sequence[StorageServer] | None = None) -> bytes:
        """The file's bytes from all servers, or from those given."""
        sink = BytesSink()
        await ImmutableFile(file_cap(cap), self._on(servers)).read(sink)
        return bytes(sink.data)

    async def check(self, cap: ChkCap | LitCap | str) -> CheckResult:
        """Every byte of every share verified."""
        return await check(file_cap(cap), self.grid, verify=True)

    def _on(self, servers: Sequence[StorageServer] | None) -> Grid:
        return self.grid if servers is None else evolve(self.grid, servers=servers)

    async def close(self) -> None:
        """End all connections."""
        for server in self.servers:
            if isinstance(server, FoolscapServer):
                server.close()
        await DeferredList([ensureDeferred(stop_tub(tub)) for tub in self._tubs])


def file_cap(cap: ChkCap | LitCap | str) -> ChkCap | LitCap:
    """The cap, parsed if it is text; it must be that of an immutable file."""
    parsed = parse_cap(cap) if isinstance(cap, str) else cap
    assert isinstance(parsed, ChkCap | LitCap)
    return parsed
