"""The packed form of stores: round trips, and everything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.limits import STORE_CALL_SHARES
from grid.ports import LeaseSecrets, NewShares, ShareNumber, StorageIndex, StoreAnswer
from grid.wire.packed.store_messages import (
    MAX_STORE_MESSAGE,
    pack_store_answers,
    pack_stores,
    parse_store_answers,
    parse_stores,
)

Plain = tuple[bytes, bytes, bytes, dict[int, bytes]]


def new_shares(index: bytes, renew: bytes, cancel: bytes, shares: dict[int, bytes]) -> NewShares:
    return NewShares(
        storage_index=StorageIndex(index),
        secrets=LeaseSecrets(renew=renew, cancel=cancel),
        shares={ShareNumber(number): (data[:2], data[2:]) for number, data in shares.items()},
    )


def plain(new: NewShares) -> Plain:
    shares = {int(number): b"".join(pieces) for number, pieces in new.shares.items()}
    return new.storage_index, new.secrets.renew, new.secrets.cancel, shares


def entries() -> st.SearchStrategy[NewShares]:
    def with_size(size: int) -> st.SearchStrategy[NewShares]:
        shares = st.dictionaries(st.integers(0, 255), st.binary(min_size=size, max_size=size), min_size=1, max_size=5)
        exactly = [st.binary(min_size=length, max_size=length) for length in (16, 32, 32)]
        return st.builds(new_shares, *exactly, shares)

    return st.integers(0, 40).flatmap(with_size)


ONE = new_shares(b"i" * 16, b"r" * 32, b"c" * 32, {7: b"seven", 0: b"zero."})


@given(st.lists(entries(), max_size=4))
def test_stores_when_packed_and_parsed_are_the_same(stores: list[NewShares]) -> None:
    assert [plain(new) for new in parse_stores(pack_stores(stores))] == [plain(new) for new in stores]


@given(st.lists(entries(), min_size=1, max_size=3), st.data())
def test_message_when_cut_is_refused_or_has_fewer_stores(stores: list[NewShares], data: st.DataObject) -> None:
    message = pack_stores(stores)
    cut = data.draw(st.integers(0, len(message) - 1))
    try:
        parsed = parse_stores(message[:cut])
    except FormatError:
        return
    assert [plain(new) for new in parsed] == [plain(new) for new in stores][: len(parsed)]
    assert len(parsed) < len(stores)


@given(st.binary(max_size=300))
def test_message_when_it_is_noise_is_refused_or_parsed(message: bytes) -> None:
    try:
        parse_stores(message)
    except FormatError:
        pass


def test_shares_when_of_two_sizes_are_not_packed() -> None:
    with pytest.raises(ValueError, match="one size"):
        pack_stores([new_shares(b"i" * 16, b"r" * 32, b"c" * 32, {1: b"a", 2: b"ab"})])


def test_message_when_it_names_a_share_twice_is_refused() -> None:
    message = bytearray(pack_stores([ONE]))
    message[86:88] = b"\x07\x07"
    with pytest.raises(FormatError, match="twice"):
        parse_stores(message)


def test_message_when_it_has_too_many_shares_or_bytes_is_refused() -> None:
    many = [new_shares(b"i" * 16, b"r" * 32, b"c" * 32, {number: b""}) for number in range(STORE_CALL_SHARES // 2)]
    assert len(parse_stores(pack_stores([*many, *many]))) == STORE_CALL_SHARES
    with pytest.raises(FormatError, match="more than"):
        parse_stores(pack_stores([*many, *many, ONE]))
    with pytest.raises(FormatError, match="more shares"):
        parse_stores(bytes(MAX_STORE_MESSAGE + 1))
    with pytest.raises(FormatError, match="no shares"):
        parse_stores(bytes(86))


ANSWERS = [
    StoreAnswer(already=frozenset(), stored=True),
    StoreAnswer(already=frozenset(map(ShareNumber, (0, 9, 255))), stored=False),
    StoreAnswer(already=frozenset(), stored=False),
]


def test_answers_when_packed_and_parsed_are_the_same() -> None:
    assert parse_store_answers(pack_store_answers(ANSWERS), 3) == ANSWERS


@pytest.mark.parametrize("count", [0, 2, 4])
def test_answers_when_there_are_fewer_or_more_than_stores_are_refused(count: int) -> None:
    with pytest.raises(FormatError):
        parse_store_answers(pack_store_answers(ANSWERS), count)


@pytest.mark.parametrize(
    "answer", [b"\x02\0\0", b"\x01\0\x01\x05", b"\0\0\x02\x05\x05", b"\0\0\x02\x05", b"\0\0", b"\0\0\0!"]
)
def test_answer_when_it_says_something_impossible_is_refused(answer: bytes) -> None:
    with pytest.raises(FormatError):
        parse_store_answers(answer, 1)
