"""The types that hold bytes."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
"""Contiguous bytes; a memoryview has one-byte items. Borrowed for the call unless its docstring says otherwise."""
