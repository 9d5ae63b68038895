"""Writes that too few servers take: the error says whether the change holds, and what it says is true."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.engine.grid import Encoding
from grid.errors import MayHoldError, NotHappyError
from grid.mutable import publish
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.mutable.write import stream_plan
from tests.support.mutable_grid import MutableGrid
from tests.support.scripted_slots import SlotScript

WRITES = frozenset({"test_and_write"})
FAULTS: dict[str, Callable[[], SlotScript]] = {
    "none": SlotScript,
    "full": lambda: SlotScript(full=True),
    "dead to writes": lambda: SlotScript(dead_from=0, only=WRITES),
    "silent to writes": lambda: SlotScript(silent_from=0, only=WRITES),
    "answers are lost": lambda: SlotScript(lost_answers=True),
}
FORMATS: tuple[FormatName, ...] = ("sdmf", "mdmf")


def three_servers(format: FormatName = "sdmf") -> tuple[MutableGrid, WriteCap]:
    grid = MutableGrid(3, Encoding(k=2, n=3, happy=3))
    return grid, grid.create(b"old", format)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("write", ["overwrite", "modify", "update"])
def test_write_when_one_of_three_servers_is_full_then_says_that_the_change_is_in_force(
    format: FormatName, write: str
) -> None:
    grid, cap = three_servers(format)
    grid.servers[2].script = SlotScript(full=True)
    file = grid.open(cap)
    attempts = {
        "overwrite": lambda: file.overwrite(b"new"),
        "modify": lambda: file.modify(lambda old, _: b"new"),
        "update": lambda: file.update(0, b"new"),
    }
    with pytest.raises(
        MayHoldError, match="only 2 servers took the new version, and 3 are needed; the change is in force"
    ):
        grid.run(attempts[write]())
    assert grid.servers[2].fired["full"]
    assert grid.read(cap) == b"new"
    assert not grid.run(grid.open(cap).check()).healthy
    grid.servers[2].script = SlotScript()
    assert grid.run(grid.open(cap).repair()).successful
    assert grid.run(grid.open(cap).check(verify=True)).summary == "Healthy"


def test_write_when_servers_are_offline_then_nothing_was_changed() -> None:
    grid, cap = three_servers()
    grid.servers[2].script = SlotScript(dead_from=0)
    with pytest.raises(NotHappyError, match="nothing was changed") as caught:
        grid.run(grid.open(cap).overwrite(b"new"))
    assert not isinstance(caught.value, MayHoldError)
    for server in grid.servers:
        server.script = SlotScript()
    assert grid.read(cap) == b"old"


def test_write_when_all_servers_are_full_then_nothing_was_changed() -> None:
    grid, cap = three_servers()
    for server in grid.servers:
        server.script = SlotScript(full=True)
    with pytest.raises(
        NotHappyError, match="no server took the new version, and 3 are needed; nothing was changed"
    ) as caught:
        grid.run(grid.open(cap).overwrite(b"new"))
    assert not isinstance(caught.value, MayHoldError)


def test_update_when_one_server_takes_it_and_the_others_are_full_then_the_old_version_stays() -> None:
    grid, cap = three_servers("mdmf")
    for server in grid.servers[:2]:
        server.script = SlotScript(full=True)
    with pytest.raises(NotHappyError, match=r"only 1 server took .* the old version stays") as caught:
        grid.run(grid.open(cap).update(0, b"new"))
    assert not isinstance(caught.value, MayHoldError)
    assert grid.read(cap) == b"old"


def test_write_when_one_server_takes_every_share_and_the_others_are_full_then_the_change_is_in_force() -> None:
    grid, cap = three_servers()
    for server in grid.servers[:2]:
        server.script = SlotScript(full=True)
    with pytest.raises(MayHoldError, match="only 1 server took the new version, and 3 are needed") as caught:
        grid.run(grid.open(cap).overwrite(b"new"))
    assert caught.value.holds
    assert grid.read(cap) == b"new"


def test_update_when_answers_are_lost_then_says_that_the_change_may_be_in_force() -> None:
    grid, cap = three_servers("mdmf")
    for server in grid.servers[:2]:
        server.script = SlotScript(lost_answers=True)
    with pytest.raises(MayHoldError, match="the change may be in force") as caught:
        grid.run(grid.open(cap).update(0, b"new"))
    assert not caught.value.holds
    for server in grid.servers:
        server.script = SlotScript()
    assert grid.read(cap) == b"new"


def test_new_file_that_too_few_servers_take_is_not_said_to_hold() -> None:
    grid = MutableGrid(3, Encoding(k=2, n=3, happy=3))
    grid.servers[0].script = SlotScript(full=True)
    with pytest.raises(NotHappyError, match="only 2 servers took shares") as caught:
        grid.create(b"new")
    assert not isinstance(caught.value, MayHoldError)


@settings(deadline=None)
@given(
    shape=st.sampled_from([(1, 1, 3), (1, 3, 3), (2, 3, 3), (2, 4, 5), (3, 4, 5), (3, 7, 10)]),
    faults=st.lists(st.sampled_from(sorted(FAULTS)), min_size=10, max_size=10),
    format=st.sampled_from(FORMATS),
    is_large=st.booleans(),
    was_read=st.booleans(),
)
def test_what_the_error_says_of_the_file_is_true(
    shape: tuple[int, int, int], faults: list[str], format: FormatName, is_large: bool, was_read: bool
) -> None:
    k, happy, n = shape
    grid = MutableGrid(n, Encoding(k=k, n=n, happy=happy))
    old, new = b"old" * 2000, b"new" * 2000
    with pytest.MonkeyPatch.context() as patch:
        if is_large:
            patch.setattr(publish, "WHOLE_BYTES", 1000)
            patch.setattr(stream_plan, "WRITE_BYTES", 4000)
        cap = grid.create(old, format)
        file = grid.open(cap)
        if was_read:
            grid.run(file.read_all())
        for server, fault in zip(grid.servers, faults, strict=False):
            server.calls.clear()
            server.script = FAULTS[fault]()
        possible = {old, new}
        try:
            grid.run(file.overwrite(new))
            possible = {new}
        except MayHoldError as error:
            possible = {new} if error.holds else {old, new}
        except NotHappyError:
            possible = {old}
    for server in grid.servers:
        server.script = SlotScript()
    assert grid.read(cap) in possible
