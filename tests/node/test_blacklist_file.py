"""The file `access.blacklist` as commands change it: hand-written lines stay, and blocks come and go as wholes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.codec import base32
from grid.errors import ConfigError
from grid.gateway.shared.blacklist import MAX_BLACKLIST, parse_blacklist
from grid.node.blacklist_file import (
    BlacklistFile,
    BlockedTree,
    Item,
    add_tree,
    blocked_objects,
    blocked_trees,
    pack_items,
    parse_items,
    remove_tree,
)

A, B, C = (bytes([number]) * 16 for number in range(3))
BY_HAND = f"# mine\n\n{base32.encode(A)}  not   yours\nrubbish\n"


def tree(root: bytes, *more: bytes, path: str = "work:a", reason: str = "gone") -> BlockedTree:
    return BlockedTree(root=root, path=path, reasons=dict.fromkeys((root, *more), reason))


def test_block_when_added_and_removed_leaves_what_was_written_by_hand(tmp_path: Path) -> None:
    file = BlacklistFile(tmp_path)
    file.path.write_bytes(BY_HAND.encode() + b"\xff\n")
    with file.changing() as items:
        add_tree(items, tree(B, C, path='work:"x"\n'))
    assert file.path.read_bytes().startswith(BY_HAND.encode() + b"\xff\n")
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert parse_blacklist(file.path.read_bytes()) == {A: "not yours", B: "gone", C: "gone"}
    assert [(each.path, len(each.reasons)) for each in blocked_trees(file.read())] == [("", 1), ('work:"x"\n', 2)]
    with file.changing() as items:
        assert remove_tree(items, B) == {B, C}
    assert file.path.read_bytes() == BY_HAND.encode() + b"\xff\n"


def test_file_that_root_writes_is_given_to_the_owner_of_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, 12345)
    owner = tmp_path.stat()
    given: list[object] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda *words: given.append(words))
    file = BlacklistFile(tmp_path)
    with file.changing() as items:
        items.append("# by root")
    assert given == [(file.path, owner.st_uid, owner.st_gid)]


def test_file_of_another_user_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = BlacklistFile(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(ConfigError, match="belongs to another user"), file.changing() as items:
        items.append("# mine")
    assert not file.path.exists()


def test_object_in_two_blocks_stays_blocked_when_one_is_removed() -> None:
    items: list[Item] = []
    add_tree(items, tree(A, C))
    add_tree(items, tree(B, C))
    assert remove_tree(items, A) == {A, C} and set(blocked_objects(items)) == {B, C}


def test_block_of_the_same_root_keeps_what_was_blocked_before() -> None:
    items: list[Item] = []
    add_tree(items, tree(A, B, reason="old"))
    add_tree(items, tree(A, C, reason="new"))
    assert len(items) == 1 and blocked_objects(items) == dict.fromkeys((A, B, C), "new")


def test_object_inside_a_block_is_removed_alone() -> None:
    items: list[Item] = [tree(A, B)]
    assert remove_tree(items, B) == {B} and blocked_objects(items) == {A: "gone"}
    assert remove_tree(items, C) == frozenset()


def test_line_written_by_hand_is_removed_by_its_object() -> None:
    items = parse_items(BY_HAND)
    assert remove_tree(items, A) == {A} and pack_items(items) == "# mine\n\nrubbish\n"


@given(
    st.lists(st.sampled_from([*BY_HAND.split("\n"), f'# block {base32.encode(B)} "p"', "# end of block", "# block x"]))
)
def test_any_lines_block_for_commands_what_they_block_for_the_gateway(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    items = parse_items(text)
    assert blocked_objects(items) == parse_blacklist(text.encode()) == blocked_objects(parse_items(pack_items(items)))


def test_file_that_cannot_be_read_or_would_be_too_large_is_not_replaced(tmp_path: Path) -> None:
    file = BlacklistFile(tmp_path)
    with pytest.raises(ConfigError, match="too many objects"), file.changing() as items:
        items.append("#" * MAX_BLACKLIST)
    assert not file.path.exists() and file.read() == []
    file.path.mkdir()
    with pytest.raises(ConfigError, match="Is a directory"):
        file.read()
