"""Carries out, through the ports, the requests that all kinds of files share. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from grid.caps import StorageIndex
from grid.engine.requests import AddLease, AdviseCorrupt, Compute, Deliver, OpenRun, ReadSource, Request, ServerRequest
from grid.placement.leases import LeaseMaster
from grid.ports import LeaseSecrets, Runtime, Sink, Source, StorageServer

T = TypeVar("T")


class BasePerformer:
    """The servers and data of one operation. Subclasses add the requests of one kind of file."""

    kind: Literal["immutable", "mutable"]
    """How corruption reports to servers name the kind of share."""

    def __init__(
        self,
        servers: Sequence[StorageServer],
        storage_index: StorageIndex,
        runtime: Runtime,
        *,
        leases: LeaseMaster | None = None,
        sink: Sink | None = None,
        source: Source | None = None,
    ) -> None:
        self._servers = {server.identity.server_id: server for server in servers}
        self._storage_index = storage_index
        self._runtime = runtime
        self._leases = leases
        self._sink = sink
        self._source = source

    async def __call__(self, request: Request) -> object:
        """Carry out one request and return its answer."""
        if isinstance(request, ServerRequest):
            return await self._ask(self._servers[request.server_id], request)
        return await self._work(request)

    async def _ask(self, server: StorageServer, request: ServerRequest) -> object:
        """Send a request to its server and return the answer."""
        index = self._storage_index
        match request:
            case AddLease():
                await server.add_lease(index, self._lease(server))
            case AdviseCorrupt():
                await server.advise_corrupt(self.kind, index, request.share_number, request.reason)
            case _:
                raise AssertionError(f"no server answers {type(request).__name__}")
        return None

    async def _work(self, request: Request) -> object:
        """Do local work and return its result."""
        match request:
            case OpenRun():
                return await self._runtime.cpu.run(request.run.open)
            case Compute():
                return await self._runtime.cpu.run(_run_job, request.job)
            case Deliver():
                assert self._sink is not None
                await self._sink.write(request.data)
                return None
            case ReadSource():
                assert self._source is not None
                return await self._source.read_at(request.offset, request.length)
        raise AssertionError(f"nobody carries out {type(request).__name__}")

    def _lease(self, server: StorageServer) -> LeaseSecrets:
        assert self._leases is not None
        return self._leases.secrets_for(self._storage_index, server.identity.lease_seed)


def _run_job(job: Callable[[], T]) -> T:
    return job()
