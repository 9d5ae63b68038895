"""Paths of the gateway, with names and capabilities quoted: files, directories, and assets of the pages.

The address of the assets changes with their contents, so browsers may cache them without revalidation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from urllib.parse import quote, urlencode

_WALKED = frozenset({"", ".", ".."})
"""Names that browsers remove from a path, percent-encoded or not."""


def object_path(cap: str, names: Sequence[str] = (), *, directory: bool = False) -> str:
    """The path of the object that a capability, or the names below it, leads to."""
    path = "/".join(["/uri", *(quote(part, safe="") for part in (cap, *names))])
    return f"{path}/" if directory else path


def can_be_walked(names: Sequence[str]) -> bool:
    """Whether browsers leave these names in a path unchanged."""
    return not any(name in _WALKED for name in names)


def file_path(cap: str, name: str, *, save: bool = False) -> str:
    """The path of a file's contents, which contains no capability but the file's own."""
    path = f"/file/{quote(cap, safe='')}/@@named=/{quote(name or 'unknown', safe='')}"
    if name in _WALKED:
        path = f"/file/{quote(cap, safe='')}"
    arguments = {"filename": name} if name in _WALKED - {""} else {}
    return with_arguments(path, **arguments, **({"save": "true"} if save else {}))


def with_arguments(path: str, /, **arguments: str) -> str:
    """Append these arguments to the path."""
    return f"{path}?{urlencode(arguments)}" if arguments else path


_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


@cache
def asset_contents() -> Mapping[str, tuple[str, bytes]]:
    """Types and bytes of the assets by name."""
    found = {}
    for entry in files("grid.gateway").joinpath("assets").iterdir():
        kind = _TYPES.get(f".{entry.name.rpartition('.')[2]}")
        if kind is not None:
            found[entry.name] = (kind, entry.read_bytes())
    return found


@cache
def assets_version() -> str:
    """A hash of all assets."""
    digest = sha256()
    for name, (_, data) in sorted(asset_contents().items()):
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:16]


def assets_address() -> str:
    """The path below which all assets of this version are, and nothing else."""
    return f"/assets/{assets_version()}/"


def asset_path(name: str) -> str:
    """The path of one asset."""
    return f"{assets_address()}{name}"
