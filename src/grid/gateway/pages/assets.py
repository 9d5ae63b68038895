"""Style, scripts and pictures of the pages, under an address that changes whenever one of them does.

They may be kept for ever by whoever asked for them: what is at an address never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


@cache
def contents() -> Mapping[str, tuple[str, bytes]]:
    """Names to types and bytes."""
    found = {}
    for entry in files("grid.gateway").joinpath("assets").iterdir():
        kind = _TYPES.get(f".{entry.name.rpartition('.')[2]}")
        if kind is not None:
            found[entry.name] = (kind, entry.read_bytes())
    return found


@cache
def version() -> str:
    """What tells these contents from any others."""
    digest = sha256()
    for name, (_, data) in sorted(contents().items()):
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:16]


def address() -> str:
    """The path below which all of them are, and nothing else is."""
    return f"/assets/{version()}/"


def asset_path(name: str) -> str:
    """Where it is asked for."""
    return f"{address()}{name}"
