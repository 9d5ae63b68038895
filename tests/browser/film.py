"""A film that a browser can seek in: the browser draws and encodes its frames, and this module wraps them as WebM."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any

WIDTH, HEIGHT = 480, 270

_DRAW = """async ([width, height, count]) => {
  const canvas = new OffscreenCanvas(width, height), context = canvas.getContext("2d");
  const frames = [];
  const encoder = new VideoEncoder({
    error: (error) => { throw error; },
    output: (chunk) => { const bytes = new Uint8Array(chunk.byteLength); chunk.copyTo(bytes); frames.push(bytes); },
  });
  encoder.configure({ codec: "vp8", width, height, bitrate: 20_000_000, framerate: 1 });
  const noise = context.createImageData(width, height);
  for (let index = 0; index < count; index++) {
    for (let at = 0; at < noise.data.length; at++) noise.data[at] = at % 4 === 3 ? 255 : Math.random() * 256;
    context.putImageData(noise, 0, 0);
    for (let bit = 0; bit < 8; bit++) {
      context.fillStyle = index >> bit & 1 ? "white" : "black";
      context.fillRect(bit * width / 8, 0, width / 8, height / 2);
    }
    const frame = new VideoFrame(canvas, { timestamp: index * 1e6, duration: 1e6 });
    encoder.encode(frame, { keyFrame: true });
    frame.close();
  }
  await encoder.flush();
  return frames.map((bytes) => {
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text);
  });
}"""

_SEEN = """() => {
  const video = document.querySelector("video"), width = video.videoWidth, height = video.videoHeight;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(video, 0, 0);
  const bits = [0, 1, 2, 3, 4, 5, 6, 7];
  const isWhite = (bit) => context.getImageData((bit + 0.5) * width / 8, height / 4, 1, 1).data[0] > 128;
  return bits.reduce((sum, bit) => sum + (isWhite(bit) ? 1 << bit : 0), 0);
}"""


def make_film(page: Any, seconds: int) -> bytes:
    """A frame a second, each a key frame whose upper half has its number in bars, the lower half noise."""
    frames = [base64.b64decode(frame) for frame in page.evaluate(_DRAW, [WIDTH, HEIGHT, seconds])]
    assert len(frames) == seconds
    return webm(frames)


def frame_seen(page: Any) -> int:
    """The number of the frame that the page's film shows now."""
    return int(page.evaluate(_SEEN))


def webm(frames: Sequence[bytes]) -> bytes:
    """VP8 key frames, one a second, as a WebM document with cues before them."""
    length = struct.pack(">d", 1000.0 * len(frames))
    info = _of(0x1549A966, _number(0x2AD7B1, 10**6), _of(0x4489, length), _of(0x4D80, b"grid"), _of(0x5741, b"grid"))
    picture = _of(0xE0, _number(0xB0, WIDTH), _number(0xBA, HEIGHT))
    entry = _of(0xAE, _number(0xD7, 1), _number(0x73C5, 1), _number(0x83, 1), _of(0x86, b"V_VP8"), picture)
    tracks = _of(0x1654AE6B, entry)
    clusters = [
        _of(0x1F43B675, _number(0xE7, 1000 * index), _of(0xA3, b"\x81\0\0\x80", frame))
        for index, frame in enumerate(frames)
    ]
    begin = len(info) + len(tracks) + len(_cues([0] * len(frames)))
    positions = [begin + sum(map(len, clusters[:index])) for index in range(len(clusters))]
    head = _of(0x1A45DFA3, _of(0x4282, b"webm"), _number(0x4287, 4), _number(0x4285, 2))
    return head + _of(0x18538067, info, tracks, _cues(positions), *clusters)


def _cues(positions: Sequence[int]) -> bytes:
    points = [
        _of(0xBB, _number(0xB3, 1000 * index), _of(0xB7, _number(0xF7, 1), _number(0xF1, position)))
        for index, position in enumerate(positions)
    ]
    return _of(0x1C53BB6B, *points)


def _of(id: int, *contents: bytes) -> bytes:
    """An element of EBML, its length always in eight bytes."""
    body = b"".join(contents)
    return id.to_bytes((id.bit_length() + 7) // 8, "big") + b"\x01" + len(body).to_bytes(7, "big") + body


def _number(id: int, value: int) -> bytes:
    return _of(id, value.to_bytes(8, "big"))
