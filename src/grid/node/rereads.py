"""Notices that a local file changed between two readings of it.

A put with a convergent key reads a file twice: for the key, and to encrypt it. The key must encrypt nothing else. [decision 505]
"""

from __future__ import annotations

import os

from grid.errors import GridError


class FileChangedError(GridError):
    """A file changed while it was read."""


class Rereads:
    """Watches the reads of one open file. The facts that count are its size and the time of its last change."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._facts = self._now()
        self._size = self._facts[0]
        self._read_to = 0
        self._is_reread = False

    def note(self, offset: int, length: int) -> None:
        """Note what was just read, before it is used. FileChangedError at the end of a second reading if the file changed."""
        self._is_reread = self._is_reread or offset < self._read_to
        self._read_to = max(self._read_to, offset + length)
        if self._is_reread and offset + length >= self._size and self._now() != self._facts:
            raise FileChangedError("the file changed while it was read; put it again when it no longer changes")

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns
