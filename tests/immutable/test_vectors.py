"""Known answers of others: the files of [spec immutable 17], and published capability vectors."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from grid.immutable.geometry import Geometry
from tests.support.shares import EncodedFile, convergent_key, encode_text

SECRET = b"a" * 16
VECTORS_VARIABLE = "GRID_SHARED_VECTORS"


def encode_convergent(text: bytes, secret: bytes, geometry: Geometry) -> EncodedFile:
    return encode_text(text, convergent_key(text, secret, geometry), geometry)


def test_known_file_a_has_the_known_caps_and_shares() -> None:
    encoded = encode_convergent(b"a" * 56, SECRET, Geometry.of_file(56, 3, 10))
    assert encoded.cap.to_string() == (
        "URI:CHK:hah7mxwfpqemm7icdh3hwsa5fa:6epvxt2uxh42obpnfn4wkrplqml7voh7aqpnqnapu7ffcyn2hk3q:3:10:56"
    )
    assert encoded.cap.verify_cap().to_string() == (
        "URI:CHK-Verifier:5mwuz5yxisqrnhtrsljs7wkyb4:6epvxt2uxh42obpnfn4wkrplqml7voh7aqpnqnapu7ffcyn2hk3q:3:10:56"
    )
    assert encoded.cap.storage_index.hex() == "eb2d4cf71744a1169e7192d32fd9580f"
    assert len(encoded.finished.ueb) == 308
    assert {len(share) for share in encoded.shares} == {633}
    header = "000000010000001300000013000000240000003700000057000000770000009700000141"
    assert {share[:36].hex() for share in encoded.shares} == {header}
    assert [hashlib.sha256(encoded.shares[number]).hexdigest() for number in (0, 3, 9)] == [
        "9992a67031831945dd97738963b46dcd763702f2da066503edb54478f8edb461",
        "96db6cb8ad01f0a450711c801f5e500f36a310cf840d7f972713d6a3919268f8",
        "1480ab5d0f8d178cfc3fb1820066cba0151e0b35fbfd156659f0915dfd6721dd",
    ]


def test_known_file_b_has_the_known_cap_and_shares() -> None:
    text = (bytes(range(256)) * 4)[:1000]
    encoded = encode_convergent(text, SECRET, Geometry.of_file(1000, 3, 10, 102))
    assert encoded.cap.to_string() == (
        "URI:CHK:v7r3moratcmxvunhervl7dwnsu:egegwc47d45kxhrzsros67weihmyahfjdjxjub4ynbgts3ttxsqa:3:10:1000"
    )
    assert {len(share) for share in encoded.shares} == {3833}
    joined = hashlib.sha256(b"".join(encoded.shares)).hexdigest()
    assert joined == "92a841e896a8bd46a8d1db808d0a79bee61932d449142e52f5fb1694953048e0"


@pytest.mark.skipif(VECTORS_VARIABLE not in os.environ, reason=f"{VECTORS_VARIABLE} names no folder of vectors")
def test_published_capabilities_come_out_equal() -> None:
    path = Path(os.environ[VECTORS_VARIABLE]) / "chk-caps.json"
    vectors: list[dict[str, Any]] = json.loads(path.read_text())["vectors"]
    assert len(vectors) == 60
    differing = []
    for index, vector in enumerate(vectors):
        seed, length = base64.b64decode(vector["seed_b64"]), vector["length"]
        text = (seed * (length // len(seed) + 1))[:length]
        geometry = Geometry.of_file(length, vector["k"], vector["n"], vector["max_segment_size"])
        encoded = encode_convergent(text, base64.b64decode(vector["convergence_b64"]), geometry)
        if encoded.cap.to_string() != vector["cap"]:
            differing.append(index)
    assert differing == []
