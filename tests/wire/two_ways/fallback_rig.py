"""An in-memory server with two ways to it, whose connections a test breaks, and calls to make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from grid.ports import NewShares, SlotSecrets
from grid.wire.two_ways.fallback import FallbackServer, Way
from tests.support.scripted_way import ScriptedWay
from tests.support.virtual_time import VirtualRuntime
from tests.wire.foolscap.loopback import IDENTITY, INDEX, LEASE, ScriptedServer, number

SLOT = SlotSecrets(write_enabler=b"w" * 32, lease=LEASE)
WRONG_KEY = "server x is not the server that answers there: its key differs"


Addresses = frozenset[tuple[str, int]]


class Rig:
    """An in-memory server, two ways to it, and the code that chooses between them."""

    def __init__(self, http: Addresses = frozenset(), foolscap: Addresses = frozenset()) -> None:
        """http, foolscap: the addresses that the ways lead to."""
        self.runtime = VirtualRuntime()
        self.inner = ScriptedServer(shares={number(1): b"sample of a share"})
        self.http = ScriptedWay(self.inner, "http", self.runtime.clock)
        self.foolscap = ScriptedWay(self.inner, "foolscap", self.runtime.clock)
        self.server = FallbackServer(
            IDENTITY,
            Way(name="HTTP", make=lambda: self.http, addresses=http),
            Way(name="Foolscap", make=lambda: self.foolscap, addresses=foolscap),
            self.runtime.clock,
        )

    def run(self, work: Awaitable[Any]) -> Any:
        async def body() -> Any:
            return await work

        return self.runtime.run(body())

    def read(self) -> bytes:
        return bytes(self.run(self.server.read_shares(INDEX, {number(1): [(0, 6)]}))[1][0])

    def wait(self, seconds: float) -> None:
        self.run(self.runtime.clock.sleep(seconds))

    @property
    def now(self) -> float:
        return self.runtime.clock.now()

    def executed(self, method: str) -> int:
        return sum(call[0] == method for call in self.inner.calls)


IDEMPOTENT: dict[str, Callable[[FallbackServer], Awaitable[object]]] = {
    "get_version": lambda server: server.get_version(),
    "find_shares": lambda server: server.find_shares(INDEX, [(0, 1)]),
    "read_shares": lambda server: server.read_shares(INDEX, {number(1): [(0, 1)]}),
    "read_slot": lambda server: server.read_slot(INDEX, frozenset(), [(0, 1)]),
    "add_lease": lambda server: server.add_lease(INDEX, LEASE),
    "store_shares": lambda server: server.store_shares(
        [NewShares(storage_index=INDEX, secrets=LEASE, shares={number(0): [b"x"]})]
    ),
}
ONCE: dict[str, Callable[[FallbackServer], Awaitable[object]]] = {
    "allocate": lambda server: server.allocate(INDEX, LEASE, frozenset([number(5)]), 10),
    "test_and_write": lambda server: server.test_and_write(INDEX, SLOT, {}),
    "advise_corrupt": lambda server: server.advise_corrupt("immutable", INDEX, number(1), "bad"),
}
