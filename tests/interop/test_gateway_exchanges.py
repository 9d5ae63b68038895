"""Every endpoint of [spec webapi]: the same bytes sent to a 1.20 gateway and to ours get the same fields in the answers.

Where they differ on purpose tests.interop.exchange_differences says so, and why; any other difference fails, and so does
a difference that is no longer there. The exchanges of a group are in order: some rest on what those before them changed.
"""

from __future__ import annotations

import pytest

from tests.interop import (
    exchanges_directories,
    exchanges_files,
    exchanges_operations,
    exchanges_programs,
    exchanges_writes,
)
from tests.interop.exchange_differences import DIFFERENCES, LEFT_DIFFERENTLY, Difference, is_expected
from tests.interop.gateways import Gateways, ask
from tests.support.exchanges import Exchange, differences, fields

pytestmark = pytest.mark.interop

GROUPS = {
    "files": exchanges_files.EXCHANGES,
    "writes": exchanges_writes.EXCHANGES,
    "directories": exchanges_directories.EXCHANGES,
    "operations": exchanges_operations.EXCHANGES,
    "programs": exchanges_programs.EXCHANGES,
}
EXCHANGES = [(group, exchange) for group, exchanges in GROUPS.items() for exchange in exchanges]


@pytest.mark.parametrize(("group", "exchange"), EXCHANGES, ids=[f"{group}-{one.name}" for group, one in EXCHANGES])
def test_exchange_when_sent_to_both_gateways_is_the_same_except_for_listed_differences(
    gateways: Gateways, group: str, exchange: Exchange
) -> None:
    sides = gateways.sides
    theirs = fields(
        exchange,
        ask(gateways.tahoe, exchange, sides.caps(sides.theirs), may_hang=exchange.hangs),
        sides.alike(sides.theirs),
    )
    ours = fields(
        exchange, ask(gateways.ours, exchange, sides.caps(sides.ours), may_hang=False), sides.alike(sides.ours)
    )
    expected = DIFFERENCES.get(f"{group}-{exchange.name}", Difference("", {}))
    found = differences(theirs, ours)
    assert is_expected(expected, {name: ours for name, (_, ours) in found.items()}), (found, expected)


def test_directory_when_all_exchanges_are_done_differs_only_as_listed(gateways: Gateways) -> None:
    sides = gateways.sides
    (listing,) = (exchange for exchange in exchanges_directories.EXCHANGES if exchange.name == "everything-after-all")
    children = []
    for client, own in ((gateways.tahoe, sides.theirs), (gateways.ours, sides.ours)):
        reply = ask(client, listing, sides.caps(own), may_hang=False)
        children.append(fields(listing, reply, sides.alike(own))["body"][1]["children"])
    theirs, ours = children
    assert len(theirs) > 80
    assert {name for name in theirs | ours if theirs.get(name) != ours.get(name)} == LEFT_DIFFERENTLY.keys()


def test_differences_when_listed_name_exchanges_that_exist() -> None:
    names = [f"{group}-{exchange.name}" for group, exchange in EXCHANGES]
    assert len(names) == len(set(names))
    assert set(DIFFERENCES) <= set(names)
    assert all(difference.row for difference in DIFFERENCES.values())
