"""The factors of the erasure code: known answers, and zfec's own for every k."""

from __future__ import annotations

import json
from typing import Any

import pytest
import zfec

from grid.codec.galois import recovery_rows
from tests.vectors.make_codec import PATH

ROWS: list[dict[str, Any]] = json.loads(PATH.read_text())["erasure"]


def test_rows_when_known_are_those_of_the_specification() -> None:
    assert [tuple(row) for row in recovery_rows(range(2), range(2, 4))] == [(3, 2), (5, 4)]
    assert [tuple(row) for row in recovery_rows(range(3), range(3, 10))] == [
        (15, 8, 6),
        (45, 48, 28),
        (153, 224, 120),
        (11, 231, 237),
        (137, 59, 179),
        (70, 241, 182),
        (186, 217, 98),
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['k']}-of-{row['n']}")
def test_rows_when_computed_are_those_of_the_vectors(row: dict[str, Any]) -> None:
    assert [list(made) for made in recovery_rows(range(row["k"]), range(row["k"], row["n"]))] == row["rows"]


@pytest.mark.rows(40)
@pytest.mark.parametrize("k", range(1, 257))
def test_rows_when_the_code_is_widest_are_zfecs(k: int) -> None:
    # Unit vectors as runs make zfec show its matrix.
    units = tuple(bytes(j) + b"\x01" + bytes(k - 1 - j) for j in range(k))
    parity = tuple(range(k, 256))
    assert recovery_rows(range(k), parity) == (zfec.Encoder(k, 256).encode(units, parity) if parity else [])


def test_rows_when_a_wanted_block_is_at_hand_copy_it() -> None:
    assert recovery_rows([4, 1, 7], [1]) == [bytes([0, 1, 0])]
