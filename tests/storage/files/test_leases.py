"""Lease records and how a lease is found, against the published values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grid.placement.leases import LeaseMaster
from grid.ports import LeaseSecrets, StorageIndex
from grid.storage.files import leases
from grid.storage.files.leases import Lease

NODE_ID = bytes(range(0x64, 0x78))
SECRETS = LeaseMaster(bytes(range(32))).secrets_for(StorageIndex(bytes(range(16))), NODE_ID)
RENEW = "adee7e551a74ab50515d6f52cb0da472436da13b6925c4aaa23aff6638f102bc"
CANCEL = "d1c81611856e5c9e5328166ad25a23f23216b26e19fae9d88b4feb004d9dfbb9"
OF_ZEROS = "89eb0d6a8a691dae2cd15ed0369931ce0a949ecafa5c3f93f8121833646e15c3"

some_leases = st.builds(
    Lease,
    owner=st.integers(1, 2**32 - 1),
    expires=st.integers(0, 2**32 - 1),
    renew=st.binary(min_size=32, max_size=32),
    cancel=st.binary(min_size=32, max_size=32),
    node_id=st.binary(min_size=20, max_size=20),
)


def test_stored_secret_when_version_two_is_the_published_hash() -> None:
    assert leases.stored_secret(SECRETS.renew, 2).hex() == RENEW
    assert leases.stored_secret(SECRETS.cancel, 2).hex() == CANCEL
    assert leases.stored_secret(bytes(32), 2).hex() == OF_ZEROS


def test_stored_secret_when_version_one_is_the_secret() -> None:
    assert leases.stored_secret(SECRETS.renew, 1) == SECRETS.renew


def test_new_lease_when_granted_runs_for_31_days() -> None:
    lease = leases.new_lease(SECRETS, version=2, owner=1, now=1_700_000_000.9, node_id=NODE_ID)
    assert lease.expires == 1_700_000_000 + 2_678_400
    assert lease.granted == 1_700_000_000
    assert (lease.renew.hex(), lease.cancel.hex(), lease.node_id) == (RENEW, CANCEL, NODE_ID)


def test_expiration_when_the_clock_is_out_of_range_still_fits_its_field() -> None:
    assert leases.expiration(2.0**40) == 2**32 - 1
    assert leases.expiration(-5.0) == leases.PERIOD_S


def test_share_lease_when_packed_has_the_fields_in_their_places() -> None:
    lease = Lease(owner=7, expires=0x01020304, renew=b"r" * 32, cancel=b"c" * 32)
    packed = leases.pack_share_lease(lease)
    assert packed == b"\0\0\0\7" + b"r" * 32 + b"c" * 32 + b"\1\2\3\4"
    assert len(packed) == leases.SHARE_LEASE_SIZE == 72
    assert packed[leases.SHARE_LEASE_TIME_OFFSET :] == leases.pack_time(lease.expires)


def test_slot_lease_when_packed_has_the_fields_in_their_places() -> None:
    lease = Lease(owner=1, expires=0x01020304, renew=b"r" * 32, cancel=b"c" * 32, node_id=NODE_ID)
    packed = leases.pack_slot_lease(lease)
    assert packed == b"\0\0\0\1\1\2\3\4" + b"r" * 32 + b"c" * 32 + NODE_ID
    assert len(packed) == leases.SLOT_LEASE_SIZE == 92
    assert packed[leases.SLOT_LEASE_TIME_OFFSET :][:4] == leases.pack_time(lease.expires)


@given(some_leases)
def test_leases_when_packed_and_parsed_are_the_same(lease: Lease) -> None:
    assert leases.parse_slot_lease(leases.pack_slot_lease(lease)) == lease
    parsed = leases.parse_share_lease(leases.pack_share_lease(lease))
    assert (parsed.owner, parsed.expires, parsed.renew, parsed.cancel) == (
        lease.owner, lease.expires, lease.renew, lease.cancel,
    )  # fmt: skip


@given(st.binary(min_size=88, max_size=88))
def test_slot_lease_when_its_owner_is_zero_is_empty_whatever_else_it_holds(rest: bytes) -> None:
    assert leases.parse_slot_lease(bytes(4) + rest) is None


def test_empty_slot_lease_when_packed_is_zeros() -> None:
    assert leases.pack_slot_lease(None) == bytes(92)


def test_find_lease_when_two_match_is_the_first_and_skips_empty_slots() -> None:
    wanted = Lease(owner=1, expires=9, renew=b"w" * 32, cancel=b"c" * 32)
    other = Lease(owner=1, expires=9, renew=b"o" * 32, cancel=b"c" * 32)
    assert leases.find_lease([None, other, wanted, wanted], wanted) == 2
    assert leases.find_lease([None, other], wanted) is None


def test_secrets_when_a_lease_is_printed_are_not_in_it() -> None:
    lease = leases.new_lease(
        LeaseSecrets(renew=b"R" * 32, cancel=b"C" * 32), version=1, owner=1, now=0, node_id=NODE_ID
    )
    assert "RRR" not in repr(lease)
    assert "CCC" not in repr(lease)
