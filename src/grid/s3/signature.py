"""Signature version 4: the canonical form of a request, and its signature. Pure.

Owns the canonical form, which client and server compute alike, and a constant-time comparison.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

from grid.values import field, frozen

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_HASH = hashlib.sha256(b"").hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"

LISTS = frozenset(
    {
        "cache-control",
        "content-encoding",
        "content-language",
        "if-match",
        "if-none-match",
        "x-amz-copy-source-if-match",
        "x-amz-copy-source-if-none-match",
        "x-amz-object-attributes",
        "x-amz-trailer",
    }
)
"""Headers that are lists: several lines mean the same as one. [RFC 9110 5.3]"""

_BLANKS = re.compile(" +")

Pairs = Sequence[tuple[str, str]]


@frozen(kw_only=True)
class RequestHead:
    """A request before its body. path: as received, encoded. query: decoded names and values.

    headers: lower-case names and values, in the order received.
    """

    method: str
    path: str = field(repr=False)
    query: Pairs = field(repr=False)
    headers: Pairs = field(repr=False)
    lines: Mapping[str, Sequence[str]] = field(init=False, repr=False, eq=False)
    """The values of each header."""

    @lines.default
    def _by_name(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for name, value in self.headers:
            found.setdefault(name, []).append(value)
        return found

    def header(self, name: str) -> str | None:
        """The value of a header: of a list, all its lines; the first one of any other."""
        lines = self.lines.get(name)
        if lines is None:
            return None
        return ",".join(lines) if name in LISTS else lines[0]

    def parameter(self, name: str) -> str | None:
        """The first value of a parameter."""
        return next((value for found, value in self.query if found == name), None)


@frozen(kw_only=True)
class Scope:
    """The scope of a signing key. day: eight digits."""

    day: str
    region: str
    service: str = "s3"

    def __str__(self) -> str:
        return f"{self.day}/{self.region}/{self.service}/aws4_request"


@lru_cache(maxsize=64)
def signing_key(secret: str, scope: Scope) -> bytes:
    """Derive the key for a day, a region and a service from the secret."""
    key = f"AWS4{secret}".encode()
    for part in (scope.day, scope.region, scope.service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def sign(key: bytes, text: str) -> str:
    """Sign a text; the signature in hexadecimal."""
    return hmac.digest(key, text.encode("utf-8", "surrogateescape"), "sha256").hex()


def is_equal(one: str, other: str) -> bool:
    """Compare two signatures in constant time."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def request_text(head: RequestHead, moment: str, scope: Scope, signed: Collection[str], payload: str) -> str:
    """The text that a request's signature covers. payload: the hash of its body, or a placeholder."""
    digest = hashlib.sha256(canonical_request(head, signed, payload).encode("utf-8", "surrogateescape")).hexdigest()
    return f"{ALGORITHM}\n{moment}\n{scope}\n{digest}"


def canonical_request(head: RequestHead, signed: Collection[str], payload: str) -> str:
    """The request in canonical form."""
    pairs = sorted((encode(name), encode(value)) for name, value in head.query if name != "X-Amz-Signature")
    query = "&".join(f"{name}={value}" for name, value in pairs)
    names = sorted(signed)
    lines = []
    for name in names:
        values = ",".join(_BLANKS.sub(" ", value.strip()) for value in head.lines.get(name, ()))
        lines.append(f"{name}:{values}\n")
    path = quote(unquote_to_bytes(head.path.encode("utf-8", "surrogateescape")), safe="/-_.~")
    return "\n".join((head.method, path, query, "".join(lines), ";".join(names), payload))


def encode(text: str) -> str:
    """Encode a parameter for the canonical form."""
    return quote(text.encode("utf-8", "surrogateescape"), safe="-_.~")


@frozen
class ChunkSigner:
    """Signs the chunks of one body, each over the signature of the one before."""

    key: bytes = field(repr=False)
    moment: str
    scope: Scope

    def chunk(self, previous: str, digest: str) -> str:
        """The signature of a chunk with this SHA-256."""
        return sign(
            self.key, f"AWS4-HMAC-SHA256-PAYLOAD\n{self.moment}\n{self.scope}\n{previous}\n{EMPTY_HASH}\n{digest}"
        )

    def trailer(self, previous: str, lines: bytes) -> str:
        """The signature of the trailers."""
        digest = hashlib.sha256(lines).hexdigest()
        return sign(self.key, f"AWS4-HMAC-SHA256-TRAILER\n{self.moment}\n{self.scope}\n{previous}\n{digest}")
