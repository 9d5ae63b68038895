"""The private key that a request brings for a new mutable file or directory. Pure. [spec webapi 1.3]

No message holds any of it.
"""

from __future__ import annotations

import base64
import binascii

from grid.crypto.rsa import PrivateKey, import_private_key
from grid.errors import FormatError
from grid.limits import MAX_RSA_KEY_SIZE


def parse_key_argument(text: str) -> PrivateKey:
    """The key in the URL-safe base64 of a DER key of 2048 bits, PKCS#1 or PKCS#8, with or without `=`; FormatError."""
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
