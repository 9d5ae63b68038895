"""Where things are: paths of the gateway, quoted so that any name and any capability may be in them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

_WALKED = frozenset({"", ".", ".."})
"""Names that browsers take out of a path, percent-encoded or not."""


def object_path(cap: str, names: Sequence[str] = (), *, directory: bool = False) -> str:
    """The path of what a capability, or the names below it, lead to."""
    path = "/".join(["/uri", *(quote(part, safe="") for part in (cap, *names))])
    return f"{path}/" if directory else path


def can_be_walked(names: Sequence[str]) -> bool:
    """Whether a browser keeps these names as they are in a path."""
    return not any(name in _WALKED for name in names)


def file_path(cap: str, name: str, *, save: bool = False) -> str:
    """The path of a file's contents, with neither its directory's capability in it nor any other."""
    path = f"/file/{quote(cap, safe='')}/@@named=/{quote(name or 'unknown', safe='')}"
    if name in _WALKED:
        path = f"/file/{quote(cap, safe='')}"
    arguments = {"filename": name} if name in _WALKED - {""} else {}
    return with_arguments(path, **arguments, **({"save": "true"} if save else {}))


def with_arguments(path: str, /, **arguments: str) -> str:
    """The path with these arguments."""
    return f"{path}?{urlencode(arguments)}" if arguments else path
