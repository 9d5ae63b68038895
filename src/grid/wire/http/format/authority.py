"""Authorization: the swissnum, the secrets of single requests, and the token for unencrypted reads. [spec wire 14] Pure.

No repr or message contains a secret, and every comparison takes constant time.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Collection, Iterator, Mapping

from grid.crypto.hashing import tagged_hash
from grid.errors import FormatError
from grid.wire.http.format.messages import Headers

RENEW = "lease-renew-secret"
CANCEL = "lease-cancel-secret"
UPLOAD = "upload-secret"
WRITE_ENABLER = "write-enabler"

LEASE_SECRETS = frozenset((RENEW, CANCEL))
KINDS = frozenset((RENEW, CANCEL, UPLOAD, WRITE_ENABLER))
LEASE_SECRET_SIZE = 32

SCHEME = b"Tahoe-LAFS "
PLAIN_SCHEME = b"Grid-Read "

_PLAIN_TAG = b"grid_plaintext_read_token_v1"


def authorization(swissnum: str) -> bytes:
    """The Authorization header's value for the swissnum."""
    return SCHEME + b64encode(swissnum.encode("ascii"))


def plain_authorization(swissnum: str) -> bytes:
    """The Authorization header's value for unencrypted reads; it does not reveal the swissnum."""
    return PLAIN_SCHEME + b64encode(tagged_hash(_PLAIN_TAG, swissnum.encode("ascii")))


class Gatekeeper:
    """Compares Authorization headers with the expected value. Until that is set, it admits nobody."""

    def __init__(self) -> None:
        self._expected: bytes | None = None

    def expect(self, value: bytes) -> None:
        """Admit requests with this value."""
        self._expected = value

    def admits(self, headers: Headers) -> bool:
        """Whether the request may be served; FormatError if its header cannot be read."""
        values = headers.get(b"authorization", ())
        if any(not value.isascii() for value in values):
            raise FormatError("an Authorization header that is not ASCII")
        given = values[0] if len(values) == 1 else b""
        return self._expected is not None and hmac.compare_digest(given, self._expected)


def parse_secrets(headers: Headers, required: Collection[str]) -> Mapping[str, bytes]:
    """Parse the request's secrets by kind; FormatError unless they are exactly of the required kinds."""
    values = headers.get(b"x-tahoe-authorization")
    if values is None:
        if required:
            raise FormatError("a request without the secrets that it needs")
        return {}
    secrets: dict[str, bytes] = {}
    for value in values:
        kind, secret = _parse_secret(value)
        if kind in secrets:
            raise FormatError("a request with two secrets of a kind")
        secrets[kind] = secret
    if secrets.keys() != set(required):
        raise FormatError("a request whose secrets are not those that it needs")
    return secrets


def _parse_secret(value: bytes) -> tuple[str, bytes]:
    name, _, text = value.strip().partition(b" ")
    kind = name.decode("latin-1")
    if kind not in KINDS:
        raise FormatError("a secret of an unknown kind")
    try:
        secret = b64decode(text.strip(), validate=True)
    except (Base64Error, ValueError):
        raise FormatError("a secret that is not base64") from None
    if not secret or (kind in LEASE_SECRETS and len(secret) != LEASE_SECRET_SIZE):
        raise FormatError("a secret of a wrong length")
    return kind, secret


def pack_secrets(secrets: Mapping[str, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The headers for those secrets."""
    for kind, secret in secrets.items():
        yield b"X-Tahoe-Authorization", kind.encode("ascii") + b" " + b64encode(secret)
