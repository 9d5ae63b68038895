"""Tokens in one piece are the bytes that Foolscap itself would send."""

from __future__ import annotations

from typing import Any

import pytest
from foolscap.banana import Banana
from foolscap.tokens import BananaError
from hypothesis import given
from hypothesis import strategies as st

from grid.wire.foolscap.tokens import TokenBroker

NUMBERS = st.one_of(
    st.integers(min_value=-(2**64), max_value=2**64),
    st.sampled_from([0, 1, 127, 128, 129, 2**14 - 1, 2**14, 2**31 - 1, 2**31, -1, -(2**31), -(2**31) - 1]),
)
STRINGS = st.one_of(st.binary(max_size=200), st.sampled_from([b"", b"list", b"call", bytes(4096), bytes(4097)]))


class Pieces:
    """A transport that keeps each piece it is given."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, piece: bytes) -> None:
        self.pieces.append(piece)


def talker(kind: Any, abbreviations: dict[bytes, int] | None = None) -> Any:
    banana = kind.__new__(kind)
    banana.transport = Pieces()
    banana.openCount = 0
    banana.outgoingVocabulary = abbreviations or {}
    return banana


def sent(banana: Any, token: object) -> list[bytes]:
    banana.transport.pieces = []
    banana.sendToken(token)
    pieces: list[bytes] = banana.transport.pieces
    return pieces


@given(st.one_of(NUMBERS, STRINGS, st.floats(allow_nan=False)))
def test_token_when_sent_is_what_foolscap_sends(token: object) -> None:
    abbreviations = {b"list": 3, b"call": 200}
    ours = sent(talker(TokenBroker, abbreviations), token)
    assert b"".join(ours) == b"".join(sent(talker(Banana, abbreviations), token))


@pytest.mark.parametrize(
    ("token", "count"), [(0, 1), (2**31 - 1, 1), (b"", 1), (bytes(4096), 1), (bytes(4097), 2), (b"call", 1)]
)
def test_token_when_usual_is_written_at_once(token: object, count: int) -> None:
    assert len(sent(talker(TokenBroker, {b"call": 200}), token)) == count


@given(st.integers(min_value=0, max_value=2**40))
def test_sequence_when_it_begins_and_ends_has_its_number_once_each(number: int) -> None:
    ours, theirs = talker(TokenBroker), talker(Banana)
    for banana in (ours, theirs):
        banana.openCount = number
        assert banana.sendOpen() == number
        banana.sendClose(number)
        assert banana.openCount == number + 1
    assert len(ours.transport.pieces) == 2
    assert b"".join(ours.transport.pieces) == b"".join(theirs.transport.pieces)


def test_token_when_it_is_of_no_kind_that_can_be_sent_is_refused() -> None:
    with pytest.raises(BananaError):
        talker(TokenBroker).sendToken(None)
