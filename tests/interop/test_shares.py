"""Both clients make the same cap and the same share files from the same plaintext, secret and parameters.

Share files are compared byte for byte: header, share, and number of leases. Left out are the lease records
themselves, whose time is that of the upload and whose secrets depend on the server that each share landed on; that
the secrets agree is shown by either program renewing the other's leases instead of adding its own.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.interop.conftest import Pair
from tests.interop.test_files import MIB, new_file
from tests.support.share_files import Container, delete_shares, read_shares

pytestmark = pytest.mark.interop

SIZES = [56, MIB, MIB + 1, 3_333_337]


@pytest.mark.parametrize("size", [0, 55])
def test_literal_caps_of_both_programs_are_equal(usual_pair: Pair, size: int, tmp_path: Path) -> None:
    source = new_file(tmp_path, size)
    assert usual_pair.ours.put(source) == usual_pair.tahoe.put(source)


@pytest.mark.each_pair
@pytest.mark.parametrize("size", SIZES)
def test_share_files_of_both_programs_are_equal(pair: Pair, size: int, tmp_path: Path) -> None:
    source = new_file(tmp_path, size)
    cap = pair.tahoe.put(source)
    total = int(cap.split(":")[5])
    theirs = read_shares(pair.grid, cap)
    delete_shares(pair.grid, cap)
    assert pair.ours.put(source) == cap
    ours = read_shares(pair.grid, cap)
    assert ours.keys() == theirs.keys() == set(range(total))
    for number, container in ours.items():
        assert container.format == theirs[number].format == (2, len(container.share), 1)
        assert container.share == theirs[number].share


def test_put_by_grid_of_a_file_that_tahoe_put_renews_its_leases(usual_pair: Pair, tmp_path: Path) -> None:
    source = new_file(tmp_path, 100_000)
    cap = usual_pair.tahoe.put(source)
    before = read_shares(usual_pair.grid, cap)
    assert usual_pair.ours.put(source) == cap
    assert_renewed(before, read_shares(usual_pair.grid, cap))


def test_put_by_tahoe_of_a_file_that_grid_put_renews_its_leases(usual_pair: Pair, tmp_path: Path) -> None:
    source = new_file(tmp_path, 100_000)
    cap = usual_pair.ours.put(source)
    before = read_shares(usual_pair.grid, cap)
    assert usual_pair.tahoe.put(source) == cap
    assert_renewed(before, read_shares(usual_pair.grid, cap))


def assert_renewed(before: Mapping[int, Container], after: Mapping[int, Container]) -> None:
    """The same shares, each with the one lease it had, which may end later than before."""
    assert before.keys() == after.keys() == set(range(10))
    for number, container in after.items():
        assert container.share == before[number].share
        (lease,), (earlier,) = container.leases, before[number].leases
        assert lease[:-4] == earlier[:-4]
        assert struct.unpack(">L", lease[-4:]) >= struct.unpack(">L", earlier[-4:])
