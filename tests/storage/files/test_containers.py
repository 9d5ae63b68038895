"""The immutable container, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError, UnknownVersionError
from grid.storage.files import containers
from grid.storage.files.leases import Lease, pack_share_lease

LEASE = Lease(owner=0, expires=5, renew=b"r" * 32, cancel=b"c" * 32)


def test_header_when_packed_has_version_size_and_lease_count() -> None:
    assert containers.pack_header(0x1234) == bytes.fromhex("000000020000123400000001")
    assert containers.pack_header(2**40)[4:8] == b"\xff" * 4


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("lease_count", [0, 1, 3])
def test_header_when_parsed_gives_the_size_from_the_file_not_from_its_field(version: int, lease_count: int) -> None:
    header = containers.pack_header(999, lease_count=lease_count, version=version)
    container = containers.parse_header(header + b"data", 12 + 100 + 72 * lease_count)
    assert (container.version, container.lease_count, container.data_size) == (version, lease_count, 100)
    assert container.leases_offset == 112
    assert container.lease_offset(2) == 112 + 144


@pytest.mark.parametrize("version", [0, 3, 1415669871])
def test_header_when_of_another_version_is_unknown(version: int) -> None:
    header = version.to_bytes(4, "big") + bytes(8)
    with pytest.raises(UnknownVersionError, match=str(version)):
        containers.parse_header(header, 1000)


@pytest.mark.parametrize("size", range(12))
def test_header_when_cut_short_is_refused(size: int) -> None:
    with pytest.raises(FormatError):
        containers.parse_header(containers.pack_header(5)[:size], size)


def test_header_when_it_counts_more_leases_than_there_is_room_for_is_refused() -> None:
    header = containers.pack_header(5, lease_count=2)
    assert containers.parse_header(header, 12 + 144).data_size == 0
    with pytest.raises(FormatError):
        containers.parse_header(header, 12 + 143)


@given(st.binary(max_size=200), st.integers(0, 2**40))
def test_header_when_anything_at_all_is_parsed_or_refused(data: bytes, file_size: int) -> None:
    try:
        container = containers.parse_header(data, file_size)
    except FormatError:
        return
    assert 12 + container.data_size + 72 * container.lease_count == file_size


def test_clip_when_past_the_end_is_cut_short() -> None:
    container = containers.Container(version=2, lease_count=0, data_size=10)
    assert container.clip(0, 10) == (12, 10)
    assert container.clip(8, 5) == (20, 2)
    assert container.clip(10, 1) == (22, 0)
    assert container.clip(11, 1)[1] == 0


def test_leases_when_consecutive_are_all_parsed() -> None:
    record = pack_share_lease(LEASE)
    assert containers.parse_leases(record * 3) == [LEASE] * 3
    assert containers.parse_leases(b"") == []
    with pytest.raises(FormatError):
        containers.parse_leases(record[:-1])
