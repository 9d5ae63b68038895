"""Removes capabilities, FURLs and private keys from text. Pure."""

from __future__ import annotations

import re

_SECRETS = re.compile(r"(?:URI(?::|%3[Aa])|pb(?:\+tor)?://|priv-v0-)[^\s'\"()<>,]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")
"""Characters that move the cursor, end the line, or reorder the text after them."""


def redact(text: str) -> str:
    """Replace the rest of every capability, FURL and private key with dots."""
    return _SECRETS.sub(lambda match: f"{match[0][:4].rstrip(':%/')}:...", text)


def one_line(text: str) -> str:
    """The text on one line, without control characters and secrets."""
    return redact(_CONTROL.sub(" ", text)).strip()
