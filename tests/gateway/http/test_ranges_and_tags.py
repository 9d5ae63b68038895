"""Range headers, and entity tags that a client already has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap, SdmfWriteCap
from grid.codec.base32 import encode
from grid.gateway.http.ranges_and_tags import ByteRange, RangeBeyondEndError, entity_tag, is_held, parse_range


@pytest.mark.parametrize(
    ("header", "start", "stop"),
    [
        ("bytes=2-4", 2, 5),
        ("bytes=0-0", 0, 1),
        ("bytes=9-", 9, 10),
        ("bytes=0-", 0, 10),
        ("bytes=3-1000", 3, 10),
        ("bytes=3-" + "9" * 4000, 3, 10),
        ("bytes=-3", 7, 10),
        ("bytes=-11", 0, 10),
        ("bytes=-" + "9" * 4000, 0, 10),
        ("bytes=000000000000000000000000003-0000000000000000000000000004", 3, 5),
        ("bytes=1-2,5-6", 1, 3),
        ("bytes=1-2, 100-200", 1, 3),
        (" Bytes = 1-2 ", 1, 3),
    ],
)
def test_range_when_valid_then_is_cut_to_the_file(header: str, start: int, stop: int) -> None:
    assert parse_range(header, 10) == ByteRange(start, stop)


@pytest.mark.parametrize(
    "header",
    [
        None, "", "bytes", "bytes=", "bytes=-", "bytes=-0", "bytes=-000", "bytes=a-b", "bytes=4-3", "bytes=1",
        "bytes=--3", "bytes=1-2-3", "bytes=+1-2", "bytes=0x1-2", "bytes=\u0661-\u0662", "items=0-3", "bytes=1-2,x",
        "bytes=1-2,",
    ],
)  # fmt: skip
def test_range_when_meaningless_then_means_the_whole_file(header: str | None) -> None:
    assert parse_range(header, 10) is None


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-10", "bytes=11-20", f"bytes={'9' * 4000}-"])
def test_range_when_it_begins_at_the_end_or_later_then_is_refused(header: str) -> None:
    with pytest.raises(RangeBeyondEndError, match="10 bytes"):
        parse_range(header, 10)


def test_range_when_the_file_is_empty_then_has_no_byte_to_name() -> None:
    assert parse_range("bytes=-5", 0) is None
    with pytest.raises(RangeBeyondEndError):
        parse_range("bytes=0-", 0)


def test_range_when_answered_then_names_its_last_byte() -> None:
    assert ByteRange(2, 5).content_range(10) == "bytes 2-4/10"


@given(st.text(), st.integers(0, 2**63))
def test_range_when_the_header_is_anything_then_lies_in_the_file_or_is_none(text: str, size: int) -> None:
    for header in (text, "bytes=" + text):
        try:
            found = parse_range(header, size)
        except RangeBeyondEndError:
            continue
        assert found is None or 0 <= found.start < found.stop <= size


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
