"""A node's directory: the kind of node, its configuration, and its secrets.

Reads `grid.cfg` if it exists, else 1.20's `tahoe.cfg`, and refuses two that contradict each other. File names and
contents are those of 1.20, whose programs read them too. Secrets are made when they are first needed. [spec cli 5; wire
1, 7, 10]
"""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path

from grid.codec import base32
from grid.errors import ConfigError, FormatError
from grid.node.config import NodeSettings, agree, parse_config
from grid.node.files import (
    PUBLIC_MODE,
    expand_home,
    make_private_directory,
    read_or_create,
    read_text,
    write_atomically,
)
from grid.values import field, frozen

CONFIG_NAMES = ("grid.cfg", "tahoe.cfg")
_SECRET_SIZE = 32


class NodeKind(Enum):
    """The kind of node. A storage node is a client that also stores shares."""

    CLIENT = "client"
    INTRODUCER = "introducer"


@frozen(kw_only=True)
class NodeDirectory:
    """An existing node directory: its absolute path, the kind of node, and its settings."""

    path: Path
    kind: NodeKind
    config_file: Path
    settings: NodeSettings = field(repr=False)

    @property
    def private(self) -> Path:
        """The directory of secrets."""
        return self.path / "private"

    @property
    def storage_path(self) -> Path:
        """The directory of shares, the base of [spec storage-server 2]."""
        return self.path / expand_home(self.settings.storage.directory)

    @property
    def temporary_path(self) -> Path:
        """The directory in which uploads are spooled."""
        return self.path / expand_home(self.settings.temporary_directory)

    def lease_master(self) -> bytes:
        """The 32 bytes from which all lease secrets are derived. [spec storage-server 5]"""
        secret = self._secret("secret")
        if len(secret) != _SECRET_SIZE:
            raise ConfigError(f"{self.private / 'secret'}: must hold {_SECRET_SIZE} bytes in base32")
        return secret

    def convergence_secret(self) -> bytes:
        """The secret mixed into convergent keys; usually 32 bytes, but may be empty. [spec cli 5]"""
        return self._secret("convergence")

    def _secret(self, name: str) -> bytes:
        make_private_directory(self.private)
        file = self.private / name
        text = read_or_create(file, lambda: base32.encode(os.urandom(_SECRET_SIZE)) + "\n")
        try:
            return base32.decode_lax(text.strip())
        except FormatError:
            raise ConfigError(f"{file}: not base32; restore it from a backup, or remove it to get a new one") from None

    def next_sequence_number(self) -> int:
        """The number of the next announcement, saved before it is used. [spec wire 7]"""
        file = self.path / "announcement-seqnum"
        text = (read_text(file) or "0").strip()
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise ConfigError(f"{file}: must hold a whole number")
        write_atomically(file, f"{int(text) + 1}\n".encode(), PUBLIC_MODE)
        return int(text) + 1


def require_node_directory(path: Path) -> None:
    """Raise ConfigError, which explains what to do, unless the path is a node directory; its configuration may be
    invalid.
    """
    if not path.exists():
        words = "name another, with -d or GRID_NODE_DIR if it is a client's, or make it with `grid create`"
        raise ConfigError(f"{path} does not exist: {words}")
    if not path.is_dir():
        raise ConfigError(f"{path} is not a directory; `grid create` makes node directories")
    if _find_kind(path) is None and not any((path / name).exists() for name in CONFIG_NAMES):
        raise ConfigError(
            f"{path} is not a node directory: it has neither grid.cfg nor tahoe.cfg; `grid create` makes one"
        )


def open_directory(path: Path) -> NodeDirectory:
    """Open the node directory; ConfigError, which explains what is wrong and what to do, if it is not one."""
    path = expand_home(path).absolute()
    require_node_directory(path)
    found = {path / name: text for name in CONFIG_NAMES if (text := read_text(path / name)) is not None}
    file, text = next(iter(found.items()), (path / CONFIG_NAMES[0], ""))
    if len(set(found.values())) > 1 and not agree(list(found.values())):
        raise ConfigError(
            f"{path}: grid.cfg and tahoe.cfg differ, and programs read either of them; correct one, or make"
            " grid.cfg a link to tahoe.cfg: ln -sf tahoe.cfg grid.cfg"
        )
    return NodeDirectory(
        path=path,
        kind=_find_kind(path) or NodeKind.CLIENT,
        config_file=_named_in_documents(file),
        settings=parse_config(text, str(_named_in_documents(file))),
    )


def _named_in_documents(file: Path) -> Path:
    """tahoe.cfg, if grid.cfg is only a link to it, as `grid create` makes it: errors then name what documents call it."""
    target = file.with_name(CONFIG_NAMES[1])
    return target if file.is_symlink() and file.resolve() == target.resolve() else file


def _find_kind(path: Path) -> NodeKind | None:
    """The kind, given by the name of the .tac file as in 1.20; its contents do not matter. [spec cli 4.2]"""
    names = {name for name in os.listdir(path) if name.endswith(".tac")}
    if any("introducer" in name for name in names):
        return NodeKind.INTRODUCER
    return NodeKind.CLIENT if names else None
