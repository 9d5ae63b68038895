"""Counts as people read them: `1 server`, `2 servers`. Owns the plural of nouns in every message, and formats nothing else. Pure."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """The count and its noun. many: the plural, if it is not the singular with an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"
