"""What tells ends of transfers apart: in journals, and in names of incomplete files. Pure. [decision 500]

Labels are for people: those of two capabilities, or of two users of one server, are the same.
"""

from __future__ import annotations

import hashlib
from typing import Protocol, runtime_checkable

from grid.transfer.ends import SourceEnd


@runtime_checkable
class Identified(Protocol):
    """An end whose label is no identity."""

    @property
    def identity(self) -> str:
        """The same in every process for the same files, and for no others. It has no secrets."""


def identity_of(end: SourceEnd) -> str:
    """What tells the end apart from others."""
    return end.identity if isinstance(end, Identified) else end.label


def hidden(*texts: str) -> str:
    """A text that is the same for the same texts, and reveals none."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
