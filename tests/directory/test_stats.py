"""Counts of a walk: each kind of object, and the buckets of the histogram."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import ChkCap, DirectoryCap, LitCap, SdmfWriteCap, UnknownChild
from grid.directory.pack import Child
from grid.directory.stats import Manifest, Stats, bucket_of
from grid.directory.walk import Visited

SSK = SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32))
LIT = LitCap(data=b"12345")


def chk(size: int) -> ChkCap:
    return ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=size)


@pytest.mark.parametrize(
    ("size", "bucket"),
    [(0, (0, 0)), (1, (1, 3)), (3, (1, 3)), (4, (4, 10)), (10, (4, 10)), (11, (11, 31)), (100, (32, 100)),
     (316, (101, 316)), (317, (317, 1000)), (1001, (1001, 3162)), (3163, (3163, 10000))],
)  # fmt: skip
def test_bucket_when_of_a_known_size_then_is_the_specified_one(size: int, bucket: tuple[int, int]) -> None:
    assert bucket_of(size) == bucket


@given(size=st.integers(0, 2**63))
def test_bucket_when_of_any_size_then_holds_it_and_adjoins_the_one_before(size: int) -> None:
    least, most = bucket_of(size)
    assert least <= size <= most
    if least:
        assert bucket_of(least - 1)[1] == least - 1


def test_stats_when_of_every_kind_then_have_the_names_and_numbers_of_the_format() -> None:
    stats = Stats()
    children = {str(n): Child(target=LIT) for n in range(7)}
    for visited in (
        Visited(path=(), target=DirectoryCap(SSK), children=children, size=1000),
        Visited(path=("a",), target=LIT, size=5),
        Visited(path=("b",), target=chk(2000), size=2000),
        Visited(path=("c",), target=chk(150), size=150),
        Visited(path=("d",), target=SSK),
        Visited(path=("e",), target=UnknownChild()),
        Visited(path=("f",), target=DirectoryCap(LIT), children={}, size=5),
        Visited(path=("g",), target=DirectoryCap(chk(77))),
    ):
        stats.add(visited)
    assert stats.deep_size == 2150 + 1005
    assert stats.to_json() == {
        "api-version": 1,
        "count-immutable-files": 2,
        "count-mutable-files": 1,
        "count-literal-files": 1,
        "count-files": 4,
        "count-directories": 3,
        "count-unknown": 1,
        "size-immutable-files": 2150,
        "size-literal-files": 5,
        "size-directories": 1005,
        "largest-directory": 1000,
        "largest-directory-children": 7,
        "largest-immutable-file": 2000,
        "size-files-histogram": [[4, 10, 1], [101, 316, 1], [1001, 3162, 1]],
    }


def test_manifest_when_given_objects_then_has_their_caps_in_order_and_the_sets() -> None:
    manifest = Manifest()
    for visited in (
        Visited(path=(), target=DirectoryCap(SSK), children={}, size=0),
        Visited(path=("l",), target=LIT, size=5),
        Visited(path=("u",), target=UnknownChild(write=b"x-w", read=b"ro.x-r")),
        Visited(path=("n",), target=UnknownChild()),
    ):
        manifest.add(visited)
    verify = DirectoryCap(SSK).verify_cap()
    assert verify is not None
    told = manifest.to_json()
    assert told["manifest"] == [
        [[], DirectoryCap(SSK).to_string()],
        [["l"], LIT.to_string()],
        [["u"], "x-w"],
        [["n"], None],
    ]
    assert told["verifycaps"] == [verify.to_string()]
    assert told["storage-index"] == [verify.to_string().split(":")[2]]
    assert told["stats"] == manifest.stats.to_json()
    assert "URI:" not in repr(manifest).replace(verify.to_string(), "")
