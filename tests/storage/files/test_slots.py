"""The mutable container, byte for byte."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from grid.crypto.hashing import tagged_hash
from grid.errors import DataTooLargeError, FormatError, UnknownVersionError
from grid.limits import MAX_SLOT_SIZE
from grid.storage.files import slots
from grid.storage.files.leases import Lease
from grid.storage.files.slots import Slot

MAGIC_1 = "5461686f65206d757461626c6520636f6e7461696e65722076310a750944038e"
MAGIC_2 = "5461686f65206d757461626c6520636f6e7461696e65722076320ac355219925"
SLOT = Slot(version=2, node_id=b"n" * 20, write_enabler=b"w" * 32)


def lease(letter: bytes) -> Lease:
    return Lease(owner=1, expires=7, renew=letter * 32, cancel=b"c" * 32, node_id=b"n" * 20)


def test_magic_when_compared_with_the_published_one_is_the_same() -> None:
    assert slots.MAGIC[1].hex() == MAGIC_1
    assert slots.MAGIC[2].hex() == MAGIC_2
    assert tagged_hash(b"allmydata_mutable_container_header", slots.MAGIC[2][:27])[:5] == slots.MAGIC[2][27:]


def test_new_slot_when_packed_has_472_bytes() -> None:
    packed = slots.pack_front(SLOT, [None] * 4) + slots.pack_back([None] * 4)
    expected = bytes.fromhex(MAGIC_2) + b"n" * 20 + b"w" * 32 + bytes(8) + (468).to_bytes(8, "big") + bytes(4 * 92 + 4)
    assert packed == expected
    assert len(packed) == 472
    assert slots.parse_slot(packed, 472) == SLOT


@given(st.lists(st.one_of(st.none(), st.sampled_from([lease(b"a"), lease(b"b")])), min_size=4, max_size=9))
def test_leases_when_packed_and_parsed_are_in_the_same_slots(held: list[Lease | None]) -> None:
    front, back = slots.pack_front(SLOT, held), slots.pack_back(held)
    assert len(back) == 4 + 92 * (len(held) - 4)
    assert slots.parse_slot_leases(front, back) == held


def test_leases_when_the_file_ends_inside_the_last_one_count_it_as_empty() -> None:
    held = [lease(b"a"), None, None, None, lease(b"b"), lease(b"c")]
    front, back = slots.pack_front(SLOT, held), slots.pack_back(held)
    assert slots.parse_slot_leases(front, back[:-1]) == [*held[:5], None]
    with pytest.raises(FormatError):
        slots.parse_slot_leases(front, back[: 4 + 91])
    with pytest.raises(FormatError):
        slots.parse_slot_leases(front, back[:3])
    with pytest.raises(FormatError):
        slots.parse_slot_leases(front[:-1], back)


def test_lease_offset_when_behind_the_fourth_is_behind_the_count() -> None:
    slot = evolve(SLOT, leases_offset=1000)
    assert [slot.lease_offset(index) for index in (0, 3, 4, 6)] == [100, 376, 1004, 1188]


@pytest.mark.parametrize("magic", [b"", b"Tahoe mutable container v1\n", bytes(32), bytes.fromhex(MAGIC_2)[:31] + b"x"])
def test_slot_when_its_magic_is_not_known_is_of_an_unknown_version(magic: bytes) -> None:
    assert not slots.is_slot(magic)
    with pytest.raises(UnknownVersionError):
        slots.parse_slot(magic, 500)


@pytest.mark.parametrize(
    ("data_size", "leases_offset", "file_size"),
    [(1, 468, 472), (0, 467, 472), (0, 469, 472), (0, 2**63, 472), (2**64 - 1, 468, 472), (0, 468, 471)],
)
def test_slot_when_its_offsets_lead_out_of_the_file_is_refused(
    data_size: int, leases_offset: int, file_size: int
) -> None:
    front = slots.pack_front(evolve(SLOT, data_size=data_size, leases_offset=leases_offset), [])
    with pytest.raises(FormatError):
        slots.parse_slot(front, file_size)


@given(st.sampled_from([bytes.fromhex(MAGIC_1), bytes.fromhex(MAGIC_2), b""]), st.binary(max_size=80))
def test_slot_when_anything_at_all_is_parsed_or_refused(magic: bytes, rest: bytes) -> None:
    try:
        slot = slots.parse_slot(magic + rest, 472)
    except FormatError:
        return
    assert 468 + slot.data_size <= slot.leases_offset <= 468


def test_grown_when_inside_the_data_changes_nothing() -> None:
    slot = evolve(SLOT, data_size=100, leases_offset=600)
    assert slot.grown(0, 50) == slot
    assert slot.grown(99, 1) == slot


def test_grown_when_inside_the_slack_keeps_the_leases_where_they_are() -> None:
    slot = evolve(SLOT, data_size=100, leases_offset=600)
    assert slot.grown(100, 32) == evolve(slot, data_size=132)


def test_grown_when_past_the_leases_moves_them_behind_the_data() -> None:
    slot = evolve(SLOT, data_size=100, leases_offset=600)
    assert slot.grown(120, 13) == evolve(slot, data_size=133, leases_offset=601)
    assert slot.grown(500, 0) == evolve(slot, data_size=500, leases_offset=968)


def test_grown_when_past_what_is_possible_is_refused() -> None:
    assert SLOT.grown(MAX_SLOT_SIZE - 1, 1).data_size == MAX_SLOT_SIZE
    with pytest.raises(DataTooLargeError):
        SLOT.grown(MAX_SLOT_SIZE, 1)


def test_cut_when_shorter_keeps_the_leases_where_they_are() -> None:
    slot = evolve(SLOT, data_size=100, leases_offset=600)
    assert slot.cut(40) == evolve(slot, data_size=40)
    assert slot.cut(100) == slot.cut(200) == slot.cut(None) == slot


def test_write_enabler_when_a_slot_is_printed_is_not_in_it() -> None:
    assert "www" not in repr(SLOT)
