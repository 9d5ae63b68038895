"""Parses encodings in campaign files. Pure."""

from __future__ import annotations

import re
from typing import Any

from perf.campaigns.campaign import Encoding

_ENCODING = re.compile(r"(\d+)-of-(\d+)(?: happy (\d+))?")
USUAL_HAPPY = 7
ENCODING_WORDS = '"K-of-N" or "K-of-N happy H" with 1 <= K <= N <= 256 and H <= N'


def parse_encoding(value: Any) -> Encoding:  # noqa: ANN401 - TOML's
    """Parse an encoding; ValueError."""
    found = _ENCODING.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    needed, total = int(found[1]), int(found[2])
    happy = int(found[3]) if found[3] else min(USUAL_HAPPY, total)
    if not 1 <= needed <= total <= 256 or not 1 <= happy <= total:
        raise ValueError
    return Encoding(needed=needed, happy=happy, total=total)
