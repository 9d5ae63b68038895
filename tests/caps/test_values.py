"""Attenuation, and secrets that values never show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from grid.caps import (
    ChkCap,
    DirectoryCap,
    KnownCap,
    LitCap,
    MdmfWriteCap,
    SdmfReadCap,
    SdmfVerifyCap,
    SdmfWriteCap,
    StorageIndex,
    UnknownCap,
    parse_cap,
)
from tests.vectors.make_caps import PATH

ROWS: list[dict[str, Any]] = json.loads(PATH.read_text())["caps"]


def known(text: str) -> KnownCap:
    cap = parse_cap(text)
    assert not isinstance(cap, UnknownCap)
    return cap


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["cap"][:40])
def test_attenuation_when_asked_gives_the_weaker_cap_and_the_same_storage_index(row: dict[str, Any]) -> None:
    cap = known(row["cap"])
    assert cap.read_cap().to_string() == row["read_cap"]
    verify = cap.verify_cap()
    assert (verify and verify.to_string()) == row["verify_cap"]
    assert (cap.storage_index and cap.storage_index.hex()) == row["storage_index"]
    for weaker in (cap.read_cap(), verify):
        assert weaker is None or weaker.storage_index == cap.storage_index


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["cap"][:40])
def test_attenuation_when_repeated_changes_nothing_more(row: dict[str, Any]) -> None:
    cap = known(row["cap"])
    assert cap.read_cap().read_cap() == cap.read_cap()
    assert cap.read_cap().verify_cap() == cap.verify_cap()
    verify = cap.verify_cap()
    if verify is not None:
        assert verify.verify_cap() == verify.read_cap() == verify
        assert verify.authority == "verify"
    assert cap.read_cap().authority == ("verify" if cap.authority == "verify" else "read")


def test_known_answers_when_derived_are_those_of_the_specification() -> None:
    write = SdmfWriteCap(write_key=bytes(range(16)), fingerprint=bytes(range(32)))
    assert write.read_key.hex() == "cadaf6f34ba7ee41b9b4bf76a8f34793"
    assert write.storage_index.hex() == "05d82de538db1406e16fc5ff4d6690a3"
    tail = ":aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dypq"
    assert write.to_string() == "URI:SSK:aaaqeayeaudaocajbifqydiob4" + tail
    assert write.read_cap().to_string() == "URI:SSK-RO:zlnpn42lu7xedonux53kr42hsm" + tail
    assert write.verify_cap().to_string() == "URI:SSK-Verifier:axmc3zjy3mkanylpyx7u2zuqum" + tail
    chk = ChkCap(key=bytes(range(16)), ueb_hash=bytes(range(32)), needed=3, total=10, size=1234)
    assert chk.to_string() == f"URI:CHK:aaaqeayeaudaocajbifqydiob4{tail}:3:10:1234"
    assert chk.verify_cap().to_string() == f"URI:CHK-Verifier:hdis5iaveku6lnlaiccydyid7q{tail}:3:10:1234"
    assert LitCap(data=b"hello").to_string() == "URI:LIT:nbswy3dp"
    assert LitCap(data=b"hello").size == 5


def test_known_answers_of_the_published_key_when_derived_are_those_of_the_specification() -> None:
    write = known("URI:SSK:prwxby42av6kvcawg5rwbbvshm:texgssrba2hrhv5qwhb3o7guaybaixwrk36gg6lladuwb66rszba")
    verify = "URI:SSK-Verifier:4fmzt6kyf5ugjmxlscht5nq2ry:texgssrba2hrhv5qwhb3o7guaybaixwrk36gg6lladuwb66rszba"
    assert write.verify_cap() == parse_cap(verify)
    mdmf = known("URI:MDMF-RO:64uxkiqjhonlqdhqbjtos2trzu:texgssrba2hrhv5qwhb3o7guaybaixwrk36gg6lladuwb66rszba")
    assert mdmf.storage_index == write.storage_index
    assert mdmf != write.read_cap()


def test_caps_when_of_different_kinds_are_never_equal() -> None:
    caps = [known(row["cap"]) for row in ROWS]
    assert len(set(caps)) == len(caps) == len({cap.to_string() for cap in caps})


def test_repr_when_shown_holds_no_secret() -> None:
    key, secret = bytes(range(65, 81)), "ABCDEFGHIJKLMNOP"
    digest = bytes(32)
    chk = ChkCap(key=key, ueb_hash=digest, needed=1, total=1, size=9)
    write = MdmfWriteCap(write_key=key, fingerprint=digest)
    read = SdmfReadCap(read_key=key, fingerprint=digest)
    for cap in (chk, write, read, LitCap(data=key), UnknownCap(b"ro." + key)):
        forms: list[object] = [cap] if isinstance(cap, UnknownCap) else [cap, DirectoryCap(cap)]
        for form in forms:
            for shown in (repr(form), str(form), f"{form}"):
                assert secret not in shown
                assert "ifbegrcfizduqskkjnge2tspka" not in shown
    assert "ABCDEFGH" not in repr(parse_cap(b"URI:LIT:" + key))


def test_unknown_caps_when_compared_are_equal_by_their_bytes() -> None:
    assert parse_cap("URI:LIT:b") == parse_cap(b"URI:LIT:b")
    assert parse_cap("x") != parse_cap("y")
    assert hash(parse_cap("x")) == hash(parse_cap(b"x"))


def test_caps_when_made_of_fields_of_another_size_are_refused() -> None:
    for size in (0, 15, 17):
        with pytest.raises(ValueError, match="key"):
            SdmfWriteCap(write_key=bytes(size), fingerprint=bytes(32))
        with pytest.raises(ValueError, match="storage_index"):
            SdmfVerifyCap(storage_index=StorageIndex(bytes(size)), fingerprint=bytes(32))
    with pytest.raises(ValueError, match="fingerprint"):
        SdmfReadCap(read_key=bytes(16), fingerprint=bytes(31))
    with pytest.raises(ValueError, match="size"):
        ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=1, total=1, size=-1)
