"""Text that may be shown: without capabilities, furls and private keys. Pure."""

from __future__ import annotations

import re

_SECRETS = re.compile(r"(?:URI(?::|%3[Aa])|pb(?:\+tor)?://|priv-v0-)[^\s'\"()<>,]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")
"""What moves the cursor, ends the line, or shows what follows in another order than it is written."""


def redact(text: str) -> str:
    """The text with the rest of every capability, furl and private key replaced by dots."""
    return _SECRETS.sub(lambda match: f"{match[0][:4].rstrip(':%/')}:...", text)


def one_line(text: str) -> str:
    """The text on one line, without control characters and without secrets."""
    return redact(_CONTROL.sub(" ", text)).strip()
