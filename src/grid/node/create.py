"""Creates node directories: grid.cfg, the marker of the node's kind, and the private directory.

The settings are in tahoe.cfg, where programs for 1.20's nodes read and write them, and grid.cfg links to it, so the two
cannot disagree. The link goes that way because 1.20's own commands replace tahoe.cfg, which would destroy a link of
that name. Keys and secrets are made when the node first starts. An existing node is never changed. [spec cli 4.1]
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from grid.errors import ConfigError, FormatError
from grid.limits import MAX_SHARES
from grid.node.config import parse_config
from grid.node.files import PUBLIC_MODE, expand_home, make_private_directory, write_atomically
from grid.values import field, frozen
from grid.wire.locators import parse_furl

_PLAIN = re.compile(r"pb://[a-z2-7]{32}@[A-Za-z0-9.,:-]*/[A-Za-z0-9_-]+", re.ASCII)

_HEADER = """\
# Configuration of a Grid node, read when it starts. The keys are those of Tahoe-LAFS 1.20.
# Write a percent sign twice: %%.
"""


@frozen(kw_only=True)
class Listening:
    """Where a new node listens and what it announces; texts as in [node] tub.port and tub.location."""

    port: str
    location: str


@frozen(kw_only=True)
class NewClient:
    """The settings of a new client directory. introducer_furl: empty for none yet. more_introducers: FURLs of others.
    is_invited: the numbers are those of the grid, and happy may be less than needed, as in 1.20.
    """

    nickname: str = ""
    introducer_furl: str = field(default="", repr=False)
    more_introducers: tuple[str, ...] = field(default=(), repr=False)
    needed: int = 3
    happy: int = 7
    total: int = 10
    is_invited: bool = False


@frozen(kw_only=True)
class NewStorage:
    """The settings of a new storage node. reserved_space and directory: as written in the file. encoding: needed, happy and
    total, which the nodes that it invites get; None for the defaults.
    """

    listening: Listening
    nickname: str = ""
    introducer_furl: str = field(default="", repr=False)
    reserved_space: str = "1G"
    directory: str = ""
    durability: str = "full"
    encoding: tuple[int, int, int] | None = None


def create_introducer(path: Path, listening: Listening, nickname: str = "") -> None:
    """Create an introducer's directory; ConfigError if the path is in use or a value is invalid."""
    _create(path, "introducer", _node_section(nickname, listening))


def create_storage(path: Path, new: NewStorage) -> None:
    """Create a storage node's directory; ConfigError if the path is in use or a value is invalid."""
    _create(path, "client", _storage_lines(new), (new.introducer_furl,))


def create_client(path: Path, new: NewClient) -> None:
    """Create a client's directory; ConfigError if the path is in use or a value is invalid."""
    _create(path, "client", _client_lines(new), (new.introducer_furl, *new.more_introducers))


def check_new(path: Path, new: NewClient | NewStorage) -> None:
    """Raise ConfigError if that could not be created there now; leaves nothing behind."""
    path = expand_home(path).absolute()
    lines = _client_lines(new) if isinstance(new, NewClient) else _storage_lines(new)
    parse_config("\n".join(lines), str(path / "grid.cfg"))
    if _claim(path):
        path.rmdir()


def _storage_lines(new: NewStorage) -> list[str]:
    lines = [*_node_section(new.nickname, new.listening), "", "[storage]", "enabled = true"]
    lines.append(f"reserved_space = {_escape(new.reserved_space)}")
    if new.durability != "full":
        lines.append(f"durability = {_escape(new.durability)}")  # 1.20 does not run a node whose file has unknown keys.
    if new.directory:
        lines.append(f"storage_dir = {_escape(new.directory)}")
    return [*lines, *(_share_lines(*new.encoding) if new.encoding is not None else ())]


def _client_lines(new: NewClient) -> list[str]:
    require_share_counts(new.needed, new.happy, new.total, is_invited=new.is_invited)
    lines = _node_section(new.nickname, Listening(port="disabled", location="disabled"))
    return [*lines, *_share_lines(new.needed, new.happy, new.total), "", "[storage]", "enabled = false"]


def _share_lines(needed: int, happy: int, total: int) -> list[str]:
    numbers = (f"shares.needed = {needed}", f"shares.happy = {happy}", f"shares.total = {total}")
    return ["", "[client]", *numbers]


def require_share_counts(needed: int, happy: int, total: int, *, is_invited: bool = False) -> None:
    """Raise ConfigError, which names two of the numbers, unless 1 <= needed <= happy <= total <= MAX_SHARES.

    is_invited: happy may be less than needed.
    """
    numbers = {"needed": needed, "happy": happy, "total": total}
    if numbers["needed"] < 1:
        raise ConfigError(f"needed ({numbers['needed']}) must be at least 1")
    for smaller, larger in (("needed", "total"), ("happy", "total"), ("needed", "happy")):
        if numbers[smaller] > numbers[larger] and not (is_invited and larger == "happy"):
            raise ConfigError(f"{smaller} ({numbers[smaller]}) must not be larger than {larger} ({numbers[larger]})")
    if numbers["total"] > MAX_SHARES:
        raise ConfigError(f"total ({numbers['total']}) must not be larger than {MAX_SHARES}")


def _node_section(nickname: str, listening: Listening) -> list[str]:
    return [
        "[node]",
        f"nickname = {_escape(nickname)}",
        f"tub.port = {_escape(listening.port)}",
        f"tub.location = {_escape(listening.location)}",
    ]


def _escape(value: str) -> str:
    if any(ord(character) < 32 for character in value):
        raise ConfigError("a value for the configuration file contains a line break or another control character")
    return value.replace("%", "%%")


def _create(path: Path, kind: str, lines: list[str], introducer_furls: Sequence[str] = ()) -> None:
    path = expand_home(path).absolute()
    text = _HEADER + "\n".join(lines) + "\n"
    parse_config(text, str(path / "grid.cfg"))
    furls = list(dict.fromkeys(furl for furl in introducer_furls if furl))
    for furl in furls:
        try:
            parse_furl(furl)
        except FormatError as problem:
            raise ConfigError(
                f"the introducer cannot be used: {problem}; a running introducer has its own in private/introducer.furl"
            ) from None
    try:
        is_new = _claim(path)
        try:
            _fill(path, kind, text, furls)
        except OSError:
            _take_back(path, is_new)
            raise
    except OSError as problem:
        raise _not_created(path, problem) from None


def _claim(path: Path) -> bool:
    """Make sure that there is an empty directory, private to its user; return whether it is new. ConfigError."""
    try:
        is_new = not path.exists()
        make_private_directory(path)
        if os.listdir(path):
            raise ConfigError(f"{path} is not empty: name a new directory, or an empty one")
    except OSError as problem:
        raise _not_created(path, problem) from None
    return is_new


def _not_created(path: Path, problem: OSError) -> ConfigError:
    return ConfigError(f"{path}: cannot be created: {problem.strerror}")


def _fill(path: Path, kind: str, text: str, furls: Sequence[str]) -> None:
    """Write a new node's files into an empty directory."""
    (path / "private").mkdir(mode=0o700)
    if furls:
        entries = "".join(_introducer_entry(number, furl) for number, furl in enumerate(furls, 1))
        write_atomically(path / "private" / "introducers.yaml", f"introducers:\n{entries}".encode())
    marker = b"# The name of this file says what kind of node this is.\n"
    write_atomically(path / f"grid-{kind}.tac", marker, PUBLIC_MODE)
    write_atomically(path / "tahoe.cfg", text.encode("utf-8"), PUBLIC_MODE)
    (path / "grid.cfg").symlink_to("tahoe.cfg")


def _introducer_entry(number: int, furl: str) -> str:
    # In quotes unless YAML takes it for plain text: only the characters of a FURL's beginning are checked by then.
    written = furl if _PLAIN.fullmatch(furl) else json.dumps(furl)
    petname = "default" if number == 1 else f"introducer{number}"
    return f"  {petname}:\n    furl: {written}\n"


def _take_back(path: Path, is_new: bool) -> None:
    """Restore the directory's previous state: empty, or absent."""
    for entry in list(path.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    if is_new:
        path.rmdir()
