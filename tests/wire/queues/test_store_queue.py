"""Whole shares for a server that wants them allocated, written and closed one after the other."""

from __future__ import annotations

import pytest

from grid.errors import GridError
from grid.ports import LeaseSecrets, NewShares, ShareNumber, StorageIndex, StoreAnswer
from grid.wire.queues.store_queue import store_by_steps
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.virtual_time import VirtualRuntime

DONE = StoreAnswer(already=frozenset(), stored=True)
REFUSED = StoreAnswer(already=frozenset(), stored=False)


def new_shares(number: int, size: int = 10, count: int = 1) -> NewShares:
    shares = {ShareNumber(share): [bytes(size)] for share in range(count)}
    secrets = LeaseSecrets(renew=b"r" * 32, cancel=b"c" * 32)
    return NewShares(storage_index=StorageIndex(number.to_bytes(16, "big")), secrets=secrets, shares=shares)


def test_store_by_steps_when_all_is_well_stores() -> None:
    runtime = VirtualRuntime()
    server = ScriptedServer("s", runtime.clock)
    assert runtime.run(store_by_steps(server, new_shares(1, count=3))) == DONE
    assert server.shares[new_shares(1).storage_index] == dict.fromkeys(range(3), bytes(10))
    assert server.calls == ["allocate", "write", "close"]


def test_store_by_steps_when_a_share_is_held_or_refused_leaves_nothing_behind() -> None:
    runtime = VirtualRuntime()
    server = ScriptedServer("s", runtime.clock)
    runtime.run(store_by_steps(server, new_shares(1)))
    held = runtime.run(store_by_steps(server, new_shares(1, count=2)))
    assert held == StoreAnswer(already=frozenset({ShareNumber(0)}), stored=False)
    server.script = Script(full=True)
    assert runtime.run(store_by_steps(server, new_shares(2))) == REFUSED
    assert server.incoming == {}


def test_store_by_steps_when_a_step_fails_gives_the_upload_up() -> None:
    runtime = VirtualRuntime()
    server = ScriptedServer("s", runtime.clock, Script(broken=frozenset({2})))
    with pytest.raises(GridError):
        runtime.run(store_by_steps(server, new_shares(1)))
    runtime.settle()
    assert server.calls == ["allocate", "write", "close", "abort"]
    assert server.incoming == {}
