"""Paths of the gateway: of files and directories, with any name or capability quoted, and of the pages' assets.

The address of the assets changes whenever one of them does, so browsers may cache them without asking again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
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


_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


@cache
def asset_contents() -> Mapping[str, tuple[str, bytes]]:
    """Names to types and bytes."""
    found = {}
    for entry in files("grid.gateway").joinpath("assets").iterdir():
        kind = _TYPES.get(f".{entry.name.rpartition('.')[2]}")
        if kind is not None:
            found[entry.name] = (kind, entry.read_bytes())
    return found


@cache
def assets_version() -> str:
    """What tells these contents from any others."""
    digest = sha256()
    for name, (_, data) in sorted(asset_contents().items()):
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:16]


def assets_address() -> str:
    """The path below which all of them are, and nothing else is."""
    return f"/assets/{assets_version()}/"


def asset_path(name: str) -> str:
    """Where it is asked for."""
    return f"{assets_address()}{name}"
