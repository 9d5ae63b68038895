"""Which names of the grid may become names on this machine. Pure.

Whoever can write a directory of the grid chooses the names in it; none may lead out of the directory that is copied to.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from grid.directory.names import normalize_text

MAX_NAME = 255
"""Bytes in a file's name, as nearly every file system has it."""


def refuse_name(name: str) -> str | None:
    """Why no local file may have this name; None if one may."""
    if name in ("", ".", ".."):
        return "it is no name of a file"
    if "/" in name or "\0" in name or (os.altsep and os.altsep in name) or os.sep in name:
        return "it holds a separator"
    try:
        byte_count = os.fsencode(name)
    except UnicodeEncodeError:
        return "this machine has no such characters in names"
    if len(byte_count) > MAX_NAME:
        return f"it is longer than {MAX_NAME} bytes"
    return None


def find_collisions(names: Iterable[str]) -> dict[str, str]:
    """Names that a file system which ignores case and normal forms takes for an earlier one, with that one."""
    first: dict[str, str] = {}
    collisions = {}
    for name in sorted(names):
        key = normalize_text(normalize_text(name).casefold())
        if first.setdefault(key, name) != name:
            collisions[name] = first[key]
    return collisions
