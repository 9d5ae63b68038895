"""Ed25519: a known answer of RFC 8032, and refusal of false signatures."""

from __future__ import annotations

import pytest

from grid.crypto.ed25519 import SigningKey, VerifyingKey
from grid.errors import IntegrityError

SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
SIGNATURE = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


def test_key_when_known_signs_as_the_rfc_says() -> None:
    key = SigningKey(SEED)
    assert key.verifying_key == VerifyingKey(PUBLIC)
    assert key.sign(b"\x72") == SIGNATURE
    VerifyingKey(PUBLIC).verify(SIGNATURE, bytearray(b"\x72"))


def test_verify_when_any_bit_differs_refuses() -> None:
    key = VerifyingKey(PUBLIC)
    for bit in range(512):
        changed = bytearray(SIGNATURE)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(IntegrityError):
            key.verify(bytes(changed), b"\x72")
    for bit in range(8):
        with pytest.raises(IntegrityError):
            key.verify(SIGNATURE, bytes([0x72 ^ 1 << bit]))


def test_verify_when_the_signature_or_the_key_is_nonsense_refuses() -> None:
    for signature in (b"", SIGNATURE[:-1], SIGNATURE + b"\x00", bytes(64), b"\xff" * 64):
        with pytest.raises(IntegrityError):
            VerifyingKey(PUBLIC).verify(signature, b"\x72")
    for data in (b"\xff" * 32, b"\x02" + bytes(31), bytes(32)):
        with pytest.raises(IntegrityError):
            VerifyingKey(data).verify(SIGNATURE, b"\x72")


def test_keys_when_of_another_size_are_refused() -> None:
    for size in (0, 31, 33):
        with pytest.raises(ValueError, match="seed"):
            SigningKey(bytes(size))
        with pytest.raises(ValueError, match="data"):
            VerifyingKey(bytes(size))


def test_repr_when_shown_holds_no_seed() -> None:
    key = SigningKey(b"SECRET!!" * 4)
    assert "SECRET" not in repr(key)
    assert key.seed.hex() not in repr(key)
