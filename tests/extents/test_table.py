"""Tables of sequences: known answers, invalid tables, and arbitrary input. [spec extents 3]"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import ChkCap, LitCap, SliceCap, parse_cap
from grid.errors import FormatError
from grid.extents.table import HEAD, Part, PartCap, pack_table, parse_table
from grid.limits import MAX_SEQUENCE_PARTS, MAX_SEQUENCE_TABLE_SIZE
from tests.vectors.make_extents import PATH

VECTORS: dict[str, Any] = json.loads(PATH.read_text())

PACK = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=5000)


@pytest.mark.parametrize("row", VECTORS["tables"], ids=lambda row: str(row["size"]))
def test_parse_table_when_it_is_right_gives_its_parts(row: dict[str, Any]) -> None:
    data = row["table"].encode()
    table = parse_table(data, row["size"])
    expected = [(parse_cap(cap), offset, length) for cap, offset, length in row["parts"]]
    assert [(part.cap, part.offset, part.length) for part in table] == expected
    assert pack_table(list(table)) == data


@pytest.mark.parametrize("row", VECTORS["wrong_tables"], ids=lambda row: row["why"])
def test_parse_table_when_it_is_wrong_is_refused_in_one_clear_line(row: dict[str, Any]) -> None:
    with pytest.raises(FormatError) as caught:
        parse_table(row["table"].encode(), row["size"])
    assert "\n" not in str(caught.value)
    assert "URI:" not in str(caught.value)


def test_parse_table_when_it_has_a_million_entries_stops_at_its_bounds() -> None:
    line = b"URI:LIT:me 0 1\n"
    with pytest.raises(FormatError, match=f"more than {MAX_SEQUENCE_PARTS} parts"):
        parse_table(HEAD + line * 1_000_000, 1_000_000)
    with pytest.raises(FormatError, match="more than the limit"):
        parse_table(HEAD + bytes(MAX_SEQUENCE_TABLE_SIZE), 1)
    most = parse_table(HEAD + line * MAX_SEQUENCE_PARTS, MAX_SEQUENCE_PARTS)
    assert len(most) == MAX_SEQUENCE_PARTS
    assert len(most.files()) == 1


def test_parse_table_when_it_is_cut_anywhere_is_refused() -> None:
    row = VECTORS["tables"][2]
    data = row["table"].encode()
    for end in range(len(data)):
        with pytest.raises(FormatError):
            parse_table(data[:end], row["size"])
    with pytest.raises(FormatError):
        parse_table(data + b"\n", row["size"])


def part_of(cap: PartCap) -> st.SearchStrategy[Part]:
    return st.integers(0, cap.size - 1).flatmap(
        lambda offset: st.integers(1, cap.size - offset).map(lambda length: Part(cap=cap, offset=offset, length=length))
    )


caps: st.SearchStrategy[PartCap] = st.one_of(
    st.binary(min_size=1, max_size=55).map(lambda data: LitCap(data=data)),
    st.just(PACK),
    st.integers(0, 4000).flatmap(
        lambda offset: st.integers(1, 1000).map(
            lambda length: SliceCap(pack=PACK, offset=offset, length=length, key=bytes(16))
        )
    ),
)


@given(st.lists(caps.flatmap(part_of), min_size=1, max_size=12), st.data())
def test_between_when_any_range_is_asked_for_gives_exactly_its_parts(parts: list[Part], data: st.DataObject) -> None:
    table = parse_table(pack_table(parts), sum(part.length for part in parts))
    assert list(table) == parts
    whole = [(part.cap, part.offset + byte) for part in parts for byte in range(part.length)]
    start = data.draw(st.integers(0, table.size - 1))
    stop = data.draw(st.integers(start + 1, table.size))
    found = list(table.between(start, stop))
    assert all(part.length > 0 for part in found)
    assert [(part.cap, part.offset + byte) for part in found for byte in range(part.length)] == whole[start:stop]


pieces = st.one_of(
    st.sampled_from([HEAD, b" ", b"\n", b"URI:LIT:nbswy3dp", b" 0 5\n", b"URI:LIT:nbswy3dp 0 5\n", b"0", b"5"]),
    st.sampled_from([row["cap"].encode() for row in VECTORS["caps"]]),
    st.binary(max_size=8),
)


@given(st.lists(pieces, max_size=12).map(b"".join), st.integers(0, 20))
def test_parse_table_when_given_anything_raises_nothing_but_format_errors(data: bytes, size: int) -> None:
    try:
        table = parse_table(data, size)
    except FormatError:
        return
    assert pack_table(list(table)) == data


def test_pack_table_when_parts_are_none_of_a_table_is_refused() -> None:
    for parts in ([], [Part(cap=PACK, offset=5000, length=1)], [Part(cap=PACK, offset=0, length=0)]):
        with pytest.raises(FormatError):
            pack_table(parts)
