"""Parses command-line arguments that name an object on the grid. [spec cli 1.5]

It also catches forgotten colons: a local name that equals an alias is refused rather than read or written by mistake.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import click
from attrs import evolve, field

from grid.caps import DirectoryCap, KnownCap, has_cap_prefix, parse_cap, require_usable
from grid.cli.arguments.aliases import alias_cap
from grid.errors import ChildOfWrongTypeError, GridError, NoSuchChildError
from grid.node.own_files import DEFAULT_ALIAS
from grid.values import frozen


class UnknownAliasError(NoSuchChildError):
    """The alias does not exist. name: the alias as typed."""


@frozen(kw_only=True)
class RemotePath:
    """A root and the names below it. inside: the argument ended with a slash, or names only a root.

    shown: its name in messages, without a capability. suggestion: what was probably meant if nothing is there.
    argument: the full path, which may contain a capability, for terminals only.
    """

    root: KnownCap = field(repr=False)
    names: tuple[str, ...] = ()
    inside: bool = False
    shown: str = ""
    suggestion: str = ""
    argument: str = field(default="", repr=False)

    @property
    def directory(self) -> DirectoryCap:
        """The root as a directory; ChildOfWrongTypeError if it is a file."""
        if not isinstance(self.root, DirectoryCap):
            words = "this capability is for a file, not a directory, so it has no paths below it"
            raise ChildOfWrongTypeError(words, name=self.shown)
        return self.root

    @property
    def parent(self) -> RemotePath:
        """The path without its last name. The path must have one."""
        last = len(self.names[-1])
        return evolve(
            self,
            names=self.names[:-1],
            inside=True,
            shown=self.shown.rstrip("/")[:-last],
            argument=self.argument.rstrip("/")[:-last],
        )

    def with_name(self, name: str) -> RemotePath:
        """The path of a child."""
        return evolve(
            self,
            names=(*self.names, name),
            inside=False,
            shown=_joined(self.shown, name),
            argument=_joined(self.argument, name),
        )


def _joined(path: str, name: str) -> str:
    return f"{path}{name}" if path.endswith(("/", ":")) or not path else f"{path}/{name}"


def parse_remote(argument: str, aliases: Mapping[str, str]) -> RemotePath:
    """Parse the argument; UnknownAliasError, CapError, or GridError if a name in the path is empty."""
    text = argument.strip(" ")
    if has_cap_prefix(text):
        mark = ":./" if ":./" in text else "/"
        cap_text, _, rest = text.partition(mark)
        found = _path(require_usable(parse_cap(cap_text)), rest, "URI:…", argument_is_cap=True)
        return evolve(found, argument=text)
    name, colon, rest = text.partition(":")
    if colon and "/" not in name:
        if name not in aliases:
            from difflib import get_close_matches

            close = get_close_matches(name, aliases, n=1)
            meant = f" Did you mean '{close[0]}:'?" if close else ""
            raise UnknownAliasError(
                f"Unknown alias '{name}': `grid create-alias {name}` creates a new directory with that name, and "
                f"`grid add-alias {name} CAP` gives the name to an existing one.{meant}",
                name=f"{name}:",
            )
        return evolve(_path(alias_cap(name, aliases[name]), rest, f"{name}:", argument_is_cap=False), argument=text)
    suggestion = with_colon(text, aliases)
    if DEFAULT_ALIAS not in aliases:
        raise _no_default(text, suggestion)
    found = _path(alias_cap(DEFAULT_ALIAS, aliases[DEFAULT_ALIAS]), text, f"{DEFAULT_ALIAS}:", argument_is_cap=False)
    return evolve(found, suggestion=suggestion, argument=text)


def _path(root: KnownCap, rest: str, shown: str, *, argument_is_cap: bool) -> RemotePath:
    if rest in ("", "/"):
        return RemotePath(root=root, inside=True, shown=shown)
    inside = rest.endswith("/")
    names = tuple(rest.removesuffix("/").split("/"))
    if not all(names):
        raise GridError(f"{shown}{rest}: a path cannot have empty names or begin with a slash")
    separator = "/" if argument_is_cap else ""
    return RemotePath(root=root, names=names, inside=inside, shown=f"{shown}{separator}{rest}")


def require_new_names(names: Sequence[str], shown: str) -> None:
    """Raise GridError if a path that is to be written has a name `.` or `..`, which no local path can have."""
    for name in names:
        if name in (".", ".."):
            raise GridError(f"{shown}: paths on the grid have no '.' or '..': write the path without {name!r}")


def with_colon(text: str, aliases: Mapping[str, str]) -> str:
    """The path with the forgotten colon added; "" if its first name is not an alias."""
    first, _, rest = text.partition("/")
    return f"{first}:{rest}" if first in aliases else ""


def _no_default(text: str, suggestion: str) -> UnknownAliasError:
    if suggestion:
        return UnknownAliasError(f"There is no path '{text}'. Did you mean '{suggestion}'?", name=text)
    what = f"There is no path '{text}'" if text else "No alias specified"
    return UnknownAliasError(
        f"{what}: a path begins with an alias, as in ALIAS:docs; without one, it is below the alias 'tahoe', which "
        f"does not exist. 'grid list-aliases' shows your aliases, and 'grid create-alias tahoe' creates that one.",
        name=text,
    )


def require_local_target(name: str, aliases: Mapping[str, str]) -> None:
    """Raise UsageError if the name does not exist locally and begins with an alias, with or without its colon."""
    if name.partition(":")[0] in aliases and ":" in name and not os.path.lexists(name):
        raise click.UsageError(f"{name!r} is on the grid, and this needs a local directory; './{name}' would be one")
    meant = _meant(name, aliases)
    if meant:
        raise click.UsageError(
            f"{name!r} could be a local file or an alias: write {meant!r} for the grid, or './{name}' for a local file"
        )


def require_local_source(name: str, aliases: Mapping[str, str]) -> None:
    """Raise NoSuchChildError if the name does not exist locally and equals an alias: its colon was forgotten."""
    meant = _meant(name, aliases)
    if meant:
        raise NoSuchChildError(f"{name}: no such local file. Did you mean {meant!r}?", name=name)


def _meant(name: str, aliases: Mapping[str, str]) -> str:
    """The path with its colon; "" if it matches no alias or exists locally."""
    return "" if os.path.lexists(name.partition("/")[0]) else with_colon(name, aliases)
