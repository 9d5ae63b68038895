"""Where the sections of a share lie, its header and its share hash chain."""

from __future__ import annotations

import struct

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError, UnknownVersionError
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.layout import (
    MAX_CHAIN_SIZE,
    MAX_HEADER_SIZE,
    ShareLayout,
    chain_order,
    guess,
    pack_chain,
    pack_header,
    pack_ueb_length,
    parse_chain,
    parse_header,
    parse_ueb_length,
    plan_layout,
    share_size,
)
from grid.immutable.share.ueb import ueb_size

KNOWN_HEADER = bytes.fromhex("000000010000001300000013000000240000003700000057000000770000009700000141")
LARGE = Geometry.of_file(12875464372, 3, 10)


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    n = draw(st.integers(1, 256))
    k = draw(st.integers(1, n))
    return Geometry.of_file(draw(st.integers(1, 2**55)), k, n, draw(st.integers(2**10, 2**28)))


def pack_words(version: int, *words: int) -> bytes:
    return struct.pack(">9L" if version == 1 else ">L8Q", version, *words)


def test_header_of_the_known_file_has_the_known_bytes() -> None:
    geometry = Geometry.of_file(56, 3, 10)
    layout = plan_layout(geometry)
    assert pack_header(layout, geometry) == KNOWN_HEADER
    assert layout == ShareLayout(
        version=1,
        data_offset=36,
        plaintext_tree_offset=55,
        crypttext_tree_offset=87,
        block_tree_offset=119,
        chain_offset=151,
        ueb_offset=321,
    )
    assert share_size(layout, 308) == 633


@pytest.mark.parametrize(
    ("k", "n", "maximum", "smallest"),
    [(3, 10, 2**20, 12875464372), (3, 10, 2**17, 12809404084), (1, 1, 2**20, 4294180890)],
)
def test_version_two_begins_at_the_known_file_sizes(k: int, n: int, maximum: int, smallest: int) -> None:
    assert plan_layout(Geometry.of_file(smallest - 1, k, n, maximum)).version == 1
    assert plan_layout(Geometry.of_file(smallest, k, n, maximum)).version == 2


def test_file_too_large_for_either_version_is_refused() -> None:
    with pytest.raises(FormatError):
        plan_layout(Geometry.of_file(2**63, 1, 1, 1))


@given(geometries())
def test_sections_of_any_share_follow_each_other_without_gap(geometry: Geometry) -> None:
    layout = plan_layout(geometry)
    assert layout.data_offset == (36 if layout.version == 1 else 68)
    assert layout.plaintext_tree_offset == layout.data_offset + geometry.data_size
    assert layout.crypttext_tree_offset == layout.plaintext_tree_offset + geometry.tree_size
    assert layout.block_tree_offset == layout.crypttext_tree_offset + geometry.tree_size
    assert layout.chain_offset == layout.block_tree_offset + geometry.tree_size
    assert layout.chain_size == 34 * geometry.chain_entry_count
    assert share_size(layout, 300) == layout.ueb_offset + (4 if layout.version == 1 else 8) + 300


@given(geometries())
def test_header_parsed_back_is_the_layout_packed(geometry: Geometry) -> None:
    layout = plan_layout(geometry)
    header = pack_header(layout, geometry)
    assert len(header) == layout.data_offset <= MAX_HEADER_SIZE
    assert parse_header(header) == layout
    assert parse_header(memoryview(bytearray(header + b"blocks"))) == layout


@pytest.mark.parametrize("geometry", [Geometry.of_file(56, 3, 10), LARGE])
def test_header_cut_short_anywhere_is_refused(geometry: Geometry) -> None:
    header = pack_header(plan_layout(geometry), geometry)
    for length in range(len(header)):
        with pytest.raises(FormatError) as caught:
            parse_header(header[:length])
        assert not isinstance(caught.value, UnknownVersionError)


@pytest.mark.parametrize("version", [3, 255])
def test_version_not_known_is_distinguished_from_damage(version: int) -> None:
    with pytest.raises(UnknownVersionError):
        parse_header(struct.pack(">L", version) + KNOWN_HEADER[4:])


@pytest.mark.parametrize("version", [0, 256, 2**32 - 1])
def test_version_that_no_format_will_ever_have_is_damage(version: int) -> None:
    with pytest.raises(FormatError) as caught:
        parse_header(struct.pack(">L", version) + KNOWN_HEADER[4:])
    assert not isinstance(caught.value, UnknownVersionError)


def test_block_and_data_size_of_a_header_are_not_looked_at() -> None:
    assert parse_header(KNOWN_HEADER[:4] + b"\xff" * 8 + KNOWN_HEADER[12:]) == parse_header(KNOWN_HEADER)


@pytest.mark.parametrize("version", [1, 2])
def test_sections_moved_apart_and_out_of_order_are_read_where_they_are(version: int) -> None:
    layout = parse_header(pack_words(version, 19, 19, 5000, 0, 100, 300, 332, 502))
    assert (layout.data_offset, layout.crypttext_tree_offset, layout.ueb_offset) == (5000, 100, 502)


@pytest.mark.parametrize(
    "offsets",
    [
        (36, 55, 87, 119, 152, 322),
        (36, 55, 87, 119, 87, 257),
        (36, 55, 87, 119, 151, 322),
        (36, 55, 87, 119, 151, 117),
        (36, 55, 87, 119, 151, 151 + MAX_CHAIN_SIZE + 34),
        (35, 55, 87, 119, 151, 321),
        (36, 55, 0, 119, 151, 321),
        (36, 55, 87, 0, 32, 66),
    ],
)
def test_offsets_that_no_share_can_have_are_refused(offsets: tuple[int, ...]) -> None:
    with pytest.raises(FormatError):
        parse_header(pack_words(1, 19, 19, *offsets))


@pytest.mark.parametrize("position", range(6))
def test_offset_beyond_any_disk_is_refused(position: int) -> None:
    offsets = [68, 87, 119, 151, 183, 353]
    parse_header(pack_words(2, 19, 19, *offsets))
    offsets[position] += 2**63 + 2**63 % 34
    with pytest.raises(FormatError):
        parse_header(pack_words(2, 19, 19, *offsets))


@given(st.binary(max_size=80), st.sampled_from([b"", b"\0\0\0\1", b"\0\0\0\2"]))
def test_arbitrary_bytes_parse_or_are_refused_with_a_format_error(data: bytes, start: bytes) -> None:
    try:
        layout = parse_header(start + data)
    except FormatError:
        return
    assert 0 <= layout.chain_size <= MAX_CHAIN_SIZE


@pytest.mark.parametrize(("geometry", "width"), [(Geometry.of_file(56, 3, 10), 4), (LARGE, 8)])
def test_length_of_the_extension_block_has_the_width_of_the_version(geometry: Geometry, width: int) -> None:
    layout = plan_layout(geometry)
    raw = pack_ueb_length(layout, 308)
    assert raw == (308).to_bytes(width, "big")
    assert parse_ueb_length(layout, raw + b"more") == 308
    with pytest.raises(FormatError):
        parse_ueb_length(layout, raw[:-1])


@pytest.mark.parametrize("length", [0, 2000, 2**32 - 1])
def test_length_no_extension_block_can_have_is_refused(length: int) -> None:
    with pytest.raises(FormatError):
        parse_ueb_length(plan_layout(Geometry.of_file(56, 3, 10)), length.to_bytes(4, "big"))


@pytest.mark.parametrize(
    ("n", "share_number", "order"),
    [
        (1, 0, [0]),
        (5, 0, [8, 2, 4, 7]),
        (8, 7, [1, 5, 13, 14]),
        (10, 0, [2, 4, 8, 15, 16]),
        (20, 0, [32, 2, 4, 8, 16, 31]),
        (20, 19, [1, 6, 12, 49, 50, 23]),
        (100, 57, [2, 3, 9, 46, 21, 183, 184, 92]),
        (256, 0, [256, 32, 64, 128, 4, 2, 8, 16, 255]),
        (256, 255, [509, 1, 5, 13, 61, 125, 253, 29, 510]),
    ],
)
def test_chain_is_written_in_the_known_order(n: int, share_number: int, order: list[int]) -> None:
    assert chain_order(share_number, n) == order


@given(st.data())
def test_chain_parsed_back_has_the_siblings_and_the_leaf(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 256))
    share_number = data.draw(st.integers(0, n - 1))
    width = 2 ** (n - 1).bit_length()
    nodes = [number.to_bytes(32, "big") for number in range(2 * width - 1)]
    chain = parse_chain(pack_chain(share_number, n, nodes))
    assert len(chain) == width.bit_length()
    assert width - 1 + share_number in chain
    assert all(chain[number] == nodes[number] for number in chain)
    assert n == 1 or 0 not in chain


def test_repeated_node_of_a_chain_counts_with_its_last_hash() -> None:
    first, last = b"\0\5" + b"a" * 32, b"\0\5" + b"z" * 32
    assert parse_chain(first + last) == {5: b"z" * 32}


@pytest.mark.parametrize("size", [1, 33, 35, 67, MAX_CHAIN_SIZE + 34])
def test_chain_of_impossible_size_is_refused(size: int) -> None:
    with pytest.raises(FormatError):
        parse_chain(bytes(size))


def test_empty_chain_has_no_nodes() -> None:
    assert parse_chain(b"") == {}


@given(geometries())
def test_guess_of_a_file_written_with_the_default_segment_size_is_exact(drawn: Geometry) -> None:
    geometry = Geometry.of_file(drawn.size, drawn.k, drawn.n)
    guessed = guess(drawn.size, drawn.k, drawn.n)
    assert guessed.geometry == geometry
    assert guessed.layout == plan_layout(geometry)
    assert guessed.ueb_size == ueb_size(geometry)
    assert guessed.share_size == share_size(guessed.layout, guessed.ueb_size)


def test_guess_for_an_older_writer_differs_by_its_segment_size_only_in_the_trees() -> None:
    new, old = guess(10**7, 3, 10), guess(10**7, 3, 10, 131072)
    assert old.layout == evolve(
        plan_layout(old.geometry),
        data_offset=new.layout.data_offset,
        plaintext_tree_offset=new.layout.crypttext_tree_offset - new.geometry.tree_size,
    )
    assert old.geometry.segment_count > new.geometry.segment_count
