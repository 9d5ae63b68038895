"""Consumers that stand before a consumer."""

from __future__ import annotations

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
