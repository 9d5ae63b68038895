"""Aliases of directories, in the file `private/aliases`, which 1.20 uses too. [spec cli 1.6]

The file holds write capabilities: its mode is 0600, and it is replaced atomically. Lines of unknown form are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from grid.caps import DirectoryCap, parse_cap
from grid.errors import CapError, ConfigError, GridError
from grid.node.files import locked, read_text, write_atomically
from grid.node.own_files import parse_aliases, read_alias_file

if TYPE_CHECKING:
    from grid.cli.connection import Home


def read_aliases(directory: Home) -> dict[str, str]:
    """The aliases of a client directory, including the old `root_dir.cap`; ConfigError if a file is not text."""
    return read_alias_file(directory.private)


def add_alias(directory: Home, name: str, cap: DirectoryCap) -> None:
    """Append an alias and replace the file atomically. OSError.

    Concurrent commands wait for each other, so none loses another's line; GridError if another one has just taken the
    name.
    """
    with locked(directory.private):
        text = _read(directory, "aliases") or ""
        check_new_name(name, parse_aliases(text))
        if text and not text.endswith("\n"):
            text += "\n"
        # If the file is a symbolic link, replace its target.
        path = (directory.private / "aliases").resolve()
        write_atomically(path, f"{text}{name}: {cap.to_string()}\n".encode())


def check_new_name(name: str, aliases: Mapping[str, str]) -> str:
    """Return the name without a trailing colon; GridError if it is invalid or in use."""
    name = name.removesuffix(":")
    if ":" in name:
        raise GridError("Alias names cannot contain colons.")
    if "/" in name:
        raise GridError("Alias names cannot contain slashes: what follows one is a path, as in ALIAS:docs/a.txt.")
    if any(character.isspace() for character in name):
        raise GridError("Alias names cannot contain spaces.")
    if not name or name.startswith("#") or not name.isprintable():
        raise GridError("An alias needs a name of printable characters that does not begin with #.")
    if name in aliases:
        raise GridError(f"Alias '{name}' already exists!")
    return name


def alias_cap(name: str, text: str) -> DirectoryCap:
    """The capability of an alias; CapError, which names the alias, if it is not a directory's."""
    try:
        cap = parse_cap(text)
    except CapError:
        cap = None
    if not isinstance(cap, DirectoryCap):
        raise CapError(f"the alias '{name}' does not name a directory: correct private/aliases in the client directory")
    return cap


def usable_aliases(aliases: Mapping[str, str]) -> tuple[dict[str, DirectoryCap], CapError | None]:
    """The valid capabilities, sorted by alias, and the error of the first invalid one."""
    caps, problem = {}, None
    for name, text in sorted(aliases.items()):
        try:
            caps[name] = alias_cap(name, text)
        except CapError as error:
            problem = problem or error
    return caps, problem


def require_lasting(directory: Home) -> None:
    """Raise ConfigError if there is no client directory in which to store an alias."""
    if not getattr(directory, "is_lasting", True):
        raise ConfigError("aliases are kept in a client directory: name an existing one with -d or GRID_NODE_DIR")


def _read(directory: Home, name: str) -> str | None:
    return read_text(directory.private / name)
