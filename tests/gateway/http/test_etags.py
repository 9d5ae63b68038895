"""Entity tags: which answers have one, and when a client has what it stands for."""

from __future__ import annotations

import pytest

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap, SdmfWriteCap
from grid.codec.base32 import encode
from grid.gateway.http.etags import entity_tag, is_held

CHK = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=1000)
INDEX = encode(CHK.storage_index)


def test_tag_when_the_object_is_immutable_then_names_it_and_the_view() -> None:
    for view in ("", "json", "uri", "readonly-uri"):
        assert entity_tag(CHK, view, by_path=False) == f"{INDEX}-{view}"
        assert entity_tag(DirectoryCap(CHK), view, by_path=False) == f"DIR:{INDEX}-{view}"
    assert entity_tag(CHK.verify_cap(), "", by_path=False) == f"{INDEX}-"


@pytest.mark.parametrize(
    "cap", [LitCap(data=b"x"), DirectoryCap(LitCap(data=b"")), SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32))]
)
def test_tag_when_the_object_may_change_or_has_no_index_then_there_is_none(cap: KnownCap) -> None:
    assert entity_tag(cap, "", by_path=False) is None


def test_tag_when_the_view_may_change_then_there_is_none() -> None:
    assert entity_tag(CHK, "json", by_path=True) is None
    assert entity_tag(CHK, "", by_path=True) == f"{INDEX}-"
    assert entity_tag(CHK, "info", by_path=False) is None


@pytest.mark.parametrize("header", ["a-b", '"a-b"', 'W/"a-b"', "x, a-b", '"x" , "a-b"', "*", "x,*"])
def test_client_when_it_names_the_tag_in_any_form_then_has_it(header: str) -> None:
    assert is_held(header, "a-b")
    assert not is_held(header, None)


@pytest.mark.parametrize("header", [None, "", "a", "a-bc", '"a-b', "a-b;", '""', '"'])
def test_client_when_it_names_other_tags_then_does_not_have_it(header: str | None) -> None:
    assert not is_held(header, "a-b")
