"""Entity tags of immutable objects, and whether a client has what a tag stands for. Pure. [spec webapi 4.4]"""

from __future__ import annotations

from grid.caps import ChkCap, ChkVerifyCap, DirectoryCap, KnownCap
from grid.codec.base32 import encode

TAGGED_VIEWS = frozenset({"", "json", "uri", "readonly-uri"})
"""The values of `t` whose answers have a tag."""


def entity_tag(cap: KnownCap, view: str, *, by_path: bool) -> str | None:
    """The tag, without quotes as 1.20 sends it, of what `t=view` answers; None where it could change.

    by_path: the object was found in a directory, so that its JSON has metadata that may change.
    """
    body = cap.body if isinstance(cap, DirectoryCap) else cap
    if view not in TAGGED_VIEWS or (by_path and view == "json") or not isinstance(body, ChkCap | ChkVerifyCap):
        return None
    kind = "DIR:" if isinstance(cap, DirectoryCap) else ""
    return f"{kind}{encode(body.storage_index)}-{view}"


def is_held(if_none_match: str | None, tag: str | None) -> bool:
    """Whether the client said that it has what the tag stands for, quoted or not, alone or in a list."""
    if if_none_match is None or tag is None:
        return False
    listed = [part.strip() for part in if_none_match.split(",")]
    return "*" in listed or any(_bare(part) == tag for part in listed)


def _bare(tag: str) -> str:
    tag = tag.removeprefix("W/")
    return tag[1:-1] if len(tag) >= 2 and tag.startswith('"') and tag.endswith('"') else tag
