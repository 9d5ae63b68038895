"""Photographs as cameras make them, with a small picture in the beginning of each, from pictures that a browser draws."""

from __future__ import annotations

import struct
from base64 import b64decode
from typing import Any

_DRAW = """async ([width, height, type]) => {
  const canvas = new OffscreenCanvas(width, height), context = canvas.getContext("2d");
  context.fillStyle = "#3a7"; context.fillRect(0, 0, width, height);
  context.fillStyle = "#fc4"; context.fillRect(0, 0, width / 2, height / 2);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type })).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}"""

SMALL = (160, 120)
"""Pixels of the small picture of a photograph."""


def draw(page: Any, width: int, height: int, kind: str = "image/jpeg") -> bytes:
    """A picture, drawn by the browser."""
    return b64decode(page.evaluate(_DRAW, [width, height, kind]))


def photograph(page: Any, size: int, *, turn: int = 1, order: str = "<", has_small: bool = True) -> bytes:
    """A JPEG file of that many bytes at least. turn: its orientation. order: of the bytes of its numbers, as struct has it."""
    whole, small = draw(page, 640, 480), draw(page, *SMALL)
    mark = b"II" if order == "<" else b"MM"
    orientation = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, turn, 0)
    second = 8 + 2 + len(orientation) + 4
    at = second + 2 + 2 * 12 + 4
    first = struct.pack(f"{order}H", 1) + orientation + struct.pack(f"{order}I", second if has_small else 0)
    entries = struct.pack(f"{order}HHII", 0x0201, 4, 1, at) + struct.pack(f"{order}HHII", 0x0202, 4, 1, len(small))
    tiff = mark + struct.pack(f"{order}HI", 42, 8) + first
    if has_small:
        tiff += struct.pack(f"{order}H", 2) + entries + struct.pack(f"{order}I", 0) + small
    exif = b"Exif\0\0" + tiff
    assert whole[:2] == b"\xff\xd8"
    parts = [whole[:2], b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif]
    filling = b"\xff\xfe" + struct.pack(">H", 0xFFFF) + bytes(0xFFFD)  # A comment, of the greatest size.
    parts += [filling] * (size // len(filling) + 1)
    return b"".join([*parts, whole[2:]])
