"""Files of a client directory that its own browsers need: aliases, and the token of `grid web`. [spec cli 1.6]

Aliases are in `private/aliases`, which 1.20 uses too. The file of the token holds only its SHA-256 and when it ends, and
is removed once a browser has used it. (decision 352)
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from grid.caps import DirectoryCap, parse_cap
from grid.errors import ConfigError, GridError
from grid.node.files import read_text, write_atomically
from grid.values import frozen

DEFAULT_ALIAS = "tahoe"
"""The alias of a path that names none."""

HANDED_OVER = "web_token"
"""The name of the token's file, below `private`."""

TOKEN_S = 300.0
"""Seconds in which the browser has to use a token."""


def parse_aliases(text: str) -> dict[str, str]:
    """Capabilities, as text, by name. If a name occurs several times, the last line counts."""
    found = {}
    for line in text.split("\n"):
        stripped = line.strip()
        name, colon, cap = stripped.partition(":")
        if stripped and not stripped.startswith("#") and colon:
            found[name] = cap.strip()
    return found


def read_alias_file(private: Path) -> dict[str, str]:
    """The aliases below `private`, including the old `root_dir.cap`; ConfigError if a file is not text."""
    root = (read_text(private / "root_dir.cap") or "").strip()
    found = {DEFAULT_ALIAS: root} if root else {}
    return found | parse_aliases(read_text(private / "aliases") or "")


def hand_over(private: Path, now: float) -> str:
    """Make a token for one browser, which replaces an earlier one. now: Unix time. OSError."""
    token = secrets.token_urlsafe(32)
    line = f"{sha256(token.encode('ascii')).hexdigest()} {now + TOKEN_S:.3f}\n"
    write_atomically(private / HANDED_OVER, line.encode("ascii"), durable=False)
    return token


@frozen
class ClientFiles:
    """The files below `private` of a client directory."""

    private: Path

    def handed_over(self, now: float) -> bytes | None:
        """The SHA-256 of the valid token; None without one."""
        try:
            digest, ends_at = (read_text(self.private / HANDED_OVER) or "").split()
            found = bytes.fromhex(digest)
            # A token from the future was not made for now: the clock was set back.
            is_valid = len(found) == 32 and 0 < float(ends_at) - now <= TOKEN_S + 1
        except (ConfigError, ValueError):
            return None
        return found if is_valid else None

    def take(self) -> bool:
        """Remove the token; whether it was still there."""
        try:
            (self.private / HANDED_OVER).unlink()
        except OSError:
            return False
        return True

    def aliases(self) -> Sequence[tuple[str, DirectoryCap]]:
        """The aliases that name directories, sorted; none if the file cannot be read."""
        found = []
        try:
            texts = read_alias_file(self.private)
        except ConfigError:
            return ()
        for name, text in sorted(texts.items()):
            try:
                cap = parse_cap(text)
            except GridError:
                continue
            if isinstance(cap, DirectoryCap):
                found.append((name, cap))
        return found
