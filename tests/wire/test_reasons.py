"""Why connections fail, in words."""

from __future__ import annotations

import errno

import pytest
from foolscap.tokens import BananaError
from twisted.internet.error import ConnectError, getConnectError

from grid.errors import PeerGoneError
from grid.wire.foolscap.remote_errors import from_remote
from grid.wire.reasons import ANOTHER_NODE, words_for


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ECONNREFUSED, "connection refused"),
        (errno.ENETUNREACH, "no route to host"),
        (errno.EHOSTUNREACH, "no route to host"),
        (errno.EIO, "connecting failed"),
    ],
)
def test_reason_when_the_system_gives_a_number_is_in_words(number: int, words: str) -> None:
    assert words_for(getConnectError((number, "text"))) == words


def test_reason_when_an_error_has_no_number_is_the_general_one() -> None:
    assert words_for(ConnectError()) == "connecting failed"


def test_reason_when_a_node_does_not_know_the_tub_is_that_another_one_is_there() -> None:
    answered = "not right, got 'HTTP/1.1 500 Internal Server Error: unknown TubID abc', expected 101"
    error = from_remote(BananaError(answered), "server x")
    assert isinstance(error, PeerGoneError) and error.reason == ANOTHER_NODE
    assert str(error) == f"server x cannot be reached: {ANOTHER_NODE}"
    other = from_remote(BananaError("too long"), "server x")
    assert isinstance(other, PeerGoneError) and other.reason.startswith("BananaError: ")
