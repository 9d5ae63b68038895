"""Everything of crypto/ against PyCryptodome, which shares no code with OpenSSL, hashlib or multi_buffer.c.

Each side makes what the other reads: a mistake of ours that agrees with itself, in a vector or a round trip, shows here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from Crypto.Cipher import AES
from Crypto.Hash import SHA256
from Crypto.PublicKey import ECC, RSA
from Crypto.Signature import eddsa, pss
from Crypto.Util import Counter
from hypothesis import given
from hypothesis import strategies as st

from grid.crypto import ed25519, rsa
from grid.crypto.aes import CtrCipher, crypt_once
from grid.crypto.hash_rows import RowCut
from grid.crypto.hashing import (
    BLOCK_TAG,
    LeafHasher,
    RunningHasher,
    TaggedHasher,
    hash_blocks,
    hash_rows,
    tagged_hash,
    tagged_pair_hash,
)
from grid.crypto.multi_buffer import multi_buffer, use_multi_buffer
from grid.errors import FormatError, IntegrityError
from tests.crypto.test_rsa import DER, KEY

KEYS = st.binary(min_size=16, max_size=16)
OFFSETS = st.integers(0, 300) | st.integers(0, 1 << 40) | st.integers((1 << 36) - 40, (1 << 36) + 40)
TAGS = st.binary(max_size=130)
THEIR_KEY = RSA.import_key(DER)
SALT_SIZE = 32


def their_keystream(key: bytes, offset: int, size: int) -> bytes:
    """Bytes of the keystream from the offset on."""
    counter = Counter.new(128, initial_value=offset // 16)
    skipped = offset % 16
    return AES.new(key, AES.MODE_CTR, counter=counter).encrypt(bytes(skipped + size))[skipped:]


def their_double(text: bytes) -> bytes:
    """SHA-256d."""
    return SHA256.new(SHA256.new(text).digest()).digest()


def framed(value: bytes) -> bytes:
    """A netstring."""
    return str(len(value)).encode("ascii") + b":" + value + b","


@pytest.fixture(params=["lanes", "hashlib"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each way to hash many messages; where there is no library both are hashlib's."""
    use_multi_buffer(request.param == "lanes")
    assert request.param == "lanes" or multi_buffer() is None
    yield request.param
    use_multi_buffer(True)


@given(KEYS, OFFSETS, st.binary(max_size=200))
def test_cipher_when_started_at_any_offset_has_the_keystream_of_the_other(key: bytes, offset: int, text: bytes) -> None:
    stream = their_keystream(key, offset, len(text))
    assert CtrCipher(key, offset).crypt(text) == bytes(a ^ b for a, b in zip(text, stream, strict=True))


@given(KEYS, st.lists(st.binary(max_size=100), max_size=6))
def test_text_when_encrypted_by_either_is_read_by_the_other(key: bytes, pieces: list[bytes]) -> None:
    text = b"".join(pieces)
    theirs = AES.new(key, AES.MODE_CTR, counter=Counter.new(128, initial_value=0))
    assert theirs.decrypt(crypt_once(key, text)) == text
    made = AES.new(key, AES.MODE_CTR, counter=Counter.new(128, initial_value=0)).encrypt(text)
    cipher, targets = CtrCipher(key), [memoryview(bytearray(len(piece))) for piece in pieces]
    cuts = [sum(map(len, pieces[:index])) for index in range(len(pieces) + 1)]
    cipher.crypt_each([made[a:b] for a, b in pairwise(cuts)], targets)
    assert b"".join(targets) == text


@given(TAGS, st.binary(max_size=300), st.binary(max_size=300), st.integers(1, 32))
def test_tagged_hashes_when_made_by_the_other_are_the_same(tag: bytes, left: bytes, right: bytes, size: int) -> None:
    assert tagged_hash(tag, left, size) == their_double(framed(tag) + left)[:size]
    assert tagged_pair_hash(tag, left, right, size) == their_double(framed(tag) + framed(left) + framed(right))[:size]
    hasher = TaggedHasher(tag)
    hasher.update(left)
    hasher.update(right)
    assert hasher.digest(size) == their_double(framed(tag) + left + right)[:size]


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 55, 56, 63, 64, 65, 127, 128, 4096, 131_073])
def test_rows_of_hashes_when_made_by_the_other_are_the_same(size: int, way: str) -> None:
    items = [bytes([index]) * size for index in range(5)]
    assert hash_blocks(items) == b"".join(their_double(framed(BLOCK_TAG) + item) for item in items)
    running, leaf = RunningHasher(b"run"), LeafHasher(b"leaf")
    row = running.update(b"".join(items), leaf, items)
    assert row == b"".join(their_double(framed(b"leaf") + item) for item in items)
    assert running.digest() == their_double(framed(b"run") + b"".join(items))


def test_rows_of_shares_when_hashed_by_the_other_are_the_same(way: str) -> None:
    shares = [bytes(range(index, index + 250)) for index in range(3)]
    cut = RowCut(count=3, size=100, last_size=50)
    leaves, segments = hash_rows(cut, shares, LeafHasher(b"leaf"), shares, LeafHasher(b"segment"), 749)
    pieces = [[share[a : a + 100] for a in (0, 100, 200)] for share in shares]
    assert leaves == b"".join(their_double(framed(b"leaf") + piece) for share in pieces for piece in share)
    rows = [b"".join(share[index] for share in pieces) for index in range(3)]
    rows[2] = rows[2][:149]
    assert segments == b"".join(their_double(framed(b"segment") + row) for row in rows)


@given(st.binary(max_size=300))
def test_signature_when_made_by_either_is_verified_by_the_other(message: bytes) -> None:
    theirs = pss.new(THEIR_KEY, salt_bytes=SALT_SIZE)
    theirs.verify(SHA256.new(message), KEY.sign(message))
    KEY.public_key.verify(theirs.sign(SHA256.new(message)), message)


@given(st.integers(0, rsa.SIGNATURE_SIZE * 8 - 1))
def test_signature_of_the_other_when_a_bit_is_flipped_is_refused_by_both(bit: int) -> None:
    signature = bytearray(pss.new(THEIR_KEY, salt_bytes=SALT_SIZE).sign(SHA256.new(b"message")))
    signature[bit // 8] ^= 1 << bit % 8
    with pytest.raises(IntegrityError):
        KEY.public_key.verify(bytes(signature), b"message")
    with pytest.raises(ValueError, match=r"(?i)signature|integer|too large"):
        pss.new(THEIR_KEY, salt_bytes=SALT_SIZE).verify(SHA256.new(b"message"), bytes(signature))


@pytest.mark.parametrize("size", [0, 20, 31, 33])
def test_signature_of_the_other_when_its_salt_has_another_length_is_refused(size: int) -> None:
    with pytest.raises(IntegrityError):
        KEY.public_key.verify(pss.new(THEIR_KEY, salt_bytes=size).sign(SHA256.new(b"message")), b"message")


@pytest.mark.parametrize("container", [1, 8])
@pytest.mark.parametrize("form", ["DER", "PEM"])
def test_key_when_exported_by_the_other_is_imported_with_the_same_bytes(form: str, container: int) -> None:
    exported = THEIR_KEY.export_key(format=form, pkcs=container)
    assert rsa.import_private_key(exported) == KEY
    assert rsa.import_private_key(b"\n" + exported if form == "PEM" else exported).write_key == KEY.write_key


def test_key_when_exported_by_either_has_the_same_bytes() -> None:
    assert THEIR_KEY.export_key(format="DER", pkcs=8) == KEY.der
    assert THEIR_KEY.public_key().export_key(format="DER") == KEY.public_key.der
    assert KEY.public_key.fingerprint == their_double(
        framed(b"allmydata_mutable_pubkey_to_fingerprint_v1") + THEIR_KEY.public_key().export_key(format="DER")
    )


def test_key_when_generated_by_either_serves_the_other() -> None:
    ours = rsa.generate_key()
    theirs = RSA.import_key(ours.der)
    assert (theirs.size_in_bits(), theirs.e) == (rsa.KEY_BITS, 65537)
    assert theirs.export_key(format="DER", pkcs=8) == ours.der
    made = RSA.generate(rsa.KEY_BITS)
    key = rsa.parse_private_key(made.export_key(format="DER", pkcs=8))
    public = rsa.parse_public_key(made.public_key().export_key(format="DER"))
    assert key.public_key == public
    public.verify(key.sign(b"x"), b"x")


def test_key_of_the_other_when_locked_small_or_of_another_kind_is_refused() -> None:
    locked = THEIR_KEY.export_key(
        format="PEM", pkcs=8, passphrase="word", protection="PBKDF2WithHMAC-SHA512AndAES256-CBC"
    )
    others = [locked, RSA.generate(1024).export_key(format="DER", pkcs=8)]
    others += [ECC.generate(curve=name).export_key(format="DER") for name in ("p256", "ed25519")]
    for exported in others:
        with pytest.raises(FormatError):
            rsa.import_private_key(exported)


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=300))
def test_ed25519_signature_when_made_by_either_is_the_same(seed: bytes, message: bytes) -> None:
    theirs = ECC.construct(curve="Ed25519", seed=seed)
    ours = ed25519.SigningKey(seed)
    assert ours.sign(message) == eddsa.new(theirs, "rfc8032").sign(message)
