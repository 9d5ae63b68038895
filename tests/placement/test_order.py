"""The order of servers for a storage index."""

from __future__ import annotations

import hashlib
from typing import cast

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import StorageIndex
from grid.codec.base32 import encode
from grid.errors import FormatError
from grid.placement.order import permutation_key, permutation_seed, permute
from grid.ports import ServerId, ServerIdentity, StorageServer

STORAGE_INDEX = StorageIndex(bytes(range(16)))
INTRODUCED = ServerId("v0-" + encode(bytes(range(32))))


@frozen
class NamedServer:
    """A server of which only the identity is ever asked."""

    identity: ServerIdentity


def make_server(name: str) -> StorageServer:
    server_id = ServerId(name)
    seed = permutation_seed(server_id, None)
    return cast(
        "StorageServer",
        NamedServer(ServerIdentity(server_id=server_id, permutation_seed=seed, lease_seed=bytes(20))),
    )


@pytest.mark.parametrize(
    ("server_id", "announced", "key"),
    [
        (INTRODUCED, None, "17d7295ca9213d1a2d7d16a65a84108e9805656c"),
        (INTRODUCED, encode(encode(bytes(range(32))).encode()), "ef81b6eb86f7e97118636ef3bd0a23ae358d0c8f"),
        (ServerId("my-server-1"), None, "f85346e317e1bba3fe68fb831cc912fdb06f3bde"),
    ],
)
def test_permutation_key_of_known_servers_is_the_known_one(
    server_id: ServerId, announced: str | None, key: str
) -> None:
    assert permutation_key(STORAGE_INDEX, permutation_seed(server_id, announced)).hex() == key


@pytest.mark.parametrize("name", ["v0-short", INTRODUCED + "a", INTRODUCED + "\n", "v1-" + INTRODUCED[3:], ""])
def test_seed_of_an_id_that_is_not_an_introduced_one_is_its_hash(name: str) -> None:
    assert permutation_seed(ServerId(name), None) == hashlib.sha256(name.encode()).digest()


@pytest.mark.parametrize(("name", "announced"), [("x", "not base32!"), ("v0-" + "A" * 52, None), ("x", "a")])
def test_seed_that_is_not_base32_is_refused(name: str, announced: str | None) -> None:
    with pytest.raises(FormatError):
        permutation_seed(ServerId(name), announced)


@given(st.lists(st.text(max_size=8), unique=True), st.binary(min_size=16, max_size=16))
def test_order_is_that_of_the_keys_whatever_order_servers_come_in(names: list[str], index: bytes) -> None:
    servers = [make_server(name) for name in names]
    ordered = permute(servers, StorageIndex(index))
    assert ordered == permute(reversed(servers), StorageIndex(index))
    keys = [permutation_key(StorageIndex(index), server.identity.permutation_seed) for server in ordered]
    assert keys == sorted(keys)
    assert len(ordered) == len(servers)


@given(st.lists(st.text(max_size=8), unique=True), st.sets(st.text(max_size=8)))
def test_preferred_servers_come_first_and_both_parts_stay_in_order(names: list[str], preferred: set[str]) -> None:
    chosen = {ServerId(name) for name in {*preferred, *names[::2]}}
    plain = permute(map(make_server, names), STORAGE_INDEX)
    expected = [server for server in plain if server.identity.server_id in chosen]
    expected += [server for server in plain if server.identity.server_id not in chosen]
    assert permute(plain, STORAGE_INDEX, chosen) == expected
