"""Headers of a download that depend on the file's name: type, encoding and disposition. Pure. [spec webapi 4.2]

Owns the table of types, which is the same on every machine. No name gets into a header unquoted.
"""

from __future__ import annotations

import unicodedata
from mimetypes import MimeTypes
from pathlib import PurePosixPath
from urllib.parse import quote

from grid.values import frozen

DEFAULT_TYPE = "text/plain"
"""The type of a file whose name has no known extension."""

UNNAMED = "unknown"
"""The name used for a file without one."""

_ENCODINGS = {".gz": "gzip", ".bz2": "bzip2"}

_MORE_TYPES = {
    ".7z": "application/x-7z-compressed",
    ".apk": "application/vnd.android.package-archive",
    ".avif": "image/avif",
    ".conf": "text/plain",
    ".deb": "application/vnd.debian.binary-package",
    ".diff": "text/plain",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".epub": "application/epub+zip",
    ".flac": "audio/flac",
    ".heic": "image/heic",
    ".ico": "image/vnd.microsoft.icon",
    ".iso": "application/x-iso9660-image",
    ".java": "text/plain",
    ".js": "text/javascript",
    ".jxl": "image/jxl",
    ".log": "text/plain",
    ".m4a": "audio/mp4",
    ".m4v": "video/mp4",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".mkv": "video/x-matroska",
    ".odp": "application/vnd.oasis.opendocument.presentation",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".oga": "audio/ogg",
    ".ogg": "audio/ogg",
    ".ogv": "video/ogg",
    ".opus": "audio/ogg",
    ".otf": "font/otf",
    ".patch": "text/plain",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".rar": "application/vnd.rar",
    ".rtf": "application/rtf",
    ".ttf": "font/ttf",
    ".weba": "audio/webm",
    ".webm": "video/webm",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".xz": "application/x-xz",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".zst": "application/zstd",
}


def _load_types() -> dict[str, str]:
    """Python's built-in table, without the additions of this machine, overridden by ours."""
    return dict(MimeTypes().types_map[True]) | _MORE_TYPES


_TYPES = _load_types()


@frozen
class ContentType:
    """type: of the contents. encoding: compression named by the extension, or None."""

    type: str
    encoding: str | None = None


def content_type(name: str) -> ContentType:
    """Guess the type from the extension.

    A compressed file gets only its encoding; its contents count as text/plain, as in 1.20.
    """
    extension = _extension_of(name)
    encoding = _ENCODINGS.get(extension)
    if encoding is not None:
        return ContentType(DEFAULT_TYPE, encoding)
    return ContentType(_TYPES.get(extension, DEFAULT_TYPE))


def _extension_of(name: str) -> str:
    if "/" in name:
        return PurePosixPath("/" + name).suffix.lower()
    dot = name.rfind(".")
    return name[dot:].lower() if 0 < dot < len(name) - 1 else ""


def attachment(name: str) -> str:
    """Return a Content-Disposition that saves the file under this name. It is always a single line.

    `filename` holds the name's own characters, as in 1.20. Where some could be misread, `filename*` repeats the whole
    name. The text is Latin-1, or UTF-8 bytes read as Latin-1, which headers carry unchanged.
    """
    shown = "".join(_harmless(character) for character in name) or UNNAMED
    if shown == name and name.isascii():
        return f'attachment; filename="{shown}"'
    exact = name.encode("utf-8", "replace").decode("utf-8")
    return f"attachment; filename=\"{shown}\"; filename*=UTF-8''{quote(exact, safe='')}"


def _harmless(character: str) -> str:
    if character in '"\\':
        return "_"
    if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
        return " "
    return character
