"""The packed form of stores: whole small shares of any number of files in one message. Pure.

An extension of this project's servers, the same over both transports. All numbers are big-endian. A message is a
run of entries, one per file: a head (storage index 16 bytes, renewal secret 32, cancel secret 32, share size u32,
share count u16), that many share numbers u8, and the shares one after the other. The answer has for each file in
order: u8 whether everything was stored, u16 how many shares existed before, and their numbers u8.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from grid.errors import FormatError
from grid.limits import MAX_SHARES, STORE_CALL_BYTES, STORE_CALL_SHARES
from grid.ports import Buffer, LeaseSecrets, NewShares, ShareNumber, StorageIndex, StoreAnswer

_HEAD = struct.Struct(">16s32s32sLH")
_OUTCOME = struct.Struct(">BH")

MAX_STORE_MESSAGE = STORE_CALL_BYTES + STORE_CALL_SHARES * (_HEAD.size + 1)
"""Bytes in the longest message."""

MAX_STORE_ANSWER = STORE_CALL_SHARES * (_OUTCOME.size + MAX_SHARES)
"""Bytes in the longest answer: one about as many files as there may be shares."""


def pack_stores(stores: Sequence[NewShares]) -> bytes:
    """Pack the message. This is the only copy of the shares. ValueError if shares of one file differ in size."""
    pieces: list[Buffer] = []
    for new in stores:
        size = new.share_size
        secrets = new.secrets
        pieces.append(_HEAD.pack(new.storage_index, secrets.renew, secrets.cancel, size, len(new.shares)))
        pieces.append(bytes(new.shares))
        for share in new.shares.values():
            if sum(map(len, share)) != size:
                raise ValueError("shares of one file that are not all of one size")
            pieces += share
    return b"".join(pieces)


def parse_stores(message: Buffer) -> list[NewShares]:
    """The stores, with their shares as views of the message; FormatError past the limits of one call."""
    if len(message) > MAX_STORE_MESSAGE:
        raise FormatError("a message with more shares to store than one may have")
    view = memoryview(message)
    stores: list[NewShares] = []
    position = share_count = 0
    while position < len(view):
        try:
            index, renew, cancel, size, count = _HEAD.unpack_from(view, position)
        except struct.error as error:
            raise FormatError("shares to store that end within their head") from error
        position += _HEAD.size
        share_count += count
        if not count or share_count > STORE_CALL_SHARES:
            raise FormatError(f"no shares to store, or more than {STORE_CALL_SHARES}")
        numbers = bytes(view[position : position + count])
        position += count
        if len(set(numbers)) != count or position + count * size > len(view):
            raise FormatError("shares to store of which some are missing, or there twice")
        shares: dict[ShareNumber, Sequence[Buffer]] = {}
        for number in numbers:
            shares[ShareNumber(number)] = (view[position : position + size],)
            position += size
        secrets = LeaseSecrets(renew=renew, cancel=cancel)
        stores.append(NewShares(storage_index=StorageIndex(index), secrets=secrets, shares=shares))
    return stores


def pack_store_answers(answers: Sequence[StoreAnswer]) -> bytes:
    """The answer."""
    return b"".join(_OUTCOME.pack(each.stored, len(each.already)) + bytes(sorted(each.already)) for each in answers)


def parse_store_answers(answer: Buffer, count: int) -> list[StoreAnswer]:
    """The answers to `count` stores; FormatError if there are more or fewer, or one is impossible."""
    view = memoryview(answer)
    answers: list[StoreAnswer] = []
    position = 0
    for _ in range(count):
        try:
            stored, held_count = _OUTCOME.unpack_from(view, position)
        except struct.error as error:
            raise FormatError("an answer about fewer files than were stored") from error
        position += _OUTCOME.size
        numbers = bytes(view[position : position + held_count])
        position += held_count
        if len(set(numbers)) != held_count or stored > 1 or (stored and held_count):
            raise FormatError("an answer to a store that contradicts itself")
        answers.append(StoreAnswer(already=frozenset(map(ShareNumber, numbers)), stored=bool(stored)))
    if position != len(view):
        raise FormatError("an answer about more files than were stored")
    return answers
