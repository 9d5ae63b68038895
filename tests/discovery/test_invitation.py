"""The messages of an invitation, its code and the address of its server. [spec cli 4.4]"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.discovery.invitation import (
    DEFAULT_SERVER,
    INVITER,
    JOINER,
    Invitation,
    pack_introduction,
    pack_invitation,
    parse_code,
    parse_invitation,
    parse_server,
    require_ability,
)
from grid.errors import FormatError
from grid.limits import MAX_INVITATION_SIZE
from grid.wire.locators import parse_furl

FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
OF_1_20 = (
    b'{"shares-needed": "2", "shares-total": "4", "shares-happy": "3", "nickname": "bob", "introducer": "%s"}'
    % FURL.encode()
)
"""As 1.20 sends it."""

INVITATION = Invitation(nickname="bob", introducer=parse_furl(FURL), needed=2, happy=3, total=4)


def message(**changes: Any) -> bytes:
    content = json.loads(OF_1_20) | {name.replace("_", "-"): value for name, value in changes.items()}
    return json.dumps(content).encode()


def refused(data: bytes) -> str:
    with pytest.raises(FormatError) as caught:
        parse_invitation(data)
    assert "ln3ddyj" not in str(caught.value)
    return str(caught.value)


def test_invitation_of_1_20_is_understood() -> None:
    assert parse_invitation(OF_1_20) == INVITATION
    assert require_ability(b'{"abilities": {"server-v1": {}}}', INVITER) is None  # type: ignore[func-returns-value]


def test_invitation_has_numbers_from_which_1_20_makes_a_configuration_that_it_can_read() -> None:
    packed = pack_invitation(INVITATION)
    assert parse_invitation(packed) == INVITATION
    assert json.loads(packed)["shares-needed"] == 2
    assert pack_introduction(JOINER) == b'{"abilities": {"client-v1": {}}}'


def test_invitation_does_not_show_its_secret() -> None:
    assert "ln3ddyj" not in repr(INVITATION)


def test_keys_that_are_unknown_are_ignored() -> None:
    assert parse_invitation(message(more={"a": [1]}, shares_extra=-1)) == INVITATION


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"nickname": None}, "without a nickname"),
        ({"nickname": 7}, "without a nickname"),
        ({"nickname": "a\nb"}, "not printable"),
        ({"nickname": "a\x1b[2J"}, "not printable"),
        ({"nickname": "a\u202eb"}, "not printable"),
        ({"nickname": "\ud800"}, "not printable"),
        ({"nickname": "a" * 201}, "201 characters"),
        ({"introducer": None}, "without an introducer"),
        ({"introducer": ["pb://"]}, "without an introducer"),
        ({"introducer": "pb://short@tcp:a:1/x"}, "TubID"),
        ({"introducer": FURL + "\nmore: yes"}, "characters that no name may have"),
        ({"introducer": FURL + "a" * 4096}, "at most 4096"),
        ({"shares_needed": None}, "shares-needed is missing"),
        ({"shares_needed": True}, "shares-needed is missing"),
        ({"shares_needed": 0}, "shares-needed is missing"),
        ({"shares_needed": "-1"}, "shares-needed is missing"),
        ({"shares_needed": 2.0}, "shares-needed is missing"),
        ({"shares_happy": "b'3'"}, "shares-happy is missing"),
        ({"shares_total": "9" * 5000}, "shares-total is missing"),
        ({"shares_total": "٣"}, "shares-total is missing"),
        ({"shares_total": 257}, "2-of-257"),
        ({"shares_needed": 5}, "5-of-4"),
        ({"shares_happy": 5}, "on 5 servers"),
    ],
)
def test_invitation_that_no_inviter_sends_is_refused(changes: dict[str, Any], why: str) -> None:
    assert why in refused(message(**changes))


@pytest.mark.parametrize(
    "data", [b"", b"junk", b"[]", b"null", b"7", b"\xff", b'{"a"', b"[" * 10_000, b'{"a": ' + b"1" * 9000 + b"}"]
)
def test_message_that_is_no_object_is_refused(data: bytes) -> None:
    assert "a message that is not" in refused(data)
    with pytest.raises(FormatError):
        require_ability(data, INVITER)


def test_message_that_is_too_large_is_refused_before_it_is_parsed() -> None:
    assert "at most 16384" in refused(b"x" * (MAX_INVITATION_SIZE + 1))


@given(st.binary(max_size=200))
def test_no_message_raises_anything_else(data: bytes) -> None:
    for parse in (parse_invitation, lambda data: require_ability(data, JOINER)):
        try:
            parse(data)
        except FormatError:
            continue


@pytest.mark.parametrize("abilities", [None, [], "server-v1", {}, {"client-v1": {}}])
def test_side_that_cannot_invite_is_no_inviter(abilities: object) -> None:
    with pytest.raises(FormatError, match="does not invite"):
        require_ability(json.dumps({"abilities": abilities}).encode(), INVITER)


def test_code_is_understood_as_people_write_it() -> None:
    for text in ("7-guitarist-revenge", " 7 Guitarist  Revenge\n", "7-GUITARIST revenge"):
        assert parse_code(text) == "7-guitarist-revenge"


@pytest.mark.parametrize(
    "text", ["", "7", "7-", "guitarist-revenge", "7-a\x00b", "7-ä", "7--b", "7-" + "a" * 100, FURL]
)
def test_text_that_is_no_code_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="not an invitation code") as caught:
        parse_code(text)
    assert "guitarist-revenge" in str(caught.value) and "ln3ddyj" not in str(caught.value)


@pytest.mark.parametrize(
    "text", [DEFAULT_SERVER, "wss://grid.example.org/v1", "ws://[::1]:4000/v1", "ws://10.0.0.1:80"]
)
def test_address_of_a_server_is_accepted(text: str) -> None:
    assert parse_server(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "localhost:4000", "http://a/v1", "ws:///v1", "ws://a:0/v1", "ws://a:65536/v1", "ws://a:b/v1", "ws://[a/v1",
        "ws://user:secret@a/v1", "ws://a/v1#b", "ws://a b/v1", "ws://a/\n", "wss://[::1]/v1", "ws://" + "a" * 1000,
    ],
)  # fmt: skip
def test_address_that_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="server"):
        parse_server(text)
