"""Tagged hashes: known answers, and the several ways to the same hash."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.crypto.hashing import (
    LeafHasher,
    RunningHasher,
    TaggedHasher,
    hash_blocks,
    hash_name,
    tagged_hash,
    tagged_pair_hash,
)
from grid.crypto.multi_buffer import use_multi_buffer
from tests.vectors.make_codec import PATH

SIZES = st.sampled_from([0, 1, 22, 23, 30, 31, 32, 55, 56, 63, 64, 65, 119, 120, 127, 128, 1000])
ITEM = SIZES.flatmap(lambda size: st.binary(min_size=size, max_size=size)) | st.binary(max_size=300)


def both_ways(make: Callable[[], bytes]) -> bytes:
    """What is made with the library, where there is one, and without it."""
    made = make()
    use_multi_buffer(False)
    try:
        assert hash_name() == "hashlib"
        assert make() == made
    finally:
        use_multi_buffer(True)
    return made


ROWS: list[dict[str, Any]] = json.loads(PATH.read_text())["hashes"]


def test_hashes_when_known_are_those_of_the_specification() -> None:
    assert tagged_hash(b"tag", b"value").hex() == "64b0cafcfe5f99653ae63b644191c890600965073ef48bf9b24f9e623c940229"
    pair = tagged_pair_hash(b"tag", b"v1", b"v2").hex()
    assert pair == "f29709f137887151361b85d336a854a3f7795a223067bb653cd97020fe1a0dd8"


def test_block_hashes_when_known_are_those_of_the_specification() -> None:
    row = both_ways(lambda: hash_blocks([b"", b"block"]))
    assert row[:32].hex() == "64931e84fc25687f941bcdbf475517286ab6ca71e87dd64491b15b54dd06d26b"
    assert row[32:].hex() == "c20647525effa7ca811f884e2f3da2489b09e71b44d0b917c4f188e604ed0f93"
    assert hash_blocks([b"block"]) == row[32:]


def test_convergent_key_when_hashed_is_that_of_the_specification() -> None:
    tag = b"allmydata_immutable_content_to_key_with_added_secret_v1+" + b"16:" + b"a" * 16 + b"," + b"7:3,10,57,"
    key = tagged_hash(tag, b"a" * 56, 16)
    assert key.hex() == "380ff65ec57c08c67d0219f67b481d28"
    index = tagged_hash(b"allmydata_immutable_key_to_storage_index_v1", key, 16)
    assert index.hex() == "eb2d4cf71744a1169e7192d32fd9580f"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["tag"][:20])
def test_hashes_when_computed_are_those_of_the_vectors(row: dict[str, Any]) -> None:
    tag, data = bytes.fromhex(row["tag"]), bytes.fromhex(row["data"])
    assert tagged_hash(tag, data).hex() == row["hash"]
    assert tagged_hash(tag, data, 16).hex() == row["hash"][:32]
    assert tagged_pair_hash(tag, data, tag).hex() == row["pair_hash_with_tag"]
    assert tagged_pair_hash(tag, data, tag, 20).hex() == row["pair_hash_with_tag"][:40]


@given(st.binary(max_size=99), st.lists(st.binary(max_size=99)), st.integers(1, 32))
def test_hashes_when_data_comes_in_pieces_are_those_of_the_whole(tag: bytes, pieces: list[bytes], size: int) -> None:
    whole = tagged_hash(tag, b"".join(pieces), size)
    hasher = TaggedHasher(tag)
    for piece in pieces:
        hasher.digest()
        hasher.update(bytearray(piece))
    assert hasher.digest(size) == whole


@given(st.binary(max_size=130), st.lists(ITEM, max_size=9))
def test_row_of_leaves_is_the_tagged_hash_of_each(tag: bytes, items: list[bytes]) -> None:
    hasher = LeafHasher(tag)
    right = b"".join(tagged_hash(tag, item) for item in items)
    assert both_ways(lambda: hasher.hash_row([memoryview(item) for item in items])) == right
    assert b"".join(hasher.hash_of(item) for item in items) == right


@given(st.binary(max_size=130), st.lists(st.tuples(ITEM, st.lists(ITEM, max_size=4)), max_size=4))
def test_running_hash_beside_leaves_is_that_of_all_the_data(
    tag: bytes, batches: list[tuple[bytes, list[bytes]]]
) -> None:
    def run() -> bytes:
        running, hasher = RunningHasher(tag), LeafHasher(b"leaf")
        text = b""
        for data, items in batches:
            text += data
            row = running.update(data, hasher, items)
            assert row == b"".join(tagged_hash(b"leaf", item) for item in items)
            assert running.digest() == tagged_hash(tag, text)
        return running.digest()

    assert both_ways(run) == tagged_hash(tag, b"".join(data for data, _ in batches))


def test_hasher_when_copied_goes_its_own_way() -> None:
    hasher = TaggedHasher(b"tag")
    hasher.update(b"va")
    twin = hasher.copy()
    twin.update(b"lue")
    hasher.update(b"rious")
    assert twin.digest() == tagged_hash(b"tag", b"value")
    assert hasher.digest() == tagged_hash(b"tag", b"various")


def test_hasher_when_shared_by_threads_gives_each_its_hash() -> None:
    hasher = LeafHasher(b"tag")
    items = [bytes([i]) * 100_000 for i in range(50)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(hasher.hash_of, items)) == [tagged_hash(b"tag", item) for item in items]
        rows = list(pool.map(hasher.hash_row, [items[i : i + 5] for i in range(0, 50, 5)]))
    assert b"".join(rows) == b"".join(tagged_hash(b"tag", item) for item in items)


def test_pair_hash_when_the_border_moves_is_another() -> None:
    assert tagged_pair_hash(b"t", b"ab", b"c") != tagged_pair_hash(b"t", b"a", b"bc")
    assert tagged_hash(b"t", b"ab") != tagged_hash(b"ta", b"b")
