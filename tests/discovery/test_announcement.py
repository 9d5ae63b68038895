"""Signed announcements: packed, parsed, verified, replaced. [spec wire 7-9]"""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.codec import base32
from grid.discovery.announcement import (
    SignedAnnouncement,
    identify,
    parse_announcement,
    parse_fields,
    parse_signed,
    replaces,
    server_id_of,
    sign,
    storage_furl,
    verify,
)
from grid.errors import FormatError, GridError, IntegrityError
from grid.limits import MAX_ANNOUNCEMENT_SIZE
from grid.ports import ServerId
from tests.discovery.samples import IDS, KEYS, announcement, fields, furl, signed


def test_announcement_when_signed_and_parsed_then_is_the_same() -> None:
    parsed = parse_announcement(signed().to_tuple())
    assert parsed.fields == fields()
    assert parsed.server_id == IDS[0] == server_id_of(KEYS[0].verifying_key)
    assert parsed.service_name == "storage"
    assert parsed.seqnum == 1
    assert parsed.nickname == "nick"
    assert parsed.signed == signed()


def test_signed_when_packed_then_has_the_lengths_of_1_20() -> None:
    made = signed()
    assert len(made.signature) == 3 + 103
    assert len(made.key) == 3 + 52


def test_verify_when_any_bit_of_the_message_or_signature_is_flipped_then_refuses() -> None:
    made = signed()
    for index in range(len(made.message)):
        message = bytearray(made.message)
        message[index] ^= 1
        with pytest.raises(IntegrityError):
            verify(SignedAnnouncement(bytes(message), made.signature, made.key))
    signature = bytearray(base32.decode(made.signature[3:]))
    for index in range(len(signature)):
        signature[index] ^= 1
        flipped = b"v0-" + base32.encode(signature).encode()
        with pytest.raises(IntegrityError):
            verify(SignedAnnouncement(made.message, flipped, made.key))
        signature[index] ^= 1


def test_verify_when_another_key_is_named_then_refuses() -> None:
    with pytest.raises(IntegrityError):
        verify(SignedAnnouncement(signed(0).message, signed(0).signature, signed(1).key))


@pytest.mark.parametrize("formatted", [{"indent": 3}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_verify_when_the_json_is_formatted_otherwise_then_is_kept_verbatim(formatted: dict[str, object]) -> None:
    message = json.dumps(fields(nickname="ü"), **formatted).encode()  # type: ignore[arg-type]
    made = SignedAnnouncement(message, b"v0-" + base32.encode(KEYS[0].sign(message)).encode(), signed().key)
    parsed = verify(made)
    assert parsed.signed is not None
    assert parsed.signed.message == message
    assert parsed.nickname == "ü"


MADE = signed()
MESSAGE, SIGNATURE, KEY = MADE.to_tuple()


@pytest.mark.parametrize(
    "value",
    [
        None,
        (),
        (MESSAGE, SIGNATURE),
        [MESSAGE, SIGNATURE, KEY],
        (MESSAGE.decode(), SIGNATURE, KEY),
        (MESSAGE, b"", KEY),
        (MESSAGE, SIGNATURE, b""),
        (MESSAGE, b"v1" + SIGNATURE[2:], KEY),
        (MESSAGE, SIGNATURE, b"v1" + KEY[2:]),
        (MESSAGE, SIGNATURE[:-1], KEY),
        (MESSAGE, SIGNATURE, KEY + b"a"),
        (MESSAGE, SIGNATURE, KEY[:-1] + b"\xff"),
        (MESSAGE, SIGNATURE, KEY.upper()),
        (b"x" * (MAX_ANNOUNCEMENT_SIZE + 1), SIGNATURE, KEY),
    ],
)
def test_parse_when_the_parts_are_wrong_then_refuses(value: object) -> None:
    with pytest.raises(FormatError):
        parse_announcement(value)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"{}",
        b'{"service-name": 5}',
        b"\xff",
        b"[" * 60000,
        b'{"service-name": "storage", "x": ' + b"[" * 30 + b"]" * 30 + b"}",
        b'{"service-name": "storage", "x": ' + b"9" * 5000 + b"}",
    ],
)
def test_verify_when_the_message_is_signed_but_says_nothing_then_refuses(message: bytes) -> None:
    signature = b"v0-" + base32.encode(KEYS[0].sign(message)).encode()
    with pytest.raises(FormatError):
        verify(SignedAnnouncement(message, signature, KEY))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELD_NAMES = st.sampled_from(
    ["service-name", "seqnum", "nickname", "anonymous-storage-FURL", "permutation-seed-base32", "version"]
)


@given(st.dictionaries(FIELD_NAMES, JSON | st.sampled_from(["storage", furl()])))
def test_everything_when_the_signer_says_anything_then_raises_nothing_but_grid_errors(
    content: dict[str, object],
) -> None:
    with contextlib.suppress(GridError):
        parsed = parse_announcement(sign(content, KEYS[0]).to_tuple())
        assert parsed.nickname.isprintable()
        replaces(parsed, announcement())
        replaces(announcement(), parsed)
        identify(parsed, math.inf)


@given(st.binary(max_size=99), st.binary(max_size=120) | st.just(SIGNATURE), st.binary(max_size=60) | st.just(KEY))
def test_parse_when_given_any_bytes_then_raises_nothing_but_grid_errors(one: bytes, two: bytes, three: bytes) -> None:
    with contextlib.suppress(FormatError, IntegrityError):
        parse_announcement((one, b"v0-" + two, b"v0-" + three))
    with contextlib.suppress(FormatError, IntegrityError):
        verify(parse_signed((one, two, three)))


def test_replaces_when_none_is_kept_then_does() -> None:
    assert replaces(announcement(), None)


@pytest.mark.parametrize(
    ("kept", "new", "expected"),
    [
        (fields(1), fields(1), False),
        (fields(1), fields(2), True),
        (fields(2), fields(1), False),
        (fields(1), fields(1, nickname="other"), False),
        (fields(1), fields(seqnum=None), False),
        (fields(1), fields(seqnum="2"), False),
        (fields(1), fields(seqnum=2.5), False),
        (fields(1), fields(seqnum=True), False),
        (fields(seqnum=None), fields(1), True),
        (fields(seqnum=None), fields(seqnum=None, nickname="other"), True),
        (fields(seqnum=None), fields(seqnum=None), False),
        (fields(seqnum="9"), fields(1), True),
    ],
)
def test_replaces_when_one_is_kept_then_follows_the_table(
    kept: dict[str, object], new: dict[str, object], expected: bool
) -> None:
    server_id = ServerId(IDS[0])
    assert replaces(parse_fields(server_id, new, MADE), parse_fields(server_id, kept, MADE)) is expected


def test_identify_when_a_seed_is_announced_then_uses_it() -> None:
    changes: dict[str, Any] = {"permutation-seed-base32": base32.encode(b"my seed")}
    made = announcement(**changes)
    identity = identify(made, 5.0)
    assert identity.permutation_seed == b"my seed"
    assert identity.lease_seed == storage_furl(made).node_id == base32.decode("a" * 32)
    assert identity.server_id == IDS[0]
    assert identity.upload_permit_expires == 5.0


def test_identify_when_no_seed_is_announced_then_the_id_gives_it() -> None:
    assert identify(announcement(), math.inf).permutation_seed == KEYS[0].verifying_key.data


@pytest.mark.parametrize(
    "changes",
    [
        {"anonymous-storage-FURL": None},
        {"anonymous-storage-FURL": 5},
        {"anonymous-storage-FURL": "pb://x"},
        {"permutation-seed-base32": 5},
        {"permutation-seed-base32": "0189"},
    ],
)
def test_identify_when_a_field_cannot_be_read_then_refuses(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        identify(announcement(**changes), math.inf)


def test_nickname_when_hostile_then_is_cut_and_printable() -> None:
    nickname = announcement(nickname="\x1b[31m\n" + "x" * 1000).nickname
    assert nickname.isprintable()
    assert len(nickname) == 200
    assert announcement(nickname=5).nickname == ""
