"""Damage in every field of both layouts: right bytes or a clear error; verify finds it, repair fixes it."""

from __future__ import annotations

import random

import pytest

from grid.caps import KnownCap
from grid.engine.grid import Encoding
from grid.engine.requests import UNREAD
from grid.errors import MustForceRepairError, NotEnoughSharesError
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.layout import parse_header
from tests.support.mutable_grid import MutableGrid

SEGMENT = 131073
CONTENTS = random.Random(3).randbytes(2 * SEGMENT + 1000)
FORMATS: list[FormatName] = ["sdmf", "mdmf"]
HEADER = {
    "sdmf": {"version": 0, "seqnum": 8, "root": 20, "iv": 45, "k": 57, "n": 58, "segment": 66, "size": 74},
    "mdmf": {"version": 0, "seqnum": 8, "root": 20, "k": 41, "n": 42, "segment": 50, "size": 58},
}
TABLE = {"sdmf": [(75, 4), (79, 4), (83, 4), (87, 4), (91, 8), (99, 8)], "mdmf": [(59 + 8 * i, 8) for i in range(8)]}
FIELDS = ["public_key", "signature", "chain", "block_tree", "data", "private_key"]

CASES = [
    *[(format, f"header {name}") for format in FORMATS for name in HEADER[format]],
    *[(format, f"offset {index}") for format in FORMATS for index in range(len(TABLE[format]))],
    *[(format, f"field {name}") for format in FORMATS for name in FIELDS],
    *[(format, name) for format in FORMATS for name in ("cut", "empty", "noise", "salt", "last byte")],
]


def spoil(share: bytearray, format: FormatName, what: str) -> None:
    """Spoil one field of a share."""
    _, table = parse_header(share)
    kind, _, name = what.partition(" ")
    if what == "cut":
        del share[len(share) // 2 :]
    elif what == "empty":
        del share[1:]
    elif what == "noise":
        share[:] = random.Random(4).randbytes(len(share))
    elif what == "salt":
        share[table.data[0]] ^= 0x40
    elif what == "last byte":
        share[table.eof - 1] ^= 1
    elif kind == "header":
        share[HEADER[format][name]] ^= 2
    elif kind == "offset":
        offset, size = TABLE[format][int(name)]
        share[offset + size - 1] ^= 1
    else:
        offset, size = getattr(table, name)
        share[offset + size // 2] ^= 0x10


@pytest.mark.parametrize(("format", "what"), CASES)
def test_share_when_spoiled_then_affects_only_itself_and_is_found_and_repaired(format: FormatName, what: str) -> None:
    """Three shares of five on two servers, so that each bad one has good neighbours."""
    grid = MutableGrid(2, Encoding(k=3, n=5, happy=1))
    cap = grid.create(CONTENTS, format)
    for number in (0, 1):
        spoil(grid.share(cap, number), format, what)
    assert grid.read(cap.read_cap()) == CONTENTS
    found = grid.run(grid.open(cap).check(verify=True))
    missing = {int(name.partition("-sh")[2]) for name in found.sharemap}
    assert not {0, 1} & missing, f"{what} was not found"
    assert not found.healthy and "3 shares (enc 3-of-5)" in found.summary
    verifier = grid.run(grid.open(cap.verify_cap()).check(verify=True))
    if what != "field private_key":
        assert verifier.sharemap == found.sharemap
    repaired = grid.run(grid.open(cap).repair())
    assert repaired.attempted and repaired.successful
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and not result.corrupt
    assert {name[:5] for name in result.sharemap} == {"seq1-"}, "the same version was stored again"
    assert grid.read(cap) == CONTENTS
    again = grid.run(grid.open(cap).repair())
    assert not again.attempted


@pytest.mark.parametrize("format", FORMATS)
def test_share_when_spoiled_then_its_server_gets_a_report(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(CONTENTS, format)
    share = grid.share(cap, 0)
    spoil(share, format, "field data")
    assert grid.read(cap) == CONTENTS
    reports = [(server, advice) for server in grid.servers for advice in server.advisories]
    assert [(server.slots[cap.storage_index][0] is share, advice[0]) for server, advice in reports] == [(True, 0)]


@pytest.mark.parametrize("format", FORMATS)
def test_read_when_too_many_shares_are_spoiled_then_says_so_and_gives_nothing_false(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(CONTENTS, format)
    for number in range(8):
        spoil(grid.share(cap, number), format, "field data")
    with pytest.raises(NotEnoughSharesError, match=r"2 usable shares .* 8 are bad"):
        grid.read(cap)
    result = grid.run(grid.open(cap).check(verify=True))
    assert not result.recoverable and len(result.corrupt) == 8
    repaired = grid.run(grid.open(cap).repair())
    assert repaired.attempted and not repaired.successful


@pytest.mark.parametrize("what", ["field data", "field block_tree", "field chain", "salt"])
def test_update_when_a_share_is_spoiled_then_never_signs_its_bytes(what: str) -> None:
    """1.20 signs what a spoiled share decodes to. [spec mutable 19]"""
    grid = MutableGrid()
    contents = random.Random(5).randbytes(4 * SEGMENT)
    cap = grid.create(contents, "mdmf")
    for number in range(4):
        spoil(grid.share(cap, number), "mdmf", what)
    for offset in (2 * SEGMENT - 5, 5, len(contents)):
        grid.run(grid.open(cap).update(offset, b"0123456789"))
        contents = contents[:offset] + b"0123456789" + contents[offset + 10 :]
        assert grid.read(cap) == contents
    grid.run(grid.open(cap).repair())
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and not result.corrupt


@pytest.mark.parametrize("format", FORMATS)
def test_repair_when_shares_are_missing_then_stores_the_same_version_elsewhere(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(CONTENTS, format)
    before = {number: bytes(held[0][1]) for number, held in grid.shares(cap).items()}
    for server in grid.servers[:4]:
        server.slots.clear()
    assert "6 shares (enc 3-of-10)" in grid.run(grid.open(cap).check()).summary
    repaired = grid.run(grid.open(cap).repair())
    assert repaired.successful and repaired.after.summary == "Healthy"
    assert {number: bytes(held[0][1]) for number, held in grid.shares(cap).items()} == before
    grid.run(grid.open(cap).modify(lambda old, _: old[:10]))
    assert grid.read(cap) == CONTENTS[:10]


def stale_copy(grid: MutableGrid, cap: KnownCap, count: int, newer: bytes) -> None:
    """Write a new version while the shares on the first `count` servers stay as they are."""
    assert cap.storage_index is not None
    index = cap.storage_index
    kept = [{n: bytearray(d) for n, d in server.slots[index].items()} for server in grid.servers[:count]]
    grid.run(grid.open(cap).overwrite(newer))
    for server, slot in zip(grid.servers, kept, strict=False):
        server.slots[index] = slot


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stale", [2, 5])
def test_repair_when_old_shares_are_left_then_brings_them_to_the_newest_version(format: FormatName, stale: int) -> None:
    grid = MutableGrid()
    cap = grid.create(b"old" * 100, format)
    stale_copy(grid, cap, stale, b"new" * 100)
    assert grid.read(cap) == b"new" * 100
    found = grid.run(grid.open(cap).check())
    assert not found.healthy and found.recoverable
    assert grid.run(grid.open(cap).repair()).successful
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and {name[:5] for name in result.sharemap} == {"seq2-"}
    assert grid.read(cap) == b"new" * 100


@pytest.mark.parametrize("format", FORMATS)
def test_repair_when_the_newest_version_cannot_be_read_then_needs_force(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(b"old" * 100, format)
    stale_copy(grid, cap, 8, b"new" * 100)
    assert grid.read(cap) == b"old" * 100
    with pytest.raises(MustForceRepairError):
        grid.run(grid.open(cap).repair())
    assert grid.run(grid.open(cap).repair(force=True)).successful
    result = grid.run(grid.open(cap).check(verify=True))
    assert result.healthy and {name[:5] for name in result.sharemap} == {"seq3-"}
    assert grid.read(cap) == b"old" * 100


@pytest.mark.parametrize("format", FORMATS)
def test_repair_when_two_versions_compete_then_needs_force_and_keeps_the_higher(format: FormatName) -> None:
    grid = MutableGrid()
    cap = grid.create(b"base" * 10, format)
    index = cap.storage_index
    base = [{n: bytearray(d) for n, d in server.slots[index].items()} for server in grid.servers]
    grid.run(grid.open(cap).overwrite(b"left" * 10))
    left = [{n: bytearray(d) for n, d in server.slots[index].items()} for server in grid.servers]
    for server, slot in zip(grid.servers, base, strict=True):
        server.slots[index] = slot
    grid.run(grid.open(cap, process=1).overwrite(b"right" * 10))
    for server, slot in zip(grid.servers[:5], left[:5], strict=True):
        server.slots[index] = slot
    found = grid.run(grid.open(cap).check())
    assert "multiple versions are recoverable" in found.summary
    winner = grid.read(cap)
    assert winner in {b"left" * 10, b"right" * 10}
    with pytest.raises(MustForceRepairError):
        grid.run(grid.open(cap).repair())
    assert grid.run(grid.open(cap).repair(force=True)).successful
    assert grid.read(cap) == winner
    assert grid.run(grid.open(cap).check(verify=True)).healthy


def test_results_when_turned_to_json_then_have_the_fields_of_the_peer() -> None:
    grid = MutableGrid()
    cap = grid.create(b"contents")
    spoil(grid.share(cap, 4), "sdmf", "field data")
    grid.servers[0].slots.clear()
    repaired = grid.run(grid.open(cap).repair())
    before = repaired.before.to_json()
    results = before["results"]
    assert isinstance(results, dict)
    assert results["count-corrupt-shares"] == 1 and results["count-shares-good"] == 8
    assert (results["count-shares-needed"], results["count-shares-expected"]) == (3, 10)
    assert results["count-recoverable-versions"] == 1 and results["count-unrecoverable-versions"] == 0
    assert str(before["summary"]).startswith("Unhealthy: 8 shares (enc 3-of-10) Corrupt Shares: server")
    assert repaired.to_json()["repair-successful"] is True
    healthy = grid.run(grid.open(cap).check()).to_json()["results"]
    assert isinstance(healthy, dict) and healthy["healthy"] and healthy["count-happiness"] == 10


def test_check_when_asked_to_add_leases_then_every_server_has_one_more() -> None:
    grid = MutableGrid()
    cap = grid.create(b"contents")
    before = [len(server.leases) for server in grid.servers]
    grid.run(grid.open(cap).check(add_lease=True))
    grid.runtime.settle()
    assert [len(server.leases) for server in grid.servers] == [count + 1 for count in before]


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
def test_share_that_a_disk_cannot_read_is_reported_and_costs_no_other(format: FormatName) -> None:
    grid = MutableGrid(2, Encoding(k=2, n=4, happy=1))
    cap = grid.create(b"contents" * 100, format)
    first, second = grid.servers
    unread = min(first.slots[cap.storage_index])
    first.script.unread = frozenset([unread])
    location = (first.identity.server_id, unread)
    for verify in (False, True):
        result = grid.run(grid.open(cap).check(verify=verify))
        assert result.corrupt == {location: UNREAD}
        assert not result.healthy and result.good_count == 3
    assert first.fired["unread"] and not first.advisories
    second.script.unread = frozenset(sorted(second.slots[cap.storage_index])[:1])
    assert grid.read(cap) == b"contents" * 100, "one share of each server is enough"
    grid.run(grid.open(cap).overwrite(b"newer"))
    assert grid.read(cap) == b"newer"
