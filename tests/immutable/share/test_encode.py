"""The encoder: blocks, leaves, trailers, and how a repair stores the original extension block."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.codec.merkle import build_tree
from grid.codec.netstring import pack_netstring
from grid.crypto.aes import CtrCipher
from grid.crypto.hashing import tagged_hash
from grid.errors import FormatError, IntegrityError
from grid.immutable.share import encode
from grid.immutable.share.encode import Encoder, FinishedEncoding
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.ueb import parse_ueb, ueb_hash
from tests.support.share_vectors import verify_share
from tests.support.shares import collect_shares, convergent_key, decode_shares, encode_text

KEY = bytes(range(16))
SEGMENT = 120
SIZES = [1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT, 7 * SEGMENT + 5]
ENCODINGS = [(1, 1), (1, 4), (3, 10), (5, 5), (20, 60), (120, 256)]


def make_text(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def make_geometry(size: int, k: int = 3, n: int = 10) -> Geometry:
    return Geometry.of_file(size, k, n, SEGMENT)


def make_encoder(size: int = 1000, key: bytes | None = KEY) -> Encoder:
    return Encoder(make_geometry(size), key)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("k", "n"), ENCODINGS)
def test_text_decodes_from_the_first_and_from_the_last_shares(size: int, k: int, n: int) -> None:
    text, geometry = make_text(size), make_geometry(size, k, n)
    shares = dict(enumerate(encode_text(text, KEY, geometry).shares))
    for numbers in (range(k), range(n - k, n)):
        assert decode_shares({number: shares[number] for number in numbers}, geometry, KEY) == text


@given(st.data())
def test_text_decodes_from_any_k_shares_of_any_encoding(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 20))
    k = data.draw(st.integers(1, n))
    text = data.draw(st.binary(min_size=1, max_size=700))
    geometry = Geometry.of_file(len(text), k, n, data.draw(st.integers(1, 300)))
    encoded = encode_text(text, KEY, geometry, batch_count=data.draw(st.integers(1, 5)))
    numbers = data.draw(st.permutations(range(n)))[:k]
    assert decode_shares({number: encoded.shares[number] for number in numbers}, geometry, KEY) == text


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("k", "n"), ENCODINGS)
def test_every_section_of_every_share_is_what_the_cap_vouches_for(size: int, k: int, n: int) -> None:
    geometry = make_geometry(size, k, n)
    encoded = encode_text(make_text(size), KEY, geometry)
    layout = encoded.finished.layout
    for share_number, share in enumerate(encoded.shares):
        assert verify_share(encoded.cap, share_number, share) == geometry
        assert len(share) == encoded.finished.share_size
        assert share[layout.plaintext_tree_offset : layout.crypttext_tree_offset] == bytes(geometry.tree_size)


@pytest.mark.parametrize("size", SIZES)
def test_crypttext_hashes_are_those_of_the_unpadded_ciphertext(size: int) -> None:
    text, geometry = make_text(size), make_geometry(size)
    encoded = encode_text(text, KEY, geometry)
    ciphertext = CtrCipher(KEY).crypt(text)
    segments = [ciphertext[start : start + SEGMENT] for start in range(0, size, SEGMENT)]
    tree = build_tree(b"".join(tagged_hash(b"allmydata_crypttext_segment_v1", segment) for segment in segments))
    layout = encoded.finished.layout
    assert encoded.shares[7][layout.crypttext_tree_offset : layout.block_tree_offset] == tree
    assert parse_ueb(encoded.finished.ueb).crypttext_hash == tagged_hash(b"allmydata_crypttext_v1", ciphertext)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("batch_count", [1, 2, 100])
def test_shares_are_the_same_however_the_text_is_cut_into_batches(size: int, batch_count: int) -> None:
    text, geometry = make_text(size), make_geometry(size)
    whole = encode_text(text, KEY, geometry)
    assert encode_text(text, KEY, geometry, batch_count=batch_count).shares == whole.shares


@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 3), (3, 10), (10, 10)])
@pytest.mark.parametrize("size", [1, 56, SEGMENT, SEGMENT + 1, 3 * SEGMENT - 1])
def test_shares_are_the_same_whatever_their_buffers_held_before(
    monkeypatch: pytest.MonkeyPatch, size: int, k: int, n: int
) -> None:
    made = []
    for fill in (b"\0", b"\xa5"):
        monkeypatch.setattr(encode, "unwiped", lambda size, fill=fill: memoryview(bytearray(fill * size)))
        made.append(encode_text(make_text(size), KEY, make_geometry(size, k, n), batch_count=2).shares)
    assert made[0] == made[1]


def test_batches_encoded_on_several_threads_out_of_order_give_the_same_shares() -> None:
    encoder, text = make_encoder(), make_text(1000)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(encoder.encode_segments, i, text[120 * i : 120 * i + 120]) for i in reversed(range(9))]
        for future in reversed(futures):
            encoder.absorb(future.result())
    expected = encode_text(text, KEY, encoder.geometry)
    finished = encoder.finish()
    assert finished.ueb_hash == expected.cap.ueb_hash
    assert join_trailer(finished, 4) == expected.shares[4][finished.trailer_offset :]


def join_trailer(finished: FinishedEncoding, share_number: int) -> bytes:
    return b"".join(finished.trailer(share_number))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("k", "n"), ENCODINGS)
def test_ciphertext_encoded_without_a_key_gives_the_shares_of_its_plaintext(size: int, k: int, n: int) -> None:
    text, geometry = make_text(size), make_geometry(size, k, n)
    ciphertext = CtrCipher(KEY).crypt(text)
    assert collect_shares(Encoder(geometry, None), KEY, ciphertext).shares == encode_text(text, KEY, geometry).shares


@pytest.mark.parametrize("key", [None, KEY])
def test_input_is_left_as_it_was_and_taken_from_any_buffer(key: bytes | None) -> None:
    text = make_text(1000)
    mutable = bytearray(text)
    batch = make_encoder(key=key).encode_segments(0, memoryview(mutable))
    assert mutable == text
    assert batch.pieces(9) == make_encoder(key=key).encode_segments(0, text).pieces(9)
    assert bytes(batch.ciphertext) == (text if key is None else CtrCipher(KEY).crypt(text))


def test_ciphertext_given_is_not_copied_but_for_a_padded_tail() -> None:
    ciphertext = bytearray(make_text(1000))
    batch = make_encoder(key=None).encode_segments(0, ciphertext)
    assert batch.ciphertext.obj is ciphertext
    assert [block.obj is ciphertext for block in batch.blocks(0)] == [True] * 8 + [False]


def test_blocks_of_a_share_are_views_and_its_pieces_are_as_few_as_can_be() -> None:
    batch = make_encoder().encode_segments(0, make_text(1000))
    assert (batch.data_offset, batch.data_size) == (0, 8 * 40 + 14)
    for share_number in range(10):
        blocks, pieces = batch.blocks(share_number), batch.pieces(share_number)
        assert [len(block) for block in blocks] == [40] * 8 + [14]
        assert b"".join(blocks) == b"".join(pieces)
        assert len(pieces) == (9 if share_number < 3 else 1)
    assert len({id(batch.pieces(share_number)[0].obj) for share_number in range(3, 10)}) == 1


def test_pieces_of_a_one_of_n_file_are_its_ciphertext() -> None:
    geometry = make_geometry(1000, 1, 2)
    batch = Encoder(geometry, KEY).encode_segments(0, make_text(1000))
    assert batch.pieces(0) == [batch.ciphertext]
    assert batch.pieces(1) == [batch.ciphertext]


def test_batch_in_the_middle_says_where_its_blocks_belong() -> None:
    batch = make_encoder().encode_segments(2, make_text(1000)[240:480])
    assert (batch.first_segment, batch.segment_count, batch.data_offset, batch.data_size) == (2, 2, 80, 80)


@pytest.mark.parametrize("share_number", [-1, 10])
def test_pieces_of_a_share_that_is_not_there_are_refused(share_number: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        make_encoder().encode_segments(0, make_text(1000)).pieces(share_number)


@pytest.mark.parametrize(
    ("first_segment", "length"), [(0, 0), (0, 119), (0, 121), (0, 1001), (8, 41), (8, 39), (9, 1), (-1, 120)]
)
def test_text_that_is_not_whole_segments_of_the_file_is_refused(first_segment: int, length: int) -> None:
    with pytest.raises(ValueError, match="segment"):
        make_encoder().encode_segments(first_segment, bytes(length))


def test_batches_absorbed_out_of_order_are_refused() -> None:
    encoder, text = make_encoder(), make_text(1000)
    first, second = encoder.encode_segments(0, text[:240]), encoder.encode_segments(2, text[240:])
    with pytest.raises(ValueError, match="segment 2 came where segment 0 belongs"):
        encoder.absorb(second)
    encoder.absorb(first)
    with pytest.raises(ValueError, match="segment 0 came where segment 2 belongs"):
        encoder.absorb(first)
    encoder.absorb(second)
    assert encoder.finish().ueb_hash == encode_text(text, KEY, encoder.geometry).cap.ueb_hash


def test_finishing_before_the_last_segment_is_refused() -> None:
    encoder = make_encoder()
    encoder.absorb(encoder.encode_segments(0, make_text(960)))
    with pytest.raises(ValueError, match="8 of 9 segments"):
        encoder.finish()


def test_share_size_is_known_before_anything_is_encoded() -> None:
    encoder = make_encoder()
    size = encoder.share_size
    assert {len(share) for share in collect_shares(encoder, KEY, make_text(1000)).shares} == {size}


def test_repair_stores_the_original_extension_block_byte_for_byte() -> None:
    text, geometry = make_text(1000), make_geometry(1000)
    ueb = parse_ueb(encode_text(text, KEY, geometry).finished.ueb)
    original = b"".join(
        name + b":" + pack_netstring(value)
        for name, value in [
            (b"share_root_hash", ueb.share_root_hash),
            (b"segment_size", b"120"),
            (b"future", b"field"),
            (b"crypttext_root_hash", ueb.crypttext_root_hash),
        ]
    )
    encoded = encode_text(text, KEY, geometry, original_ueb=original)
    assert encoded.cap.ueb_hash == ueb_hash(original)
    assert {share[-len(original) :] for share in encoded.shares} == {original}
    for share_number, share in enumerate(encoded.shares):
        verify_share(encoded.cap, share_number, share)


def test_repair_that_made_other_shares_than_the_originals_is_refused() -> None:
    text, geometry = make_text(1000), make_geometry(1000)
    original = encode_text(text, KEY, geometry).finished.ueb
    with pytest.raises(IntegrityError):
        encode_text(text[:-1] + b"!", KEY, geometry, original_ueb=original)


def test_repair_with_an_extension_block_of_another_segment_size_is_refused() -> None:
    text = make_text(50)
    original = encode_text(text, KEY, Geometry(size=50, k=3, n=10, segment_size=300)).finished.ueb
    with pytest.raises(IntegrityError):
        encode_text(text, KEY, Geometry.of_file(50, 3, 10), original_ueb=original)


@pytest.mark.parametrize("damage", [b"", b"junk"])
def test_repair_with_an_invalid_extension_block_is_refused(damage: bytes) -> None:
    with pytest.raises(FormatError):
        encode_text(make_text(1000), KEY, make_geometry(1000), original_ueb=damage)


def test_convergent_key_is_the_known_one_and_depends_on_every_parameter() -> None:
    text, secret = b"a" * 56, b"a" * 16
    key = convergent_key(text, secret, Geometry.of_file(56, 3, 10))
    assert key.hex() == "380ff65ec57c08c67d0219f67b481d28"
    others = [
        convergent_key(text, b"", Geometry.of_file(56, 3, 10)),
        convergent_key(text, secret, Geometry.of_file(56, 3, 11)),
        convergent_key(text, secret, Geometry.of_file(56, 2, 10)),
        convergent_key(text, secret, Geometry.of_file(56, 3, 10, 30)),
        convergent_key(b"b" + text[1:], secret, Geometry.of_file(56, 3, 10)),
    ]
    assert len({key, *others}) == 6


def test_secrets_do_not_show_in_reprs() -> None:
    encoder = make_encoder()
    batch = encoder.encode_segments(0, make_text(1000))
    encoder.absorb(batch)
    assert KEY.hex() not in repr(encoder.finish()) + repr(batch) + repr(encoder)
    assert len(repr(batch)) < 300
