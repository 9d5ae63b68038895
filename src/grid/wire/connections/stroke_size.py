"""How many bytes a server's connection encrypts, or takes from its socket, at once: fewer, the more connections are open.

OpenSSL keeps for each connection the largest buffer that it ever needed, in each direction, until the connection ends.
With large strokes on all of them, clients that never read would make a server hold half a megabyte each, outside of
every budget. Pure.
"""

from __future__ import annotations

LARGEST_STROKE = 2**18
"""One call into OpenSSL for a quarter megabyte costs little beside the cipher."""

_BY_CROWD = ((16, LARGEST_STROKE), (64, 2**16))
_SMALLEST_STROKE = 2**14


def stroke_size(crowd: int) -> int:
    """Bytes at once on each of that many connections."""
    return next((size for most, size in _BY_CROWD if crowd <= most), _SMALLEST_STROKE)


def largest_stroke() -> int:
    """Bytes at once where connections are few: a client's."""
    return LARGEST_STROKE
