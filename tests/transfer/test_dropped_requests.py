"""Requests that a library drops in the middle of a transfer: no file has a hole, and nothing waits forever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from attrs import evolve
from twisted.internet.defer import CancelledError as CancelledByTwisted

from grid.errors import GridError
from grid.ports import Buffer
from grid.transfer.choices import Mode
from grid.transfer.ends import Body, Entry, LeftOut, OpenedSource, PassingError
from grid.transfer.local_end import LocalEnd
from tests.transfer.test_engine import FAST, contents, send

SIZE = 3 * 2**20


class _DroppedFile:
    """A file of ones whose library gives one request up, once."""

    shortcut: object = None

    def __init__(self, entry: Entry, end: _DroppingEnd) -> None:
        self.entry, self._end = entry, end

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        while length:
            if offset == SIZE - 2**20:
                await self._end.drop("read")
            count = min(length, 2**20)
            yield b"1" * count
            offset, length = offset + count, length - count

    async def require_unchanged(self) -> None:
        """It never changes."""

    async def close(self) -> None:
        """Nothing to close."""


class _DroppingEnd:
    """A source whose library cancels a waiting request, as it does when a connection ends; at one step, once."""

    label = "dropping"

    def __init__(self, step: str, error: BaseException) -> None:
        self._step, self._error = step, error
        self.dropped = 0

    async def drop(self, step: str) -> None:
        await asyncio.sleep(0)
        if step == self._step and not self.dropped:
            self.dropped += 1
            raise self._error

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        for number in range(3):
            await self.drop("entries")
            yield Entry(name=f"file-{number}", size=SIZE, mtime_ns=1)

    async def open(self, entry: Entry) -> OpenedSource:
        await self.drop("open")
        return _DroppedFile(entry, self)

    async def close(self) -> None:
        """Nothing to close."""


ERRORS = pytest.mark.parametrize("error", [asyncio.CancelledError, CancelledByTwisted], ids=["asyncio", "twisted"])


@ERRORS
@pytest.mark.parametrize("mode", ["stream", "chunked", "chunked-stream"])
@pytest.mark.parametrize("step", ["open", "read"])
def test_request_when_a_library_gives_it_up_is_made_again_and_leaves_no_hole(
    step: str, mode: Mode, error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    end = _DroppingEnd(step, error())

    outcome = send(end, tmp_path / "target", tmp_path, evolve(FAST, mode=mode, transfers=1))

    assert (end.dropped, outcome.copied, list(outcome.failures)) == (1, 3, [])
    assert list(contents(tmp_path / "target").values()) == [b"1" * SIZE] * 3


@ERRORS
def test_listing_when_a_library_gives_it_up_ends_the_transfer_with_an_error(
    error: type[BaseException], tmp_path: Path
) -> None:
    with pytest.raises(PassingError, match="dropped"):
        send(_DroppingEnd("entries", error()), tmp_path / "target", tmp_path)


class _DroppingTarget(LocalEnd):
    """A target that puts nothing in its place: its library gives the requests up, as often as it says."""

    def __init__(self, path: Path, count: int) -> None:
        path.mkdir()
        super().__init__(str(path), is_target=True)
        self.count, self.settled = count, set[str]()

    async def store(self, entry: Entry, body: Body) -> str:
        await super().store(entry, body)
        return "token"

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        self.count -= 1
        if self.count >= 0:
            raise asyncio.CancelledError
        self.settled |= {entry.name for entry, _ in stored}
        return {}


@pytest.mark.parametrize(("count", "fails"), [(FAST.retries, False), (FAST.retries + 1, True)])
def test_files_when_a_library_gives_their_settling_up_are_settled_later_or_fail(
    count: int, *, fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    names, target = {f"file-{number}" for number in range(3)}, _DroppingTarget(tmp_path / "target", count)
    outcome = send(_DroppingEnd("", KeyError()), target, tmp_path)
    assert target.settled == (set() if fails else names)
    assert {name for name, _ in outcome.failures} == names - target.settled
    assert all("dropped" in str(error) for _, error in outcome.failures)
    outcome = send(_DroppingEnd("", KeyError()), target, tmp_path)
    assert target.settled == names and outcome.copied == 0, "what is stored is not sent again"
