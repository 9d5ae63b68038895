"""Parses request paths into names in directories. Pure.

All paths are relative to the root; `.` and `..` are resolved here, and nothing leads above the root.
"""

from __future__ import annotations

from grid.directory.names import normalize_name
from grid.errors import FormatError
from grid.sftp.faults import BAD_MESSAGE, SftpFault

MAX_PATH = 16384
MAX_NAME = 1024
"""Bytes of a name. Linux cannot list a mounted directory with a longer name than its FUSE allows: 1,024 bytes in older kernels."""

MAX_DEPTH = 256

Path = tuple[str, ...]
"""Names from the root; () for the root itself."""


def parse_path(raw: bytes) -> Path:
    """Parse a path; SftpFault if it is invalid."""
    if len(raw) > MAX_PATH:
        raise SftpFault(BAD_MESSAGE, f"a path has at most {MAX_PATH} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise SftpFault(BAD_MESSAGE, "a path must be UTF-8 text") from None
    if "\0" in text:
        raise SftpFault(BAD_MESSAGE, "a path must not contain NUL")
    names: list[str] = []
    for part in text.split("/"):
        if part == "..":
            del names[-1:]
        elif part not in ("", "."):
            names.append(_parse_name(part))
    if len(names) > MAX_DEPTH:
        raise SftpFault(BAD_MESSAGE, f"a path has at most {MAX_DEPTH} names")
    return tuple(names)


def can_be_named(name: str) -> bool:
    """Whether a path can name such an entry.

    Clients would misread other names as paths, or reject the whole directory.
    """
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name and not _is_too_long(name)


def show_path(path: Path) -> bytes:
    """The path as clients see it."""
    return ("/" + "/".join(path)).encode("utf-8", "replace")


def _parse_name(part: str) -> str:
    try:
        name = normalize_name(part)
    except FormatError as error:
        raise SftpFault(BAD_MESSAGE, str(error)) from None
    if _is_too_long(name):
        raise SftpFault(BAD_MESSAGE, f"a name has at most {MAX_NAME} bytes")
    return name


def _is_too_long(name: str) -> bool:
    return len(name.encode("utf-8", "surrogatepass")) > MAX_NAME
