"""What octets may come in."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
"""Contiguous octets; a memoryview has one-octet items. Borrowed for the call unless its docstring says otherwise."""
