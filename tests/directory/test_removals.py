"""Directories that are removed while something is added to them: additions wait, and what cannot be read is put back."""

from __future__ import annotations

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred

from grid.caps import DirectoryCap, SdmfWriteCap
from grid.directory.pack import Child
from grid.directory.removals import Removals, put_back
from grid.errors import ExistingChildError, IntegrityError


def cap_of(number: int) -> DirectoryCap:
    return DirectoryCap(SdmfWriteCap(write_key=bytes([number]) * 16, fingerprint=bytes(32)))


def test_addition_when_the_directory_is_being_removed_waits_and_finds_another() -> None:
    removals, found, added = Removals(), [cap_of(1)], list[DirectoryCap]()
    removed: Deferred[None] = Deferred()

    async def find() -> DirectoryCap:
        return found[-1]

    async def remove() -> None:
        async with removals.removing(cap_of(1)):
            await removed
            found.append(cap_of(2))

    async def add() -> None:
        async with removals.adding(find) as directory:
            added.append(directory)

    removing, adding = Deferred.fromCoroutine(remove()), Deferred.fromCoroutine(add())
    assert added == []
    removed.callback(None)
    assert removing.called and adding.called and added == [cap_of(2)]


class Opened:
    """A directory that cannot be read, and has these names."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    async def list(self) -> None:
        raise IntegrityError("gone")

    async def edit(self, edits: Any) -> None:
        if edits[0].name in self.names:
            raise ExistingChildError("taken", name=edits[0].name)
        self.names.append(edits[0].name)


@pytest.mark.parametrize("taken", [(), ("d",), ("d", "d~1")])
def test_directory_when_it_cannot_be_read_after_its_removal_is_put_back(taken: tuple[str, ...]) -> None:
    parent, failed = Opened(*taken), list[Any]()
    work = put_back(cast(Any, parent), "d", Child(target=cap_of(1)), cast(Any, Opened()))
    Deferred.fromCoroutine(work).addErrback(lambda failure: failed.append(failure.type))
    assert failed == [IntegrityError]
    assert parent.names == ["d", "d~1", "d~2"][: len(taken) + 1]
