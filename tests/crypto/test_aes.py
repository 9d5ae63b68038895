"""AES in counter mode: known answers, any offset, any division of the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.crypto.aes import CtrCipher, crypt_once
from tests.vectors.make_codec import PATH

ROWS: list[dict[str, Any]] = json.loads(PATH.read_text())["aes"]


def test_keystream_when_known_is_that_of_the_specification() -> None:
    assert crypt_once(bytes(range(16)), bytes(16)).hex() == "c6a13b37878f5b826f4f8162a1c8d879"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["offset"]))
def test_keystream_when_started_anywhere_is_that_of_the_vectors(row: dict[str, Any]) -> None:
    cipher = CtrCipher(bytes.fromhex(row["key"]), row["offset"])
    assert cipher.crypt(bytes(40)).hex() == row["keystream"]


@given(st.binary(min_size=16, max_size=16), st.integers(0, 400), st.lists(st.binary(max_size=70)))
def test_cipher_when_text_comes_in_pieces_gives_the_pieces_of_the_whole(
    key: bytes, offset: int, pieces: list[bytes]
) -> None:
    whole = crypt_once(key, bytes(offset) + b"".join(pieces))[offset:]
    cipher, twin = CtrCipher(key, offset), CtrCipher(key, offset)
    assert b"".join(cipher.crypt(piece) for piece in pieces) == whole
    target = memoryview(bytearray(len(whole) + 2))
    place = 1
    for piece in pieces:
        twin.crypt_into(memoryview(piece), target[place : place + len(piece)])
        place += len(piece)
    assert bytes(target) == b"\x00" + whole + b"\x00"
    targets = [memoryview(bytearray(len(piece))) for piece in pieces]
    CtrCipher(key, offset).crypt_each(map(memoryview, pieces), targets)
    assert b"".join(targets) == whole
    assert CtrCipher(key, offset).crypt(whole) == b"".join(pieces)


def test_cipher_when_source_and_target_are_the_same_works_in_place() -> None:
    text = bytearray(range(251))
    CtrCipher(bytes(16), 5).crypt_into(text, text)
    assert bytes(text) == CtrCipher(bytes(16), 5).crypt(bytes(range(251)))


@pytest.mark.parametrize("targets", [[3, 1], [2, 1], [4, 1], [3], [3, 1, 1]])
def test_cipher_when_sources_do_not_fit_their_targets_refuses(targets: list[int]) -> None:
    rooms = [memoryview(bytearray(size)) for size in targets]
    if targets == [3, 1]:
        CtrCipher(bytes(16)).crypt_each([b"abc", b"d"], rooms)
        return
    with pytest.raises(ValueError, match=r"bytes do not go|shorter|longer"):
        CtrCipher(bytes(16)).crypt_each([b"abc", b"d"], rooms)


def test_cipher_when_arguments_are_wrong_refuses() -> None:
    for size in (0, 15, 17, 24, 32):
        with pytest.raises(ValueError, match="16 bytes"):
            CtrCipher(bytes(size))
    with pytest.raises(ValueError, match="offset 0"):
        CtrCipher(bytes(16), -1)
    for size in (9, 11):
        with pytest.raises(ValueError, match="do not go into"):
            CtrCipher(bytes(16)).crypt_into(bytes(10), bytearray(size))
