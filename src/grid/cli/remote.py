"""Which object of the grid an argument of the command line names. Pure. [spec cli 1.5]"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from grid.caps import DirectoryCap, KnownCap, has_cap_prefix, parse_cap, require_usable
from grid.cli.aliases import DEFAULT_ALIAS, alias_cap
from grid.errors import CapError, GridError


class UnknownAliasError(GridError):
    """There is no such alias."""


@frozen(kw_only=True)
class RemotePath:
    """A root and the names below it. inside: the argument ended with a slash, or names a root and nothing below.

    shown: what messages call it; it holds no capability.
    """

    root: KnownCap = field(repr=False)
    names: tuple[str, ...] = ()
    inside: bool = False
    shown: str = ""

    @property
    def directory(self) -> DirectoryCap:
        """The root as a directory; CapError if it is a file."""
        if not isinstance(self.root, DirectoryCap):
            raise CapError("the capability is that of a file, in which there is nothing to look up")
        return self.root

    def with_name(self, name: str) -> RemotePath:
        """The path of a child."""
        return RemotePath(root=self.root, names=(*self.names, name), shown=f"{self.shown.rstrip('/')}/{name}")


def parse_remote(argument: str, aliases: Mapping[str, str]) -> RemotePath:
    """What the argument names; UnknownAliasError, CapError, or GridError for a path with an empty name in it."""
    text = argument.strip(" ")
    if has_cap_prefix(text):
        mark = ":./" if ":./" in text else "/"
        cap_text, _, rest = text.partition(mark)
        return _path(require_usable(parse_cap(cap_text)), rest, "URI:…", argument_is_cap=True)
    name, colon, rest = text.partition(":")
    if not colon or "/" in name:
        name, rest = DEFAULT_ALIAS, text
    if name not in aliases:
        raise _unknown(name, given=bool(colon) and rest is not text)
    return _path(alias_cap(name, aliases[name]), rest, f"{name}:", argument_is_cap=False)


def _path(root: KnownCap, rest: str, shown: str, *, argument_is_cap: bool) -> RemotePath:
    if rest in ("", "/"):
        return RemotePath(root=root, inside=True, shown=shown)
    inside = rest.endswith("/")
    names = tuple(rest.removesuffix("/").split("/"))
    if not all(names):
        raise GridError(f"{shown}{rest}: a path has no empty names; it begins without a slash")
    separator = "/" if argument_is_cap else ""
    return RemotePath(root=root, names=names, inside=inside, shown=f"{shown}{separator}{rest}")


def _unknown(name: str, *, given: bool) -> UnknownAliasError:
    if given or name != DEFAULT_ALIAS:
        return UnknownAliasError(
            f"Unknown alias '{name}', please create it with 'grid add-alias' or 'grid create-alias'."
        )
    return UnknownAliasError(
        "No alias specified, and the default 'tahoe' alias doesn't exist. "
        "To create it, use 'grid create-alias tahoe' or 'grid add-alias tahoe CAP'."
    )
