"""Long collections on disk: they hold what was put into them, in its order, and end with their owners."""

from __future__ import annotations

import gc
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import GridError
from grid.transfer import spool
from grid.transfer.ends import LeftOut
from grid.transfer.outcome import Outcome
from grid.transfer.spool import Spool, Stack

NAMES = st.text(st.characters(codec=None, categories=None), max_size=3)


@pytest.fixture(autouse=True)
def few_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three items in memory."""
    monkeypatch.setattr(spool, "KEPT", 3)


@given(st.lists(st.one_of(NAMES, st.none()), max_size=20))
def test_spool_when_added_to_and_read_in_turns_has_every_item_in_order(steps: list[str | None]) -> None:
    """None: read everything."""
    made: Spool[str] = Spool(str, str)
    expected: list[str] = []
    for step in [*steps, None]:
        if step is not None:
            made.append(step)
            expected.append(step)
            continue
        assert list(made) == expected and len(made) == len(expected)
        assert [made[index] for index in range(len(made))] == expected
        with pytest.raises(IndexError):
            made[len(expected)]


@given(st.lists(st.one_of(NAMES, st.none()), max_size=40))
def test_stack_when_names_come_and_go_gives_the_last_one_first(steps: list[str | None]) -> None:
    """None: take one."""
    made, expected = Stack(["first"]), ["first"]
    for step in [*steps, *[None] * (len(steps) + 1)]:
        if step is not None:
            made.append(step)
            expected.append(step)
        elif expected:
            assert made.pop() == expected.pop()
        else:
            with pytest.raises(IndexError):
                made.pop()
        assert len(made) == len(expected)


def test_collections_when_they_are_long_take_little_memory_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = set(os.listdir("/proc/self/fd"))
    made: Spool[str] = Spool(str, str)
    stack = Stack()
    tracemalloc.start()
    try:
        for number in range(20_000):
            made.append(f"name-{number}")
            stack.append(f"name-{number}")
        assert sum(1 for _ in made) == 20_000 and stack.pop() == "name-19999"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert not list(tmp_path.iterdir()), "the files have no names"
    del made, stack
    gc.collect()
    assert set(os.listdir("/proc/self/fd")) <= before


def test_outcome_when_it_is_long_says_the_same_as_a_short_one() -> None:
    outcome = Outcome()
    names = [f"name-\udcff-{number}" for number in range(10)]
    for name in names:
        outcome.plan_to_send(name)
        outcome.plan_to_remove(name)
        outcome.left_out.append(LeftOut(name, "why", is_gap=True))
        outcome.fail(name, GridError(f"{name}: refused"))
        outcome.fail(name, OSError(28, "No space left on device", name))
    assert (outcome.to_send, outcome.to_remove) == (10, 10)
    assert list(outcome.planned) == [(what, name) for name in names for what in ("send", "remove")]
    assert list(outcome.left_out) == [LeftOut(name, "why", is_gap=True) for name in names]
    failures = list(outcome.failures)
    assert [name for name, _ in failures] == [name for name in names for _ in range(2)]
    assert [str(error) for _, error in failures[::2]] == [f"{name}: refused" for name in names]
    for name, error in failures[1::2]:
        assert isinstance(error, OSError)
        assert (error.errno, error.strerror, error.filename) == (28, "No space left on device", name)


def test_failure_when_it_is_added_lets_go_of_what_the_functions_held_that_it_passed_through() -> None:
    class Contents:
        """Something that is gone or not."""

        gone = 0

        def __del__(self) -> None:
            Contents.gone += 1

    def fail(cause: BaseException | None) -> None:
        contents = Contents()
        error = GridError(f"could not store {type(contents).__name__}")
        error.causes = [cause] if cause is not None else []  # type: ignore[attr-defined]
        raise error

    def caught(cause: BaseException | None = None) -> GridError:
        held = Contents()
        try:
            try:
                fail(cause)
            except GridError as error:
                raise GridError(f"{held is None} {error}") from None
        except GridError as error:
            return error
        raise AssertionError

    outcome = Outcome()
    gc.disable()
    try:
        outcome.fail("name", caught(caught()))
        assert Contents.gone == 4
    finally:
        gc.enable()
