"""Grid-manager certificates: until when a server may receive new shares. Pure. [spec wire 11]"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from grid.codec import base32
from grid.crypto.ed25519 import VerifyingKey
from grid.errors import FormatError, IntegrityError
from grid.limits import MAX_CERTIFICATES
from grid.ports import ServerId

NEVER = -math.inf
ALWAYS = math.inf


def permit_expires(certificates: object, server_id: ServerId, manager_keys: Sequence[VerifyingKey]) -> float:
    """Unix time until which the server may receive new shares: the latest expiry of its valid certificates.

    certificates: the announcement's field, unchecked; malformed ones are ignored.
    manager_keys: of the configured grid managers; without any, every server may always be used.
    """
    if not manager_keys:
        return ALWAYS
    if not isinstance(certificates, list):
        return NEVER
    return max((_expiry(entry, server_id, manager_keys) for entry in certificates[:MAX_CERTIFICATES]), default=NEVER)


def _expiry(entry: object, server_id: ServerId, manager_keys: Sequence[VerifyingKey]) -> float:
    try:
        content = _verified(entry, manager_keys)
        if content.get("version") != 1 or content.get("public_key") != f"pub-{server_id}":
            return NEVER
        expires = datetime.fromisoformat(str(content.get("expires")))
        return NEVER if expires.tzinfo is None else expires.timestamp()
    except (FormatError, IntegrityError, ValueError, OverflowError, RecursionError):
        return NEVER


def _verified(entry: object, manager_keys: Sequence[VerifyingKey]) -> Mapping[str, Any]:
    if not isinstance(entry, dict) or entry.keys() != {"certificate", "signature"}:
        raise FormatError("a certificate has a text and a signature, and nothing else")
    text, signature = entry["certificate"], entry["signature"]
    if not isinstance(text, str) or not isinstance(signature, str):
        raise FormatError("the parts of a certificate are texts")
    message, signature_bytes = text.encode(), base32.decode(signature)
    if not any(_is_signed(key, signature_bytes, message) for key in manager_keys):
        raise IntegrityError("a certificate that no configured grid manager has signed")
    content = json.loads(text)
    if not isinstance(content, dict):
        raise FormatError("a certificate's text is a JSON object")
    return content


def _is_signed(key: VerifyingKey, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message)
    except IntegrityError:
        return False
    return True
