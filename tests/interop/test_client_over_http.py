"""`grid` as a client of 1.20's storage nodes over HTTP, and of a mixture with ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grid.caps import ChkCap, parse_cap
from grid.codec import base32
from tests.interop.conftest import HTTP_SHARES, Pair

pytestmark = [pytest.mark.interop, pytest.mark.parametrize("over_http", ["mixed-servers"], indirect=True)]


@pytest.mark.parametrize("size", [56, 200_000, 5_000_001])
def test_file_put_by_grid_over_http_verifies_and_reads_back(over_http: Pair, size: int, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(size))
    cap = over_http.ours.put(source)
    over_http.tahoe.get(cap, target)
    assert target.read_bytes() == source.read_bytes()
    for client in (over_http.tahoe, over_http.ours):
        results = client.check(cap)
        assert results["healthy"]
        assert results["count-shares-good"] == HTTP_SHARES
        assert results["count-good-share-hosts"] == 5


@pytest.mark.parametrize("size", [56, 200_000, 5_000_001])
def test_file_put_by_tahoe_over_http_is_read_by_grid_over_http(over_http: Pair, size: int, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(size))
    cap = over_http.tahoe.put(source)
    over_http.ours.get(cap, target)
    assert target.read_bytes() == source.read_bytes()
    assert over_http.ours.run("get", cap, "-", "--range", "-50") == source.read_bytes()[-50:]


def test_file_with_lost_shares_is_repaired_by_grid_over_http(over_http: Pair, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(300_000))
    cap = over_http.ours.put(source)
    known = parse_cap(cap)
    assert isinstance(known, ChkCap)
    for number, paths in over_http.grid.shares(base32.encode(known.storage_index)).items():
        if number % 2:
            for path in paths:
                path.unlink()
    assert not over_http.ours.check(cap)["healthy"]
    over_http.ours.repair(cap)
    assert over_http.tahoe.check(cap)["healthy"]
    over_http.tahoe.get(cap, target)
    assert target.read_bytes() == source.read_bytes()
