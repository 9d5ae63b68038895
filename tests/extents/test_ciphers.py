"""The encryption of files in a pack: known answers. [spec extents 1, 7]"""

from __future__ import annotations

import json
from typing import Any

from grid.extents.ciphers import decrypt_slice, encrypt_slice, slice_key
from tests.vectors.make_extents import PATH

PACK: dict[str, Any] = json.loads(PATH.read_text())["pack"]


def test_a_pack_when_made_of_known_files_has_the_known_bytes() -> None:
    pieces = []
    for row in PACK["files"]:
        text = bytes.fromhex(row["plaintext"])
        key = slice_key(bytes.fromhex(PACK["secret"]), text)
        assert key.hex() == row["key"]
        pieces.append(encrypt_slice(key, text))
        for offset in (0, 1, 15, 16, 17, len(text)):
            assert decrypt_slice(key, pieces[-1][offset:], offset) == text[offset:]
    assert b"".join(pieces).hex() == PACK["pack"]


def test_slice_key_when_secret_or_contents_differ_differs() -> None:
    keys = {slice_key(secret, text) for secret in (b"", b"a", b"b") for text in (b"x", b"y", b"")}
    assert len(keys) == 9
