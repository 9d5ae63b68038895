"""Each program verifies the other's files, sees the same damage, and makes repairs that the other accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import Pair
from tests.interop.test_files import MIB, new_file
from tests.support.share_files import delete_shares, flip_bit, read_shares, share_paths

pytestmark = pytest.mark.interop

AGREED = (
    "healthy",
    "recoverable",
    "count-happiness",
    "count-shares-good",
    "count-shares-needed",
    "count-shares-expected",
    "count-good-share-hosts",
    "count-wrong-shares",
    "count-corrupt-shares",
    "count-recoverable-versions",
    "count-unrecoverable-versions",
    "sharemap",
)
"""What a check says of the file itself, which both must say alike."""


@pytest.mark.each_value
def test_file_put_by_grid_when_verified_by_tahoe_is_healthy(pair: Pair, tmp_path: Path) -> None:
    cap = pair.ours.put(new_file(tmp_path, MIB + 1))
    assert pair.tahoe.check(cap)["healthy"] is True


@pytest.mark.each_value
def test_file_put_by_tahoe_when_verified_by_grid_is_healthy(pair: Pair, tmp_path: Path) -> None:
    cap = pair.tahoe.put(new_file(tmp_path, MIB + 1))
    assert pair.ours.check(cap)["healthy"] is True


def test_healthy_file_is_described_alike_by_both(usual_pair: Pair, tmp_path: Path) -> None:
    cap = usual_pair.ours.put(new_file(tmp_path, MIB + 1))
    theirs = agreed(usual_pair.tahoe.cli_check(cap))
    assert agreed(usual_pair.ours.check(cap)) == theirs
    assert agreed(usual_pair.ours.check(cap, verify=False)) == theirs
    assert theirs["count-shares-good"] == 10


def test_file_with_missing_and_corrupt_shares_is_described_alike_by_both(usual_pair: Pair, tmp_path: Path) -> None:
    cap = usual_pair.tahoe.put(new_file(tmp_path, MIB + 1))
    delete_shares(usual_pair.grid, cap, {0, 4})
    flip_bit(share_paths(usual_pair.grid, cap)[7][0], 100)
    ours, theirs = usual_pair.ours.check(cap), usual_pair.tahoe.check(cap)
    assert agreed(ours) == agreed(theirs)
    assert sorted(ours["list-corrupt-shares"]) == sorted(theirs["list-corrupt-shares"])
    assert (ours["healthy"], ours["count-shares-good"], ours["count-corrupt-shares"]) == (False, 7, 1)


def test_file_with_too_few_shares_is_unrecoverable_to_both(usual_pair: Pair, tmp_path: Path) -> None:
    cap = usual_pair.tahoe.put(new_file(tmp_path, 100_000))
    delete_shares(usual_pair.grid, cap, set(range(8)))
    ours, theirs = usual_pair.ours.check(cap), usual_pair.tahoe.check(cap)
    assert agreed(ours) == agreed(theirs)
    assert ours["recoverable"] is False


@pytest.mark.each_value
def test_file_repaired_by_grid_when_verified_by_tahoe_is_healthy(pair: Pair, tmp_path: Path) -> None:
    cap, whole = damaged(pair, pair.tahoe.put(new_file(tmp_path, MIB + 1)))
    pair.ours.repair(cap)
    assert pair.tahoe.check(cap)["healthy"] is True
    assert shares_of(pair, cap) == whole


@pytest.mark.each_value
def test_file_repaired_by_tahoe_when_verified_by_grid_is_healthy(pair: Pair, tmp_path: Path) -> None:
    cap, whole = damaged(pair, pair.ours.put(new_file(tmp_path, MIB + 1)))
    pair.tahoe.repair(cap)
    assert pair.ours.check(cap)["healthy"] is True
    assert shares_of(pair, cap) == whole


def damaged(pair: Pair, cap: str) -> tuple[str, dict[int, bytes]]:
    """The cap of a file that now lacks all the shares it can spare, but for 1-of-1 which can spare none; all shares."""
    whole = shares_of(pair, cap)
    needed = int(cap.split(":")[4])
    delete_shares(pair.grid, cap, set(range(len(whole) - needed)))
    return cap, whole


def shares_of(pair: Pair, cap: str) -> dict[int, bytes]:
    return {number: container.share for number, container in read_shares(pair.grid, cap).items()}


def agreed(results: dict[str, Any]) -> dict[str, Any]:
    kept = {name: results[name] for name in AGREED}
    kept["sharemap"] = {number: sorted(servers) for number, servers in results["sharemap"].items()}
    return kept
