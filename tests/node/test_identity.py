"""The key and the seed of a storage node."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from grid.codec import base32
from grid.codec.key_text import pack_bare_key
from grid.errors import ConfigError
from grid.node.directory import NodeDirectory, open_directory
from grid.node.identity import permutation_seed_text, signing_key, write_node_id

NODE_ID = bytes(range(20))


@pytest.fixture
def node(tmp_path: Path) -> NodeDirectory:
    (tmp_path / "grid.cfg").write_text("")
    return open_directory(tmp_path)


def test_key_is_created_once_and_private_to_the_owner(node: NodeDirectory) -> None:
    key = signing_key(node)
    assert signing_key(node) == key
    file = node.private / "node.privkey"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(file.read_text()) == 61
    assert (node.path / "node.pubkey").read_text() == f"pub-{pack_bare_key(key.verifying_key)}\n"


def test_damaged_key_is_an_error_that_hides_it(node: NodeDirectory) -> None:
    node.private.mkdir()
    (node.private / "node.privkey").write_text("priv-v0-brokenkey\n")
    with pytest.raises(ConfigError, match=r"node\.privkey") as caught:
        signing_key(node)
    assert "brokenkey" not in str(caught.value)


def test_fresh_node_announces_the_text_of_its_key_as_its_seed(node: NodeDirectory) -> None:
    key = signing_key(node).verifying_key
    text = permutation_seed_text(node, key, NODE_ID, has_shares=False)
    assert len(text) == 84
    assert base32.decode(text).decode() == pack_bare_key(key).removeprefix("v0-")
    assert (node.path / "permutation-seed").read_text() == text + "\n"
    assert permutation_seed_text(node, key, NODE_ID, has_shares=True) == text


def test_node_whose_shares_are_older_than_its_seed_keeps_their_order(node: NodeDirectory) -> None:
    key = signing_key(node).verifying_key
    assert permutation_seed_text(node, key, NODE_ID, has_shares=True) == base32.encode(NODE_ID)


def test_damaged_seed_is_an_error(node: NodeDirectory) -> None:
    (node.path / "permutation-seed").write_text("no base32!\n")
    with pytest.raises(ConfigError, match="permutation-seed"):
        permutation_seed_text(node, signing_key(node).verifying_key, NODE_ID, has_shares=False)


def test_node_id_is_written_as_a_line(node: NodeDirectory) -> None:
    write_node_id(node, "l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e")
    assert (node.path / "my_nodeid").read_text() == "l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e\n"
