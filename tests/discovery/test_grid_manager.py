"""Grid-manager certificates. [spec wire 11]"""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.codec import base32
from grid.discovery.grid_manager import permit_expires
from grid.ports import ServerId
from tests.discovery.samples import IDS, KEYS

SERVER = ServerId(IDS[0])
MANAGER = KEYS[3]
KEYRING = [KEYS[2].verifying_key, MANAGER.verifying_key]
EXPIRES = "2030-01-02T03:04:05+00:00"
EXPIRES_AT = 1893553445.0


def certificate(**changes: Any) -> dict[str, str]:
    content = {"expires": EXPIRES, "public_key": f"pub-{SERVER}", "version": 1, **changes}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {"certificate": text, "signature": base32.encode(MANAGER.sign(text.encode()))}


def test_permit_when_no_manager_is_configured_then_never_ends() -> None:
    assert permit_expires(None, SERVER, []) == math.inf


def test_permit_when_a_certificate_is_valid_then_ends_with_it() -> None:
    assert permit_expires([certificate()], SERVER, KEYRING) == EXPIRES_AT


def test_permit_when_there_are_several_then_ends_with_the_last_valid_one() -> None:
    late = certificate(expires="2040-01-01T00:00:00+00:00")
    broken = {**certificate(expires="2050-01-01T00:00:00+00:00"), "signature": late["signature"]}
    assert permit_expires([certificate(), broken, late], SERVER, KEYRING) == 2208988800.0


def test_permit_when_the_time_has_another_offset_then_counts_it() -> None:
    assert permit_expires([certificate(expires="2030-01-02T05:04:05+02:00")], SERVER, KEYRING) == EXPIRES_AT


@pytest.mark.parametrize(
    "certificates",
    [
        None,
        [],
        {},
        "text",
        [None],
        [{}],
        [{"certificate": "{}"}],
        [{**certificate(), "more": ""}],
        [{**certificate(), "signature": ""}],
        [{**certificate(), "signature": "0"}],
        [{**certificate(), "signature": 5}],
        [{**certificate(), "certificate": 5}],
        [certificate(version=2)],
        [certificate(public_key=f"pub-{IDS[1]}")],
        [certificate(public_key=None)],
        [certificate(expires="2030-01-02T03:04:05")],
        [certificate(expires="soon")],
        [certificate(expires=5)],
    ],
)
def test_permit_when_no_certificate_is_valid_then_there_is_none(certificates: object) -> None:
    assert permit_expires(certificates, SERVER, KEYRING) == -math.inf


def test_permit_when_another_manager_signed_then_there_is_none() -> None:
    assert permit_expires([certificate()], SERVER, [KEYS[2].verifying_key]) == -math.inf


@given(st.text(max_size=60))
def test_permit_when_a_manager_signs_anything_then_raises_nothing(text: str) -> None:
    with contextlib.suppress(UnicodeEncodeError):
        entry = {"certificate": text, "signature": base32.encode(MANAGER.sign(text.encode()))}
        assert permit_expires([entry], SERVER, KEYRING) == -math.inf
