"""RSA keys: the bytes of the published test key and everything derived from it, and signatures."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    RSAPrivateNumbers,
    RSAPublicNumbers,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from grid.crypto import rsa
from grid.crypto.aes import crypt_once
from grid.errors import FormatError, IntegrityError

SPECIFICATION = Path(__file__).parents[2] / "docs" / "spec" / "mutable.md"


def published_key() -> RSAPrivateKey:
    """The test key whose primes the specification gives."""
    found = re.search(r"^p =\n([0-9a-f\s]+)q =\n([0-9a-f\s]+)", SPECIFICATION.read_text(), re.MULTILINE)
    assert found is not None
    p, q = (int("".join(digits.split()), 16) for digits in found.groups())
    d = pow(65537, -1, math.lcm(p - 1, q - 1))
    numbers = RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), RSAPublicNumbers(65537, p * q))
    return numbers.private_key()


def private_bytes(encoding: Encoding, form: PrivateFormat) -> bytes:
    return published_key().private_bytes(encoding, form, NoEncryption())


DER = private_bytes(Encoding.DER, PrivateFormat.PKCS8)
KEY = rsa.parse_private_key(DER)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_published_key_when_derived_from_gives_what_the_specification_says() -> None:
    assert (len(DER), sha256(DER)) == (1218, "db29303e2f3229b339e60775b929eaa1e99b2e707338cef600ab11b2858a8bc5")
    assert KEY.der == DER
    assert KEY.write_key.hex() == "7c6d70e39a057caa881637636086b23b"
    public = KEY.public_key
    assert (len(public.der), sha256(public.der)) == (
        294,
        "432d38b80914fa7e916ca8d199aa6c5464870e937dc8433f822bcdb7863bd4b5",
    )
    encrypted = crypt_once(KEY.write_key, DER)
    assert sha256(encrypted) == "f2599306e71e46291d4d0941f59f486b3625561e737e70daef6287af585e1d66"
    cap_field = "texgssrba2hrhv5qwhb3o7guaybaixwrk36gg6lladuwb66rszba"
    from grid.codec import base32

    assert base32.encode(public.fingerprint) == cap_field


def test_signatures_of_the_specification_when_verified_hold() -> None:
    text = SPECIFICATION.read_text()
    for name in ("SDMF", "MDMF"):
        part = text[text.index(f"\n{name} share 2:") :]
        prefix, signature = (
            bytes.fromhex("".join(re.search(rf"\n{what}:\n((?:  [0-9a-f]+\n)+)", part).group(1).split()))  # type: ignore[union-attr]
            for what in ("signed prefix", "signature")
        )
        KEY.public_key.verify(signature, prefix)
        with pytest.raises(IntegrityError):
            KEY.public_key.verify(signature, prefix + b"\x00")


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("encoding", [Encoding.DER, Encoding.PEM])
def test_import_when_the_key_comes_in_another_form_gives_the_same_bytes(
    encoding: Encoding, form: PrivateFormat
) -> None:
    assert rsa.import_private_key(private_bytes(encoding, form)) == KEY


def test_keys_when_signing_and_verifying_agree() -> None:
    public = rsa.parse_public_key(KEY.public_key.der)
    assert public == KEY.public_key
    first, second = KEY.sign(b"message"), KEY.sign(b"message")
    assert first != second
    assert len(first) == rsa.SIGNATURE_SIZE
    for signature in (first, second):
        public.verify(signature, b"message")
    for signature in (b"", first[:-1], first + b"\x00", bytes(256), b"\xff" * 256, first[::-1]):
        with pytest.raises(IntegrityError):
            public.verify(signature, b"message")
    with pytest.raises(IntegrityError):
        public.verify(first, b"massage")


def test_verify_when_the_salt_has_another_length_refuses() -> None:
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
    from cryptography.hazmat.primitives.hashes import SHA256

    for size in (0, 20, 31, 33, 222):
        signature = published_key().sign(b"message", PSS(mgf=MGF1(SHA256()), salt_length=size), SHA256())
        with pytest.raises(IntegrityError):
            KEY.public_key.verify(signature, b"message")


def test_generated_key_when_parsed_back_is_the_same() -> None:
    key = rsa.generate_key()
    assert rsa.parse_private_key(key.der) == key
    assert rsa.import_private_key(key.der) == key
    assert 1200 < len(key.der) <= 1220
    rsa.parse_public_key(key.public_key.der).verify(key.sign(b"x"), b"x")


def test_parse_when_bytes_are_no_such_key_refuses() -> None:
    small = generate_private_key(65537, 1024)
    curve = ec.generate_private_key(ec.SECP256R1())
    password = BestAvailableEncryption(b"password")
    private = [
        key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, encryption)
        for key, encryption in ((small, NoEncryption()), (curve, NoEncryption()), (published_key(), password))
    ]
    private.append(published_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, password))
    nonsense = [b"", b"x", DER[:-1], DER[:100], DER[1:], bytes(1218), DER + bytes(9000), b"-----BEGIN nothing"]
    for raw in (*private, *nonsense, KEY.public_key.der):
        with pytest.raises(FormatError):
            rsa.parse_private_key(raw)
        with pytest.raises(FormatError):
            rsa.import_private_key(raw)
    public = [key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for key in (small, curve)]
    for raw in (*public, *nonsense, DER, KEY.public_key.der[:-1]):
        with pytest.raises(FormatError):
            rsa.parse_public_key(raw)


def test_parse_when_any_byte_of_a_key_is_changed_never_fails_otherwise() -> None:
    public = KEY.public_key.der
    for position in range(len(public)):
        changed = public[:position] + bytes([public[position] ^ 0x15]) + public[position + 1 :]
        try:
            key = rsa.parse_public_key(changed)
        except FormatError:
            continue
        assert key.fingerprint != KEY.public_key.fingerprint
        with pytest.raises(IntegrityError):
            key.verify(bytes(256), b"")
    for position in range(0, len(DER), 7):
        changed = DER[:position] + bytes([DER[position] ^ 0x15]) + DER[position + 1 :]
        try:
            assert rsa.parse_private_key(changed).write_key != KEY.write_key
        except FormatError:
            continue


def test_repr_when_shown_holds_no_key() -> None:
    assert repr(KEY) == "PrivateKey()"
