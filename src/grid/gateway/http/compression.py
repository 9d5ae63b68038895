"""Compresses pages and assets with gzip, and never a capability. Pure. (decision 348)

Where a secret is compressed together with text that somebody else wrote, the size of the answer tells how much of the
secret that text repeats, also through TLS (the BREACH attack). So a page is compressed in pieces: each capability is
copied into a block of its own, and nothing behind it refers to what was before it. The size of an answer then depends
on its text and on how long its capabilities are, but not on what they are.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator

from attrs import evolve

from grid.gateway.http.answers import Answer

LEAST_SIZE = 4096
"""Bytes from which compressing a page is worth it: fewer fit into a few packets anyway."""

_SECRET = re.compile(rb"(?:URI(?::|%(?:25)*3A)|/operations/)[A-Za-z0-9:%_.~=+-]*", re.IGNORECASE)
"""Everything that looks like a capability, also one that is quoted in an address once or more often; and the handles of
operations.
"""

_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_LONGEST_COPY = 65535
_QUALITY = re.compile(r"q=0(?:\.0{0,3})?")


def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether a client with this Accept-Encoding header takes gzip."""
    for part in (accept_encoding or "").lower().split(","):
        coding, _, quality = part.partition(";")
        if coding.strip() in ("gzip", "x-gzip"):
            return _QUALITY.fullmatch(quality.strip()) is None
    return False


def compressed(answer: Answer, accept_encoding: str | None) -> Answer:
    """The page for this client: compressed if it takes that and the page is long. The parameter is its header."""
    if len(answer.body) < LEAST_SIZE or not accepts_gzip(accept_encoding):
        return answer
    headers = (*answer.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
    return evolve(answer, body=pack_page(answer.body), headers=headers)


def pack_page(page: bytes) -> bytes:
    """Compress a page, except for its capabilities."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    parts, at = [_HEAD], 0
    for found in _SECRET.finditer(page):
        # A full flush ends at a whole byte, and what follows it refers to nothing before it.
        parts += [packer.compress(page[at : found.start()]), packer.flush(zlib.Z_FULL_FLUSH), *_copies(found[0])]
        at = found.end()
    parts += [packer.compress(page[at:]), packer.flush(zlib.Z_FINISH)]
    return b"".join((*parts, struct.pack("<II", zlib.crc32(page), len(page) & 0xFFFFFFFF)))


def pack_asset(data: bytes) -> bytes:
    """Compress what is the same for everybody."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    parts = [_HEAD, packer.compress(data), packer.flush(zlib.Z_FINISH)]
    return b"".join((*parts, struct.pack("<II", zlib.crc32(data), len(data))))


def _copies(secret: bytes) -> Iterator[bytes]:
    """Blocks that contain the bytes as they are. [RFC 1951 3.2.4]"""
    for start in range(0, len(secret), _LONGEST_COPY):
        piece = secret[start : start + _LONGEST_COPY]
        yield struct.pack("<BHH", 0, len(piece), len(piece) ^ 0xFFFF) + piece
