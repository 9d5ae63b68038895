"""Sinks that every layer may use: one that counts bytes, and two that keep them."""

from __future__ import annotations

from io import BytesIO

from grid.ports import Buffer, Sink


class CountingSink:
    """Passes bytes on to a sink, and counts them."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.written = 0

    async def write(self, data: Buffer) -> None:
        """Pass the bytes on and count them."""
        self.written += len(data)
        await self._sink.write(data)


class BytesSink:
    """Keeps everything that is written in `data`."""

    def __init__(self) -> None:
        self.data = bytearray()

    async def write(self, data: Buffer) -> None:
        """Append the bytes."""
        self.data += data


class FrozenBytesSink:
    """Keeps everything that is written, as one bytes object without a copy: a directory may have 256 MiB."""

    def __init__(self) -> None:
        self._kept = BytesIO()

    async def write(self, data: Buffer) -> None:
        """Append the bytes. If a bytes object is all that is written, `take` returns that object."""
        if isinstance(data, bytes) and not self._kept.tell():
            self._kept = BytesIO(data)
            self._kept.seek(len(data))
        else:
            self._kept.write(data)

    def take(self) -> bytes:
        """Return everything that was written."""
        return self._kept.getvalue()
