"""Small files that are sent in groups: what a group costs, and what happens to the files of one that cannot be sent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from grid.errors import GridError
from grid.ports import Buffer
from grid.transfer.comparing import PAGE_COUNT
from grid.transfer.digest import BLOCK, ContentDigest, DigestKey, digest_of_bytes
from grid.transfer.ends import Entry, LeftOut
from grid.transfer.engine import Transfer
from grid.transfer.journal import DONE, Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.local_files import SMALL_SIZE
from grid.transfer.outcome import Observer, Outcome, Plan
from grid.transfer.rates import Left, unlimited
from grid.transfer.together import GROUP_BYTES, GROUP_COUNT, Together
from tests.transfer.test_engine import FAST, contents, send

COUNT = 1000
GROUPS = -(-PAGE_COUNT // GROUP_COUNT) * -(-COUNT // PAGE_COUNT)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Many small files in two directories."""
    folder = tmp_path / "source"
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True)
    for number in range(COUNT):
        (folder / ("one" if number % 3 else "two") / f"file-{number:04}").write_bytes(b"%d" % number * 10)
    return folder


class _Counted:
    """Calls on threads, and statements of journals."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        to_thread = asyncio.to_thread

        def count(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            self.calls.append(function.__name__)
            return to_thread(function, *arguments, **options)

        monkeypatch.setattr("asyncio.to_thread", count)


def run(
    source: LocalEnd, target: LocalEnd, state: Path, plan: Plan = FAST, **options: Any
) -> tuple[Outcome, list[str]]:
    """One run; returns the statements that its journal's file was given, too."""
    statements: list[str] = []

    async def case() -> Outcome:
        journal = Journal(state / "journal.sqlite")
        journal._rows.set_trace_callback(statements.append)
        try:
            return await Transfer([source], target, journal, plan, **options).run()
        finally:
            journal.close()

    return asyncio.run(case()), statements


def test_small_files_cost_a_call_at_either_end_and_a_transaction_for_each_group(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = _Counted(monkeypatch)
    outcome, statements = run(LocalEnd(str(source)), LocalEnd(str(tmp_path / "target")), tmp_path)
    assert (outcome.copied, list(outcome.failures)) == (COUNT, [])
    assert contents(tmp_path / "target") == contents(source)
    assert counted.calls.count("read_all") <= counted.calls.count("write") <= GROUPS
    assert len(counted.calls) - counted.calls.count("read_all") - counted.calls.count("write") < 10, "listings"
    assert statements.count("COMMIT") <= GROUPS


def test_second_run_asks_the_journal_once_for_each_page_and_writes_nothing(source: Path, tmp_path: Path) -> None:
    ends = LocalEnd(str(source)), LocalEnd(str(tmp_path / "target"))
    run(*ends, tmp_path)
    outcome, statements = run(*ends, tmp_path)
    assert (outcome.copied, outcome.unchanged) == (0, COUNT)
    pages = -(-COUNT // PAGE_COUNT)
    assert len([each for each in statements if each.startswith("SELECT name, size")]) == pages
    assert len(statements) <= pages + 5
    assert not [each for each in statements if each.startswith(("INSERT", "COMMIT"))]


def test_file_of_a_group_that_cannot_be_read_fails_alone(source: Path, tmp_path: Path) -> None:
    class _Vanishing(LocalEnd):
        async def read_together(self, entries: Sequence[Entry]) -> Sequence[Buffer | None]:
            if (source / "one" / "file-0001").exists():
                (source / "one" / "file-0001").unlink()
                (source / "one" / "file-0002").write_bytes(b"longer than it was when it was listed")
            return await super().read_together(entries)

    outcome, _ = run(_Vanishing(str(source)), LocalEnd(str(tmp_path / "target")), tmp_path, evolve(FAST, retries=0))
    assert [name for name, _ in outcome.failures] == ["one/file-0001"]
    assert outcome.copied == COUNT - 1
    assert contents(tmp_path / "target") == contents(source)


def test_group_that_an_end_cannot_take_at_all_is_sent_file_by_file(source: Path, tmp_path: Path) -> None:
    class _Failing(LocalEnd):
        async def store_together(
            self, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str]
        ) -> Sequence[str | None]:
            raise GridError("not together")

    events: list[tuple[str, str]] = []
    observer = Observer(
        began=lambda entry: events.append(("began", entry.name)), left=lambda entry: events.append(("left", entry.name))
    )
    target = _Failing(str(tmp_path / "target"))
    outcome, _ = run(LocalEnd(str(source)), target, tmp_path, observer=observer)
    assert (outcome.copied, list(outcome.failures)) == (COUNT, [])
    assert contents(tmp_path / "target") == contents(source)
    for name in ("one/file-0001", "two/file-0000"):
        assert [what for what, whose in events if whose == name] == ["began", "left"] * 2


def test_bytes_of_groups_are_counted_against_the_rate_and_shown(source: Path, tmp_path: Path) -> None:
    slowed, shown, ended = list[int](), list[int](), list[int]()

    def slow(count: int) -> Left:
        slowed.append(count)
        return unlimited(count)

    observer = Observer(sent=shown.append, ended=ended.append)
    ends = LocalEnd(str(source)), LocalEnd(str(tmp_path / "target"))
    outcome, _ = run(*ends, tmp_path, observer=observer, slow=slow)
    total = sum(map(len, contents(source).values()))
    assert sum(slowed) == sum(shown) == sum(ended) == outcome.sent_bytes == total
    assert len(ended) == COUNT


def test_files_of_two_sources_that_have_one_name_are_refused_in_the_second(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for name in ("same", f"only-{folder}"):
            (tmp_path / folder / name).write_bytes(folder.encode())

    async def case() -> Outcome:
        journal = Journal(tmp_path / "journal.sqlite")
        sources = [LocalEnd(str(tmp_path / folder)) for folder in ("a", "b")]
        try:
            return await Transfer(sources, LocalEnd(str(tmp_path / "target")), journal, FAST).run()
        finally:
            journal.close()

    outcome = asyncio.run(case())
    assert [name for name, _ in outcome.failures] == ["same"]
    assert contents(tmp_path / "target") == {"same": b"a", "only-a": b"a", "only-b": b"b"}


def test_page_of_a_slow_listing_is_sent_before_the_listing_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.transfer.engine.PAGE_S", -1.0)
    few, target = tmp_path / "few", tmp_path / "target"
    few.mkdir()
    for number in range(4):
        (few / f"{number}").write_bytes(b"x")

    class _Slow(LocalEnd):
        async def entries(self) -> AsyncIterator[Entry | LeftOut]:
            count = 0
            async for found in super().entries():
                yield found
                count += 1
                async with asyncio.timeout(60):
                    while not target.exists() or len(contents(target)) < count:
                        await asyncio.sleep(0.01)

    assert send(_Slow(str(few)), target, tmp_path).copied == 4


@pytest.mark.parametrize("size", [0, 1, 1024, SMALL_SIZE, BLOCK])
def test_digest_of_a_small_file_is_that_of_the_same_file_in_ranges(size: int) -> None:
    data, key = os.urandom(size), DigestKey(os.urandom(32))
    whole = ContentDigest(key)
    whole.add(0, data)
    assert digest_of_bytes(key, data) == whole.text()


def test_groups_are_bounded_and_hold_every_small_file_once(tmp_path: Path) -> None:
    source, target = LocalEnd(str(tmp_path)), LocalEnd(str(tmp_path / "target"))
    journal = Journal(tmp_path / "journal.sqlite")
    flow = Transfer([source], target, journal, Plan())._flow
    journal.close()
    sizes = [0, 1, SMALL_SIZE, SMALL_SIZE + 1, 10 * SMALL_SIZE] * 40
    entries = [Entry(name=str(number), size=size) for number, size in enumerate(sizes)] + [Entry(name="unknown")]
    groups = list(Together(source, target, flow, str).groups(entries))
    assert sorted(entry.name for group in groups for entry in group) == sorted(entry.name for entry in entries)
    for group in groups:
        assert len(group) <= GROUP_COUNT
        assert sum(entry.size or 0 for entry in group[:-1]) < GROUP_BYTES
        if len(group) > 1:
            assert all(entry.size is not None and entry.size <= SMALL_SIZE for entry in group)


def test_transfer_when_killed_between_a_group_and_its_rows_finds_the_files_in_place(
    source: Path, tmp_path: Path
) -> None:
    class KilledError(Exception):
        pass

    steps = [0]

    def step() -> None:
        steps[0] += 1
        if steps[0] == 5:
            raise KilledError

    async def case() -> None:
        journal = Journal(tmp_path / "journal.sqlite", step)
        try:
            await Transfer([LocalEnd(str(source))], LocalEnd(str(tmp_path / "target")), journal, FAST).run()
        finally:
            journal.close()

    with pytest.raises(KilledError):
        asyncio.run(case())
    arrived = len(contents(tmp_path / "target"))
    assert arrived > 2 * GROUP_COUNT
    outcome = send(source, tmp_path / "target", tmp_path)
    assert (outcome.unchanged, outcome.copied) == (arrived, COUNT - arrived)
    journal = Journal(tmp_path / "journal.sqlite")
    assert journal.count(DONE) >= COUNT - arrived
    journal.close()
