"""What ends can tell of themselves besides the port: which one each is, and how they will list what they store. Pure.

Identities tell ends apart in journals, and in names of incomplete files. Labels are for people: those of two capabilities,
or of two users of one server, are the same. [decision 500]
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Set
from typing import Protocol, runtime_checkable

from attrs import evolve

from grid.transfer.ends import Entry, SourceEnd, TargetEnd


@runtime_checkable
class Identified(Protocol):
    """An end whose label is no identity."""

    @property
    def identity(self) -> str:
        """The same in every process for the same files, and for no others. It has no secrets."""


@runtime_checkable
class CheckingTarget(Protocol):
    """A target that can tell whether it still has files that are stored, but not in place."""

    async def doubted(self, tokens: Sequence[str]) -> Set[str]:
        """The tokens of those that it may not have. GridError."""


@runtime_checkable
class KnowingTarget(Protocol):
    """A target that knows by which facts it will list a file."""

    def as_listed(self, entry: Entry) -> Entry:
        """A file that was just stored, with its time and its tag there; None and "" for those that it does not know."""


def identity_of(end: SourceEnd) -> str:
    """What tells the end apart from others."""
    return end.identity if isinstance(end, Identified) else end.label


def hidden(*texts: str) -> str:
    """A text that is the same for the same texts, and reveals none."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def keep_times(*ends: SourceEnd) -> bool:
    """Whether all of them list the times of files as they were stored, to the millisecond."""
    return all(getattr(end, "keeps_times", False) for end in ends)


def as_listed(target: TargetEnd, entries: Sequence[Entry]) -> list[Entry]:
    """Files that were just stored, with what is known of how the target will list them."""
    if isinstance(target, KnowingTarget):
        return [target.as_listed(entry) for entry in entries]
    return [evolve(entry, mtime_ns=None, tag="") for entry in entries]
