"""Clocks of servers that differ from the client's, by the Date header of their answers."""

from __future__ import annotations

import time

import pytest
from twisted.internet import reactor

from grid.runtime import ReactorClock
from grid.wire.budget.server_memory import ServerMemory
from grid.wire.http.format.answers import pack_date, parse_date
from grid.wire.status import clock_text
from tests.wire.http.rig import make_service, running


class ShiftedClock(ReactorClock):
    """A clock that is ahead of ours."""

    def __init__(self, ahead_s: float) -> None:
        super().__init__(reactor)
        self._ahead_s = ahead_s

    def unix_time(self) -> float:
        return super().unix_time() + self._ahead_s


def test_date_is_packed_as_in_the_rfc_and_parsed_back() -> None:
    assert pack_date(784111777.9) == b"Sun, 06 Nov 1994 08:49:37 GMT"
    for moment in (0.0, 951782400.0, 1.7e9, 253402300799.0):
        assert parse_date([pack_date(moment)]) == moment


@pytest.mark.parametrize(
    "values",
    [
        [], [b""], [b"Sun, 06 Nov 1994 08:49:37 GMT"] * 2, [b"Sun, 31 Feb 1994 08:49:37 GMT"], [b"Sun, 06 Nov 1994 24:49:37 GMT"],
        [b"Sunday, 06-Nov-94 08:49:37 GMT"], [b"Sun, 06 Nov 0000 08:49:37 GMT"], [b"Sun, 06 Nov 1994 08:49:37 GMT\n"],
        ["Sun, 0٦ Nov 1994 08:49:37 GMT".encode()],
    ],
)  # fmt: skip
def test_anything_else_is_no_date(values: list[bytes]) -> None:
    assert parse_date(values) is None


@pytest.mark.parametrize(
    ("ahead_s", "words"), [(0.0, ""), (320.0, "clock 5 min ahead"), (-93660.0, "clock 1 d 2 h behind")]
)
async def test_client_knows_by_how_much_the_clock_of_a_server_is_off(ahead_s: float, words: str) -> None:
    async with running(await make_service(), memory=ServerMemory(ShiftedClock(ahead_s))) as rig:
        assert rig.client.status.clock_ahead_s is None
        began = time.monotonic()
        await rig.client.get_version()
        taken = time.monotonic() - began
        found = rig.client.status.clock_ahead_s
        assert found is not None and clock_text(found) == words
        # A date has whole seconds, and the answer came at any moment of the exchange.
        assert found == 0.0 or 0 <= abs(ahead_s) - abs(found) <= 1.0 + taken, "as much as is certain"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, ""), (59.0, ""), (-59.9, ""), (60.0, "clock 1 min ahead"), (5400.0, "clock 1 h 30 min ahead"), (-86400.0, "clock 1 d behind")],
)  # fmt: skip
def test_only_differences_that_matter_are_shown(seconds: float | None, words: str) -> None:
    assert clock_text(seconds) == words
