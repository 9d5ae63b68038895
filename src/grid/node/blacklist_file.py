"""The file `access.blacklist` of a client directory, as commands change it. [spec webapi 11] (decision 468)

What one command blocks is between two comments, so it can be taken out as a whole, also if another block has some of
the same objects. Lines that somebody wrote by hand stay as they are. A gateway reads none of the comments.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, field

from grid.codec import base32
from grid.errors import ConfigError, FormatError
from grid.gateway.shared.blacklist import MAX_BLACKLIST, parse_entry
from grid.node.files import locked, make_private_directory, write_atomically
from grid.values import frozen

NAME = "access.blacklist"

_BEGIN = re.compile(r"# block ([a-z2-7]{26}) (\".*\")")
_END = "# end of block"


@frozen(kw_only=True)
class BlockedTree:
    """What one command blocked. root: the storage index of the file or directory that was named, 16 bytes.

    path: its name for people, without a capability. reasons: by the storage index of each object; visitors see them.
    """

    root: bytes
    path: str
    reasons: Mapping[bytes, str] = field(repr=False)


Item = BlockedTree | str
"""A part of the file: a block, or a line that somebody wrote."""


class BlacklistFile:
    """The file, which need not exist yet."""

    def __init__(self, directory: Path) -> None:
        self._private = directory / "private"
        self.path = directory / NAME

    def read(self) -> list[Item]:
        """Its parts in order; ConfigError if it cannot be read."""
        return parse_items(self._text())

    @contextmanager
    def changing(self) -> Iterator[list[Item]]:
        """Lock and read the parts, and replace the file atomically if the block changed them. ConfigError, OSError."""
        make_private_directory(self._private)
        with locked(self._private):
            items = self.read()
            before = list(items)
            yield items
            if items == before:
                return
            data = pack_items(items).encode("utf-8", "surrogateescape")
            if len(data) > MAX_BLACKLIST:
                raise ConfigError(f"{self.path}: too many objects would be blocked; nothing was changed")
            # If the file is a symbolic link, replace its target.
            _replace(self.path.resolve(), data)

    def _text(self) -> str:
        try:
            with self.path.open("rb") as stream:
                data = stream.read(MAX_BLACKLIST + 1)
        except FileNotFoundError:
            return ""
        except OSError as problem:
            raise ConfigError(f"{self.path}: {problem.strerror}") from None
        if len(data) > MAX_BLACKLIST:
            raise ConfigError(f"{self.path}: too large to be read")
        return data.decode("utf-8", "surrogateescape")


def _replace(path: Path, data: bytes) -> None:
    """Replace the file, of which the gateway's user stays the owner. ConfigError for other users; OSError."""
    try:
        before = path.stat()
    except FileNotFoundError:
        before = path.parent.stat()
    user = os.geteuid()
    if user not in (0, before.st_uid):
        raise ConfigError(f"{path} belongs to another user: run this command as that user")
    write_atomically(path, data)
    if before.st_uid != user:
        os.chown(path, before.st_uid, before.st_gid)


def parse_items(text: str) -> list[Item]:
    """The parts of the text. A block whose end is missing ends before the first line that blocks nothing."""
    items: list[Item] = []
    open_tree: tuple[bytes, str, dict[bytes, str]] | None = None
    for line in text.removesuffix("\n").split("\n") if text else ():
        if open_tree is not None:
            entry = parse_entry(line)
            if entry is not None:
                open_tree[2][entry[0]] = entry[1]
                continue
            items.append(_tree(*open_tree))
            open_tree = None
            if line == _END:
                continue
        begun = _beginning(line)
        if begun is None:
            items.append(line)
        else:
            open_tree = (*begun, {})
    return items if open_tree is None else [*items, _tree(*open_tree)]


def _tree(root: bytes, path: str, reasons: dict[bytes, str]) -> BlockedTree:
    return BlockedTree(root=root, path=path, reasons=reasons)


def pack_items(items: Sequence[Item]) -> str:
    """The text with these parts."""
    lines: list[str] = []
    for item in items:
        if isinstance(item, str):
            lines.append(item)
            continue
        lines.append(f"# block {base32.encode(item.root)} {json.dumps(item.path, ensure_ascii=False)}")
        lines += [f"{base32.encode(index)} {reason}" for index, reason in item.reasons.items()]
        lines.append(_END)
    return "".join(f"{line}\n" for line in lines)


def add_tree(items: list[Item], tree: BlockedTree) -> None:
    """Append the block. An earlier one of the same root becomes a part of it: what was blocked stays blocked."""
    reasons = dict(tree.reasons)
    reason = tree.reasons[tree.root]
    for item in [each for each in items if isinstance(each, BlockedTree) and each.root == tree.root]:
        reasons |= dict.fromkeys(item.reasons, reason)
        items.remove(item)
    items.append(evolve(tree, reasons=reasons))


def remove_tree(items: list[Item], root: bytes) -> frozenset[bytes]:
    """Take out the block with this root, and lines for it alone; else, the object from the blocks that have it.

    Returns the storage indexes that were taken out, which other parts may still contain.
    """
    removed: set[bytes] = set()
    kept: list[Item] = []
    for item in items:
        if isinstance(item, BlockedTree):
            indexes = set(item.reasons) if item.root == root else set()
        else:
            entry = parse_entry(item)
            indexes = {root} if entry is not None and entry[0] == root else set()
        removed |= indexes
        kept += [] if indexes else [item]
    items[:] = kept if removed else [_without(item, root, removed) for item in items]
    return frozenset(removed)


def _without(item: Item, index: bytes, removed: set[bytes]) -> Item:
    """The part without this object, which is then noted as removed."""
    if isinstance(item, str) or index not in item.reasons:
        return item
    removed.add(index)
    return evolve(item, reasons={other: reason for other, reason in item.reasons.items() if other != index})


def blocked_trees(items: Sequence[Item]) -> list[BlockedTree]:
    """All blocks; a line that somebody wrote is one without a path."""
    found = []
    for item in items:
        if isinstance(item, BlockedTree):
            found.append(item)
        elif (entry := parse_entry(item)) is not None:
            found.append(BlockedTree(root=entry[0], path="", reasons=dict([entry])))
    return found


def blocked_objects(items: Sequence[Item]) -> Mapping[bytes, str]:
    """What a gateway refuses to show: reasons by storage index."""
    found: dict[bytes, str] = {}
    for tree in blocked_trees(items):
        found |= tree.reasons
    return found


def _beginning(line: str) -> tuple[bytes, str] | None:
    """The root and the path of the block that the line begins; None if it is another line."""
    found = _BEGIN.fullmatch(line)
    if found is None:
        return None
    try:
        return base32.decode(found[1]), str(json.loads(found[2]))
    except (FormatError, ValueError):
        return None
