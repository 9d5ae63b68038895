"""XML from clients, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.s3 import documents
from grid.s3.documents import MAX_DOCUMENT, parse_document
from grid.s3.faults import S3Fault

BOMB = b"""<?xml version="1.0"?><!DOCTYPE Delete [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<Delete><Object><Key>&b;</Key></Object></Delete>"""
OUTSIDE = b'<!DOCTYPE Delete [<!ENTITY x SYSTEM "file:///etc/passwd">]><Delete><Key>&x;</Key></Delete>'


@pytest.mark.parametrize(
    "data",
    [
        BOMB,
        OUTSIDE,
        b"",
        b"<Delete>",
        b"<Other/>",
        b"<Delete>&undefined;</Delete>",
        b"<Delete>" + b"<a>" * 50 + b"</a>" * 50 + b"</Delete>",
        b"<Delete>" + b"<a/>" * 100_001 + b"</Delete>",
        b"<Delete>" + b" " * MAX_DOCUMENT + b"</Delete>",
        b"<Delete>\xff</Delete>",
    ],
)
def test_a_document_that_is_a_bomb_or_invalid_is_refused(data: bytes) -> None:
    with pytest.raises(S3Fault) as refused:
        parse_document(data, "Delete")
    assert refused.value.code == "MalformedXML"


@given(st.binary(max_size=200))
def test_any_bytes_give_a_document_or_a_refusal(data: bytes) -> None:
    for text in (data, b"<Delete>" + data + b"</Delete>"):
        try:
            assert parse_document(text, "Delete").name == "Delete"
        except S3Fault as refused:
            assert refused.code == "MalformedXML"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_text_that_is_written_is_read_again(value: str) -> None:
    written = documents.document("Delete", documents.text("Key", value))
    if not any(character < " " or character in "\x7f\ufffe\uffff" for character in value):
        assert parse_document(written, "Delete").get("Key") == value
    assert documents.element("a", "") == "<a></a>"


def test_a_long_namespace_is_not_repeated_for_each_element(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    start = documents._Reader.start

    def counted(self: documents._Reader, name: str, said: object) -> None:
        nonlocal taken
        taken += len(name)
        start(self, name, said)

    monkeypatch.setattr(documents._Reader, "start", counted)
    data = b"<s:Delete xmlns='%b' xmlns:s='%b'>%b</s:Delete>" % (b"a" * 50_000, b"b" * 50_000, b"<s:Object/><b/>" * 100)
    found = parse_document(data, "Delete")
    assert len(list(found.all("Object"))) == 100
    assert taken <= len(data)
