"""Base32 without padding, lower case. [spec caps 1]

Two decoders: `decode` takes only what `encode` makes; `decode_lax` forgives one unused bit, for secret
files and storage indexes that come from elsewhere.
"""

from __future__ import annotations

from base64 import b32decode, b32encode
from collections.abc import Mapping

from grid.crypto.buffer import Buffer
from grid.errors import FormatError

ALPHABET = b"abcdefghijklmnopqrstuvwxyz234567"

_PADDING = {0: b"", 2: b"======", 4: b"====", 5: b"===", 7: b"="}
_STRICT_ZERO_BITS = {0: 0, 2: 2, 4: 4, 5: 1, 7: 3}
_LAX_ZERO_BITS = {0: 0, 2: 1, 4: 3, 5: 0, 7: 2}


def encode(data: Buffer) -> str:
    """The base32 text of the data: ceil(8n/5) characters."""
    return b32encode(data).rstrip(b"=").lower().decode("ascii")


def encoded_size(octet_count: int) -> int:
    """Characters that so many octets become."""
    return (8 * octet_count + 4) // 5


def decode(text: str | bytes) -> bytes:
    """The octets that `encode` makes this very text of; FormatError if there are none."""
    return _decode(_octets(text), _STRICT_ZERO_BITS)


def decode_lax(text: str | bytes) -> bytes:
    """The octets of the text, one more unused bit of its last character being free; FormatError."""
    return _decode(_octets(text), _LAX_ZERO_BITS)


def _octets(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode("ascii")
    except UnicodeEncodeError:
        raise FormatError("base32 text has a character that is not ASCII") from None


def _decode(octets: bytes, zero_bits: Mapping[int, int]) -> bytes:
    padding = _PADDING.get(len(octets) % 8)
    if padding is None:
        raise FormatError(f"no base32 text has {len(octets)} characters")
    if octets.translate(None, ALPHABET):
        raise FormatError("base32 text has a character outside a-z and 2-7")
    if octets and ALPHABET.index(octets[-1]) & ((1 << zero_bits[len(octets) % 8]) - 1):
        raise FormatError("the last base32 character has bits that belong to no octet")
    return b32decode(octets.upper() + padding)
