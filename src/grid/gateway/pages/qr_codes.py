"""QR codes as pictures in a page. Pure.

They are drawn here, never by a service, which would get to know the text.
"""

from __future__ import annotations

import segno
from segno import DataOverflowError

from grid.gateway.pages.markup import Markup, tag

MAX_TEXT = 1000
"""Characters in a code. More would need modules that are too small for the camera of a phone."""

_BORDER = 4
"""Light modules around the code, without which readers do not find it."""


def qr_code(text: str, label: str) -> Markup | None:
    """A QR code of the text; None if it is too long. label: what it contains, for those who cannot see it."""
    if len(text) > MAX_TEXT:
        return None
    try:
        rows = segno.make_qr(text, error="m").matrix
    except DataOverflowError:
        return None
    side = len(rows) + 2 * _BORDER
    dark = "".join(
        f"M{x + _BORDER} {y + _BORDER}h{width}v1h-{width}z" for y, row in enumerate(rows) for x, width in _runs(row)
    )
    ground = tag("rect", width=side, height=side, fill="#fff")
    return tag("svg", ground, tag("path", d=dark, fill="#000"), class_="qr", viewBox=f"0 0 {side} {side}", role="img",
               aria_label=label, shape_rendering="crispEdges")  # fmt: skip


def _runs(row: bytes | bytearray) -> list[tuple[int, int]]:
    """The starts and lengths of the dark runs in a row."""
    found: list[tuple[int, int]] = []
    start: int | None = None
    for place, module in enumerate((*row, 0)):
        if module and start is None:
            start = place
        elif not module and start is not None:
            found.append((start, place - start))
            start = None
    return found
