"""Paths of the gateway, with names and capabilities quoted. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qs, quote, unquote, urlencode

from grid.values import field, frozen

SHARED = "s"
"""The first segment of the address of a share link."""

_WALKED = frozenset({"", ".", ".."})
"""Names that browsers remove from a path, percent-encoded or not."""


def object_path(cap: str, names: Sequence[str] = (), *, directory: bool = False) -> str:
    """The path of the object that a capability, or the names below it, leads to."""
    path = "/".join(["/uri", *(quote(part, safe="") for part in (cap, *names))])
    return f"{path}/" if directory else path


def named_directory(cap: str, name: str) -> str:
    """The path of a directory that is to be shown under this name, which its capability does not contain."""
    return with_arguments(object_path(cap, directory=True), **({"filename": name} if name else {}))


def shared_path(token: str, names: Sequence[str] = ()) -> str:
    """The path of a share link, or of what the names below it lead to. A last name of "" adds a slash."""
    return "/".join([f"/{SHARED}", *(quote(part, safe="") for part in (token, *names))])


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


_LINK = re.compile(
    r"(?:https?://)?([^/\s?#@]+)/((?:uri|cap|file|named|s)/[^\s?#]+)(\?[^\s#]*)?(?:#\S*)?", re.IGNORECASE
)


@frozen
class GivenLink:
    """A link to a page of some gateway, as a person pasted it. host: with the port, if it has one.

    segments: the decoded path. file_name: the name that the link gives to what it leads to, "" if none.
    """

    host: str
    segments: tuple[str, ...] = field(repr=False)
    file_name: str = ""


def parse_link(text: str) -> GivenLink | None:
    """The link in the text, which may lack the scheme; None if it leads to nothing that is stored."""
    found = _LINK.fullmatch(text)
    if found is None:
        return None
    try:
        text.encode("utf-8")
        segments = tuple(unquote(part, errors="strict") for part in found[2].split("/"))
        arguments = parse_qs((found[3] or "")[1:], errors="strict", max_num_fields=20)
    except ValueError:
        return None
    if not segments[1] or not can_be_walked(segments[1:-1]) or segments[-1] in _WALKED - {""}:
        return None
    return GivenLink(found[1], (segments[0].lower(), *segments[1:]), arguments.get("filename", [""])[0])
