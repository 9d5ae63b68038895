"""The arguments of a request, from its query and then its form, and how each is parsed. Pure. [spec webapi 1.3]

No message quotes a private key.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Literal
from urllib.parse import unquote_to_bytes

from grid.crypto.rsa import PrivateKey, import_private_key
from grid.errors import FormatError
from grid.gateway.faults import BadRequest
from grid.limits import MAX_RSA_KEY_SIZE
from grid.mutable.share.geometry import FormatName

FileFormat = Literal["chk", "sdmf", "mdmf"]
"""The formats of files. All but the first are mutable."""


def choose_format(format: FileFormat | None, mutable: bool | None) -> FileFormat:
    """Return the format named, or else the one that `mutable` implies; a mutable file without a format is SDMF."""
    if format is not None:
        return format
    return "sdmf" if mutable else "chk"


def mutable_format(format: FileFormat) -> FormatName | None:
    """The format as the engine of mutable files names it; None if the file is immutable."""
    return None if format == "chk" else format


def parse_key_argument(text: str) -> PrivateKey:
    """Parse URL-safe base64, with or without `=`, of a 2048-bit DER key in PKCS#1 or PKCS#8; FormatError."""
    if len(text) > 2 * MAX_RSA_KEY_SIZE:
        raise FormatError("private-key= is longer than any key")
    padded = text.rstrip("=")
    padded += "=" * (-len(padded) % 4)
    try:
        der = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise FormatError("private-key= takes the URL-safe base64 of a private key") from None
    try:
        return import_private_key(der)
    except FormatError:
        raise FormatError("private-key= takes an unencrypted RSA key of 2048 bits, as DER") from None


MAX_ARGUMENTS = 1000
"""Arguments allowed in a query or a form; our own forms have six."""

_TRUE = frozenset({"true", "t", "1", "on"})
_FALSE = frozenset({"false", "f", "0", "off"})

Replace = Literal[True, False, "only-files"]


class Arguments:
    """Arguments by name. If a name has several values, the first counts."""

    def __init__(self, query: Sequence[tuple[str, str]] = ()) -> None:
        self._values: dict[str, str] = {}
        self._pairs: list[tuple[str, str]] = []
        self.query = tuple(query)
        self.add(query)

    def add(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add arguments after the existing ones."""
        for name, value in pairs:
            self._values.setdefault(name, value)
            self._pairs.append((name, value))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, default: str | None = None) -> str | None:
        """The value as text; BadRequest if it is not UTF-8."""
        value = self._values.get(name, default)
        if value is not None and not _is_text(value):
            raise BadRequest(f"{name}= is not UTF-8")
        return value

    def texts(self, name: str) -> list[str]:
        """All values of that name, as text; BadRequest if one is not UTF-8."""
        found = [value for given, value in self._pairs if given == name]
        if not all(map(_is_text, found)):
            raise BadRequest(f"{name}= is not UTF-8")
        return found

    def shown(self, name: str) -> str | None:
        """The value for display: bytes that are not UTF-8 become replacement characters."""
        value = self._values.get(name)
        return None if value is None else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

    def required(self, name: str) -> str:
        """The value; BadRequest if it is missing."""
        value = self.text(name)
        if value is None:
            raise BadRequest(f"{name}= is missing")
        return value

    @property
    def t(self) -> str:
        """The requested operation, `t=`."""
        return (self.text("t") or "").strip()

    def flag(self, name: str, default: bool) -> bool:
        """A boolean; BadRequest if it is anything else."""
        return self.flag_if_given(name) if self._values.get(name) is not None else default  # type: ignore[return-value]

    def flag_if_given(self, name: str) -> bool | None:
        """A boolean, or None if it is missing; BadRequest if it is anything else."""
        value = self._values.get(name)
        if value is None:
            return None
        word = value.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise BadRequest(f"{name}= must be true or false")

    def replace(self) -> Replace:
        """`replace=`: whether something may be replaced, and what."""
        value = (self._values.get("replace") or "").strip().lower()
        return "only-files" if value == "only-files" else self.flag("replace", True)

    def format(self) -> FileFormat | None:
        """`format=`, or None if it is missing."""
        match (self._values.get("format") or "").strip().lower():
            case "":
                return None
            case "chk":
                return "chk"
            case "sdmf":
                return "sdmf"
            case "mdmf":
                return "mdmf"
        raise BadRequest("format= must be CHK, SDMF or MDMF")

    def offset(self) -> int | None:
        """`offset=`, or None if it is missing."""
        value = self._values.get("offset")
        if value is None:
            return None
        text = value.strip()
        if not (text.isascii() and text.isdigit() and len(text) <= 19):
            raise BadRequest("offset= must be a whole number, not negative")
        return int(text)

    def count(self, name: str) -> int | None:
        """A whole number, or None if it is missing; BadRequest if it is anything else."""
        value = self._values.get(name)
        if value is None:
            return None
        text = value.strip()
        if not (text.isascii() and text.isdigit() and len(text) <= 12):
            raise BadRequest(f"{name}= must be a whole number")
        return int(text)


def parse_query(raw: bytes) -> list[tuple[str, str]]:
    """Parse a query or a form of type x-www-form-urlencoded into pairs; BadRequest if there are too many.

    Bytes that are not UTF-8 become surrogates: only code that uses such a value has to refuse it.
    """
    if not raw:
        return []
    parts = raw.split(b"&", MAX_ARGUMENTS + 1)
    if len(parts) > MAX_ARGUMENTS:
        raise BadRequest("too many arguments")
    pairs = []
    for part in parts:
        if part:
            name, _, value = part.partition(b"=")
            pairs.append((_decode(name), _decode(value)))
    return pairs


def _decode(raw: bytes) -> str:
    return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8", "surrogateescape")


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)
