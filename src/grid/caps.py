"""Capability strings and the values they stand for."""

from __future__ import annotations

from typing import NewType

StorageIndex = NewType("StorageIndex", bytes)
"""16 octets naming a file on the servers."""
