"""Published known answers: the files of [spec immutable 17], and capability vectors."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from grid.immutable.share.geometry import Geometry
from grid.immutable.share.layout import parse_header
from tests.support.share_vectors import PATH, ShareVector, find_fault, load_share_vectors, verify_share
from tests.support.shares import EncodedFile, convergent_key, decode_shares, encode_text
from tests.vectors.make_chk_shares import make_file

SECRET = b"a" * 16
VECTORS_VARIABLE = "GRID_SHARED_VECTORS"
"""Names a folder with answers that others published, which are not the project's to ship; .ci/run sets it."""


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


# .ci/run sets the variable: the published vectors are not the project's to ship.
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


@pytest.fixture(params=load_share_vectors(), ids=lambda vector: vector.name)
def vector(request: pytest.FixtureRequest) -> ShareVector:
    assert isinstance(request.param, ShareVector)
    return request.param


def test_committed_share_sets_are_those_that_their_script_makes() -> None:
    assert PATH.read_text() == make_file()


def test_committed_share_sets_are_all_there_under_distinct_names() -> None:
    vectors = load_share_vectors()
    assert len({vector.name for vector in vectors}) == len(vectors) >= 48
    assert {vector.get for vector in vectors} == {"ok", "too few", "damaged"}


def test_each_share_has_the_fault_stated_and_no_other(vector: ShareVector) -> None:
    found = {number: find_fault(vector.cap, number, share) for number, share in vector.shares.items()}
    assert {number: fault for number, fault in found.items() if fault is not None} == vector.faults


def test_sound_shares_of_a_share_set_add_up_to_what_is_stated(vector: ShareVector) -> None:
    sound = {number: share for number, share in vector.shares.items() if number not in vector.faults}
    few = dict(list(sound.items())[: vector.cap.needed])
    if vector.get == "ok":
        number, share = next(iter(few.items()))
        geometry = verify_share(vector.cap, number, share)
        assert decode_shares(few, geometry, vector.cap.key) == vector.text
    elif vector.get == "too few":
        assert len(sound) < vector.cap.needed
    else:
        assert vector.text is None


def test_share_sets_made_as_others_write_them_are_those_the_encoder_makes() -> None:
    compared = 0
    for vector in load_share_vectors()[:7]:
        assert vector.text is not None
        geometry = Geometry.of_file(vector.cap.size, vector.cap.needed, vector.cap.total, 96)
        made = encode_text(vector.text, vector.cap.key, geometry)
        assert made.cap == vector.cap
        # Ascending chains are 1.20's for up to 4 shares.
        if vector.cap.total <= 4:
            assert dict(enumerate(made.shares)) == vector.shares
            compared += 1
    assert compared == 4


def test_any_bit_flipped_that_the_cap_vouches_for_is_found() -> None:
    vector = next(vector for vector in load_share_vectors() if vector.name == "many segments, padded tail")
    share = vector.shares[3]
    layout = parse_header(share)
    free = {*range(4, 12), *range(16, 20), *range(layout.plaintext_tree_offset, layout.crypttext_tree_offset)}
    for position in range(len(share)):
        damaged = bytearray(share)
        damaged[position] ^= 1 << position % 8
        assert (find_fault(vector.cap, 3, bytes(damaged)) is None) == (position in free), position


def test_share_cut_short_anywhere_is_found() -> None:
    vector = next(vector for vector in load_share_vectors() if vector.name == "many segments, padded tail")
    share = vector.shares[3]
    assert {find_fault(vector.cap, 3, share[:length]) for length in range(len(share))} == {"format"}
