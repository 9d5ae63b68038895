"""The remote interfaces of storage, with 1.20's names and types on the wire. [spec wire 2-4]

Foolscap checks every message against these while it arrives, so that nothing larger than they allow is ever
buffered. What they cannot express (signs, share numbers, sums), the server checks itself. The methods whose names
begin with `grid_`, and RIShareUpload, are extensions; clients call them only if the version dictionary offers them.
"""

from __future__ import annotations

from typing import Any

from foolscap.api import RemoteInterface
from foolscap.constraint import Any as Anything
from foolscap.constraint import IntegerConstraint
from foolscap.referenceable import Referenceable
from foolscap.remoteinterface import RemoteMethodSchema
from foolscap.schema import ChoiceOf, DictOf, ListOf, SetOf, TupleOf
from foolscap.slicers.none import Nothing

from grid.limits import (
    MAX_ADVISORY_LENGTH,
    MAX_SHARES,
    MAX_SLOT_HEAD,
    MAX_SLOT_WRITE,
    READ_CALL_RANGES,
    WRITE_CALL_BYTES,
)
from grid.wire.foolscap.outgoing import BytesConstraint
from grid.wire.packed.find_messages import MAX_FIND_ANSWER, MAX_FIND_MESSAGE
from grid.wire.packed.share_ranges import MAX_ANSWER_SIZE, MAX_REQUEST_SIZE
from grid.wire.packed.slots import MAX_SLOT_ANSWER, MAX_SLOT_WANTS
from grid.wire.packed.store_messages import MAX_STORE_ANSWER, MAX_STORE_MESSAGE


def byte_string(maximum: int | None, minimum: int = 0) -> Any:
    """The constraint for a byte string with these size limits."""
    return BytesConstraint(maxLength=maximum, minLength=minimum)


STORAGE_INDEX = byte_string(16, 16)
SECRET = byte_string(32, 32)
NUMBER = IntegerConstraint(8)
SHARE_DATA = byte_string(MAX_SLOT_WRITE)
NOTHING = Nothing()
ANYTHING = Anything()
SHARE_NUMBERS = SetOf(NUMBER, MAX_SHARES)
RANGES = ListOf(TupleOf(NUMBER, NUMBER), READ_CALL_RANGES)
SHARE_RANGES = DictOf(NUMBER, ListOf(SHARE_DATA, READ_CALL_RANGES), MAX_SHARES)
TEST_WRITE = TupleOf(
    ListOf(TupleOf(NUMBER, NUMBER, byte_string(16), SHARE_DATA), READ_CALL_RANGES),
    ListOf(TupleOf(NUMBER, SHARE_DATA), READ_CALL_RANGES),
    ChoiceOf(NOTHING, NUMBER),
)


class RIBucketWriter(RemoteInterface):
    """One immutable share being written."""

    write = RemoteMethodSchema(_response=NOTHING, offset=NUMBER, data=SHARE_DATA)
    close = RemoteMethodSchema(_response=NOTHING)
    abort = RemoteMethodSchema(_response=NOTHING)


class RIBucketReader(RemoteInterface):
    """One finished immutable share."""

    read = RemoteMethodSchema(_response=SHARE_DATA, offset=NUMBER, length=NUMBER)
    advise_corrupt_share = RemoteMethodSchema(_response=NOTHING, reason=byte_string(MAX_ADVISORY_LENGTH))


class RIShareUpload(RemoteInterface):
    """All shares of one allocation, written in batches (extension). [grid.wire.packed.share_ranges]"""

    __remote_name__ = "RIShareUpload.grid-storage"

    write = RemoteMethodSchema(
        _response=NOTHING, records=byte_string(MAX_REQUEST_SIZE), data=byte_string(WRITE_CALL_BYTES)
    )
    close = RemoteMethodSchema(_response=NOTHING, sharenums=SHARE_NUMBERS)
    abort = RemoteMethodSchema(_response=NOTHING, sharenums=SHARE_NUMBERS)


class RIStorageServer(RemoteInterface):
    """A storage server. [spec wire 4]"""

    __remote_name__ = "RIStorageServer.tahoe.allmydata.com"

    get_version = RemoteMethodSchema(_response=DictOf(byte_string(200), ANYTHING, 20))
    allocate_buckets = RemoteMethodSchema(
        _response=TupleOf(SHARE_NUMBERS, DictOf(NUMBER, RIBucketWriter, MAX_SHARES)),
        storage_index=STORAGE_INDEX,
        renew_secret=SECRET,
        cancel_secret=SECRET,
        sharenums=SHARE_NUMBERS,
        allocated_size=NUMBER,
        canary=Referenceable,
    )
    add_lease = RemoteMethodSchema(
        _response=ANYTHING, storage_index=STORAGE_INDEX, renew_secret=SECRET, cancel_secret=SECRET
    )
    get_buckets = RemoteMethodSchema(_response=DictOf(NUMBER, RIBucketReader, MAX_SHARES), storage_index=STORAGE_INDEX)
    slot_readv = RemoteMethodSchema(
        _response=SHARE_RANGES, storage_index=STORAGE_INDEX, shares=ListOf(NUMBER, MAX_SHARES), readv=RANGES
    )
    slot_testv_and_readv_and_writev = RemoteMethodSchema(
        _response=TupleOf(bool, SHARE_RANGES),
        storage_index=STORAGE_INDEX,
        secrets=TupleOf(SECRET, SECRET, SECRET),
        tw_vectors=DictOf(NUMBER, TEST_WRITE, MAX_SHARES),
        r_vector=RANGES,
    )
    advise_corrupt_share = RemoteMethodSchema(
        _response=NOTHING,
        share_type=byte_string(16),
        storage_index=STORAGE_INDEX,
        shnum=NUMBER,
        reason=byte_string(MAX_ADVISORY_LENGTH),
    )
    grid_find_shares = RemoteMethodSchema(
        _response=byte_string(MAX_ANSWER_SIZE), storage_index=STORAGE_INDEX, ranges=byte_string(MAX_REQUEST_SIZE)
    )
    grid_find_each = RemoteMethodSchema(_response=byte_string(MAX_FIND_ANSWER), finds=byte_string(MAX_FIND_MESSAGE))
    grid_read_shares = RemoteMethodSchema(
        _response=byte_string(MAX_ANSWER_SIZE), storage_index=STORAGE_INDEX, wants=byte_string(MAX_REQUEST_SIZE)
    )
    grid_read_slot = RemoteMethodSchema(
        _response=byte_string(MAX_ANSWER_SIZE), storage_index=STORAGE_INDEX, wants=byte_string(MAX_SLOT_WANTS)
    )
    grid_write_slot = RemoteMethodSchema(
        _response=byte_string(MAX_SLOT_ANSWER),
        storage_index=STORAGE_INDEX,
        head=byte_string(MAX_SLOT_HEAD),
        data=SHARE_DATA,
    )
    grid_store_shares = RemoteMethodSchema(
        _response=byte_string(MAX_STORE_ANSWER), stores=byte_string(MAX_STORE_MESSAGE)
    )
    grid_allocate = RemoteMethodSchema(
        _response=TupleOf(SHARE_NUMBERS, SHARE_NUMBERS, RIShareUpload),
        storage_index=STORAGE_INDEX,
        renew_secret=SECRET,
        cancel_secret=SECRET,
        sharenums=SHARE_NUMBERS,
        allocated_size=NUMBER,
        canary=Referenceable,
    )
