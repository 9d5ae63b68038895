"""Sinks that every layer may use: one that counts, and one that keeps."""

from __future__ import annotations

from io import BytesIO

from grid.ports import Buffer, Sink


class CountingSink:
    """Passes bytes on to a sink, and knows how many there were."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.written = 0

    async def write(self, data: Buffer) -> None:
        """Take the bytes; they count from when they are passed on."""
        self.written += len(data)
        await self._sink.write(data)


class BytesSink:
    """Keeps everything that is written, in `data`."""

    def __init__(self) -> None:
        self.data = bytearray()

    async def write(self, data: Buffer) -> None:
        """Append the bytes."""
        self.data += data


class FrozenBytesSink:
    """Keeps everything that is written, for one bytes object that is not copied: a directory may have 256 MiB."""

    def __init__(self) -> None:
        self._kept = BytesIO()

    async def write(self, data: Buffer) -> None:
        """Append the bytes."""
        self._kept.write(data)

    def take(self) -> bytes:
        """All that was written."""
        return self._kept.getvalue()
