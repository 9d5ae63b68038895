"""Two or more clients that change one directory at the same time, with servers that are late to some of them.

An acknowledged change stays, as long as no server loses what it has acknowledged.
"""

from __future__ import annotations

import random
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred

from grid.caps import DirectoryCap, LitCap
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.engine.grid import Encoding
from grid.errors import GridError
from grid.mutable.share.layout import parse_header
from tests.mutable.test_writers import together
from tests.support.depth import examples
from tests.support.grids import grid_of
from tests.support.late_way import SOON, LateWay, Travel
from tests.support.mutable_key import known_key
from tests.support.scripted_slots import SlotServer
from tests.support.virtual_time import VirtualRuntime

FILE = LitCap(data=b"contents")
NEVER = (50.0, 50.0)
"""Seconds of a journey that ends when the others are done."""


class Editors:
    """Clients of servers, each with a way of its own to each of them. A single share is enough to read a directory."""

    def __init__(self, count: int = 2, encoding: Encoding | None = None, server_count: int = 5) -> None:
        self.runtime = VirtualRuntime()
        self.encoding = encoding or Encoding(k=1, n=5, happy=1)
        self.servers = [SlotServer(f"server{index}", self.runtime.clock) for index in range(server_count)]
        self.ways = [[LateWay(server, self.runtime.clock) for server in self.servers] for _ in range(count + 1)]
        self.stores = [self.store(ways) for ways in self.ways]
        self.root = self.run(self.stores[-1].create_directory(key=known_key()))

    def store(self, ways: Sequence[LateWay]) -> FileStore:
        """A client that has these ways to the servers, and knows nothing yet."""
        return FileStore(grid=grid_of(ways, self.runtime, encoding=self.encoding))

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runtime.run(coroutine)

    def open(self, editor: int) -> Directory:
        return self.stores[editor].directory(self.root)

    def calmed(self) -> None:
        """No way is late any more, and everything under way arrives."""
        for ways in self.ways:
            for way in ways:
                way.travel = lambda call: SOON
        self.runtime.settle()

    def stranger(self) -> FileStore:
        """A client that has just come."""
        return self.store([LateWay(server, self.runtime.clock) for server in self.servers])

    def new_versions(self, server: SlotServer) -> set[bytes]:
        """The root hashes of the versions on a server that replace the first one."""
        shares = server.slots[self.root.storage_index or b""].values()
        prefixes = [parse_header(bytes(share))[0] for share in shares]
        return {prefix.root_hash for prefix in prefixes if prefix.seqnum == 2}

    def names(self) -> list[str]:
        """The names in the root, as a stranger finds them."""
        return list(self.run(self.stranger().directory(self.root).list()))

    def tree(self) -> dict[str, list[str]]:
        """The directories in the root and the names in them, as a stranger finds them."""
        store = self.stranger()
        found: Mapping[str, Child] = self.run(store.directory(self.root).list())
        return {
            name: list(self.run(store.directory(child.target).list()))
            for name, child in found.items()
            if isinstance(child.target, DirectoryCap)
        }


def arrange(editors: Editors, first_count: int, later: tuple[float, float]) -> None:
    """Writes of the first client reach the first servers at once and the others later; with the second one it is the other way round."""
    for editor in range(2):
        for index, way in enumerate(editors.ways[editor]):
            is_first = (index < first_count) == (editor == 0)
            way.travel = writes_in(SOON if is_first else later)


def writes_in(seconds: tuple[float, float]) -> Travel:
    """A way over which writes travel that long, and reads do not."""
    return lambda call: seconds if call == "test_and_write" else SOON


def once_soon(seconds: tuple[float, float]) -> Travel:
    """A way over which reads and the first write do not travel, and further writes do."""
    first = [SOON]

    def travel(call: str) -> tuple[float, float]:
        if call != "test_and_write":
            return SOON
        return first.pop() if first else seconds

    return travel


@pytest.mark.parametrize("happy", [1, 3])
@pytest.mark.parametrize("first_count", [1, 2, 3, 4])
def test_make_directories_when_two_clients_make_one_at_once_then_both_use_the_same(
    first_count: int, happy: int
) -> None:
    """Each is the first at some servers, so each gives way to the other: neither may keep to a version that loses."""
    editors = Editors(encoding=Encoding(k=1, n=5, happy=happy))
    arrange(editors, first_count, (0.1, 0.01))

    async def put(editor: int) -> None:
        directory = await editors.open(editor).make_directories(["new"])
        await directory.edit([SetChild(f"mine-{editor}", FILE)])

    assert editors.run(together([put(0), put(1)])) == [None, None]
    editors.calmed()
    assert editors.tree() == {"new": ["mine-0", "mine-1"]}


def test_edit_when_each_of_two_clients_reaches_other_servers_first_then_both_entries_are_there() -> None:
    """Each of them would have enough servers with its own version, and hears too late that the others have another one."""
    editors = Editors()
    arrange(editors, 2, (5.0, 5.0))
    edits = [editors.open(editor).edit([SetChild(f"mine-{editor}", FILE)]) for editor in range(2)]
    assert editors.run(together(edits)) == [None, None]
    editors.calmed()
    assert editors.names() == ["mine-0", "mine-1"]


def test_edit_when_a_client_missed_a_server_and_puts_new_shares_beside_the_old_ones_then_both_entries_are_there() -> (
    None
):
    """Its map lacks a share without which three of five could be lost midway: it changes no share that the other one tests."""
    editors = Editors(encoding=Encoding(k=3, n=5, happy=1))
    for way in editors.ways[0]:
        way.travel = once_soon((20.0, 0.01))
    editors.ways[0][2].travel = lambda call: (20.0, 20.0)
    for way in editors.ways[1]:
        way.travel = writes_in((5.0, 0.01))

    async def look() -> None:
        await editors.runtime.clock.sleep(6.0)
        assert max(len(editors.new_versions(server)) for server in editors.servers) == 1

    edits = [editors.open(editor).edit([SetChild(f"mine-{editor}", FILE)]) for editor in range(2)]
    assert editors.run(together([*edits, look()])) == [None, None, None]
    editors.calmed()
    assert editors.names() == ["mine-0", "mine-1"]


@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_edit_when_a_client_died_with_its_version_on_few_servers_then_the_acknowledged_one_is_kept(name: str) -> None:
    """Both versions have the same sequence number and can be read. Their root hashes differ with the name: either may be higher."""
    editors = Editors()
    arrange(editors, 3, (5.0, 5.0))
    dying = Deferred.fromCoroutine(editors.open(1).edit([SetChild(name, FILE)]))
    editors.run(editors.open(0).edit([SetChild("acknowledged", FILE)]))
    dying.addErrback(lambda failure: failure.trap(CancelledError))
    dying.cancel()
    assert editors.names() == ["acknowledged"]
    editors.run(editors.stranger().directory(editors.root).edit([SetChild("later", FILE)]))
    editors.calmed()
    assert editors.names() == ["acknowledged", "later"]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_edit_when_a_rival_is_on_its_way_to_most_servers_then_its_entry_is_kept(name: str, k: int) -> None:
    """Each of two versions is on two servers when the third client stops waiting, and the fifth server decides between them later.

    The writer of one has died. Root hashes differ with the name: either may be the one that the third client builds on.
    """
    editors = Editors(3, Encoding(k=k, n=5, happy=1))
    reach = [[SOON, SOON, NEVER, NEVER, (8.0, 0.01)], [NEVER, NEVER, SOON, SOON, NEVER], [*[SOON] * 4, (4.0, 0.01)]]
    for ways, seconds in zip(editors.ways, reach, strict=False):
        for way, travel in zip(ways, seconds, strict=True):
            way.travel = writes_in(travel)
    dying = Deferred.fromCoroutine(editors.open(1).edit([SetChild(name, FILE)]))
    dying.addErrback(lambda failure: failure.trap(CancelledError))
    editors.runtime.clock.call_later(0.5, dying.cancel)

    async def edit_later() -> None:
        await editors.runtime.clock.sleep(1.0)
        await editors.open(2).edit([SetChild("later", FILE)])

    assert editors.run(together([editors.open(0).edit([SetChild("acknowledged", FILE)]), edit_later()])) == [None, None]
    editors.calmed()
    assert editors.names() == ["acknowledged", "later"]


WRITE_DELAYS_S = [0.01, 0.05, 0.3, 1.0, 3.0, 3.0]
READ_DELAYS_S = [0.01, 0.05, 0.3, 1.0]
"""Other writers wait for longer than this before they build on one of two rivals, and a map for a server (decisions 334, 150)."""
PAUSES_S = [0.0, 0.02, 0.5, 4.0]
DEATHS_S = [0.05, 0.5, 1.0, 2.5, 6.0]


def late(draws: random.Random) -> Travel:
    """A way whose first few messages travel for some time."""

    def plan(delays_s: list[float]) -> list[tuple[float, float]]:
        return [(draws.choice(delays_s), draws.choice(delays_s)) for _ in range(draws.randint(0, 4))]

    plans = {"test_and_write": plan(WRITE_DELAYS_S), "read_slot": plan(READ_DELAYS_S)}
    return lambda call: plans[call].pop() if plans[call] else SOON


@settings(max_examples=examples(120))
@given(seed=st.integers(0, 2**32))
@example(seed=122)
@example(seed=969)
@example(seed=2565)
def test_edit_when_servers_are_late_to_some_clients_then_no_acknowledged_entry_is_lost(seed: int) -> None:
    """Two or three clients make up to three edits each; the last one may die before its last."""
    draws = random.Random(seed)
    count = draws.randint(2, 3)
    editors = Editors(count, Encoding(k=draws.randint(1, 3), n=5, happy=1))
    for way in chain(*editors.ways[:count]):
        way.travel = late(draws)
    pauses_s = [draws.choices(PAUSES_S, k=draws.randint(1, 3)) for _ in range(count)]
    acknowledged: list[str] = []

    async def work(editor: int) -> None:
        for number, pause_s in enumerate(pauses_s[editor]):
            await editors.runtime.clock.sleep(pause_s)
            name = f"{editor}-{number}"
            with suppress(GridError):
                await editors.open(editor).edit([SetChild(name, FILE)])
                acknowledged.append(name)

    async def work_until_death(editor: int) -> None:
        task = Deferred.fromCoroutine(work(editor))
        if draws.random() < 0.5:
            editors.runtime.clock.call_later(draws.choice(DEATHS_S), task.cancel)
        with suppress(CancelledError):
            await task

    editors.run(together([*map(work, range(count - 1)), work_until_death(count - 1)]))
    editors.calmed()
    assert set(acknowledged) <= set(editors.names())
