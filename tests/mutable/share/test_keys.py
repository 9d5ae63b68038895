"""Key derivations, against known answers; and what each cap permits."""

from __future__ import annotations

import hashlib

import pytest

from grid.caps import DirectoryCap, LitCap, MdmfWriteCap, SdmfWriteCap, parse_cap
from grid.errors import AuthorityError, CapError, FormatError, IntegrityError
from grid.mutable.share.geometry import MDMF_VERSION, SDMF_VERSION
from grid.mutable.share.keys import FileKeys, data_key, encrypt_private_key, write_cap
from tests.support.mutable_key import known_key


def test_known_key_when_made_from_its_numbers_then_has_the_published_bytes() -> None:
    key = known_key()
    assert len(key.der) == 1218
    assert hashlib.sha256(key.der).hexdigest() == "db29303e2f3229b339e60775b929eaa1e99b2e707338cef600ab11b2858a8bc5"
    public = "432d38b80914fa7e916ca8d199aa6c5464870e937dc8433f822bcdb7863bd4b5"
    assert hashlib.sha256(key.public_key.der).hexdigest() == public
    encrypted = "f2599306e71e46291d4d0941f59f486b3625561e737e70daef6287af585e1d66"
    assert hashlib.sha256(encrypt_private_key(key)).hexdigest() == encrypted


def test_caps_when_derived_from_the_known_key_then_are_the_published_ones() -> None:
    cap = write_cap(known_key(), SDMF_VERSION)
    assert cap.write_key.hex() == "7c6d70e39a057caa881637636086b23b"
    assert cap.read_key.hex() == "f7297522093b9ab80cf00a66e96a71cd"
    assert cap.storage_index.hex() == "e15999f9582f6864b2eb908f3eb61a8e"
    fingerprint = "texgssrba2hrhv5qwhb3o7guaybaixwrk36gg6lladuwb66rszba"
    assert cap.to_string() == f"URI:SSK:prwxby42av6kvcawg5rwbbvshm:{fingerprint}"
    assert cap.verify_cap().to_string() == f"URI:SSK-Verifier:4fmzt6kyf5ugjmxlscht5nq2ry:{fingerprint}"
    mdmf = write_cap(known_key(), MDMF_VERSION)
    assert mdmf.read_cap().to_string() == f"URI:MDMF-RO:64uxkiqjhonlqdhqbjtos2trzu:{fingerprint}"


def test_data_key_when_derived_then_is_the_published_one() -> None:
    assert data_key(bytes(range(16)), bytes(range(0x40, 0x50))).hex() == "6a1d7d5a98bae6f93f1e7760bf560a1e"


@pytest.mark.parametrize("version", [SDMF_VERSION, MDMF_VERSION])
def test_file_keys_when_of_each_authority_then_hold_what_it_permits(version: int) -> None:
    cap = write_cap(known_key(), version)
    assert isinstance(cap, MdmfWriteCap if version else SdmfWriteCap)
    writer, reader, verifier = (FileKeys.of_cap(c) for c in (cap, cap.read_cap(), cap.verify_cap()))
    assert {keys.version for keys in (writer, reader, verifier)} == {version}
    assert {keys.storage_index for keys in (writer, reader, verifier)} == {cap.storage_index}
    assert writer.require_write_key() == cap.write_key
    assert reader.require_read_key() == writer.require_read_key() == cap.read_key
    with pytest.raises(AuthorityError, match="use its write capability"):
        reader.require_write_key()
    with pytest.raises(AuthorityError, match="use its read or write capability"):
        verifier.require_read_key()


def test_file_keys_when_of_a_directory_then_are_those_of_its_file() -> None:
    cap = write_cap(known_key(), SDMF_VERSION)
    assert FileKeys.of_cap(DirectoryCap(cap)) == FileKeys.of_cap(cap)


def test_file_keys_when_of_an_immutable_cap_then_refuse() -> None:
    for cap in (LitCap(data=b"x"), parse_cap("URI:CHK:" + "a" * 26 + ":" + "a" * 52 + ":3:10:1000")):
        with pytest.raises(CapError):
            FileKeys.of_cap(cap)  # type: ignore[arg-type]


def test_keys_when_any_byte_differs_then_are_refused() -> None:
    key = known_key()
    keys = FileKeys.of_cap(write_cap(key, SDMF_VERSION))
    public, encrypted = key.public_key.der, encrypt_private_key(key)
    assert keys.accept_public_key(public).der == public
    assert keys.accept_private_key(encrypted).der == key.der
    for position in (0, 1, 100, len(public) - 1):
        spoiled = bytearray(public)
        spoiled[position] ^= 1
        with pytest.raises((IntegrityError, FormatError)):
            keys.accept_public_key(bytes(spoiled))
    for position in (0, 600, len(encrypted) - 1):
        spoiled = bytearray(encrypted)
        spoiled[position] ^= 1
        with pytest.raises(IntegrityError):
            keys.accept_private_key(bytes(spoiled))


def test_secrets_when_keys_are_shown_then_are_left_out() -> None:
    key = known_key()
    keys = FileKeys.of_cap(write_cap(key, SDMF_VERSION))
    shown = repr(keys) + repr(key)
    for secret in (keys.require_write_key(), keys.require_read_key(), key.der):
        assert repr(secret)[2:-1] not in shown
        assert secret.hex() not in shown
