"""Encoding runs into buffers that held other bytes before."""

from __future__ import annotations

import pytest

from grid.mutable.share import blocks
from grid.mutable.share.blocks import SourceRun, encode_run
from grid.mutable.share.geometry import MDMF_VERSION, SDMF_VERSION, Geometry
from grid.ports import ShareNumber


@pytest.mark.parametrize("version", [SDMF_VERSION, MDMF_VERSION])
@pytest.mark.parametrize("size", [1, 5, 131073, 131074, 2 * 131073 - 1])
def test_run_when_its_buffer_holds_other_bytes_is_the_same(
    monkeypatch: pytest.MonkeyPatch, version: int, size: int
) -> None:
    geometry = Geometry.of_file(version, size, 3, 10)
    run = SourceRun(
        geometry=geometry,
        first_segment=0,
        segment_count=geometry.segment_count,
        text=bytes(size),
        salts=[bytes(16)] * geometry.segment_count,
        read_key=b"k" * 16,
        wanted=frozenset(map(ShareNumber, range(10))),
    )

    def filled(size: int, fill: bytes) -> tuple[memoryview, memoryview]:
        room = memoryview(bytearray(fill * size))
        return room, room

    made = []
    for fill in (b"\0", b"\xa5"):
        monkeypatch.setattr(blocks, "unwiped_string", lambda size, fill=fill: filled(size, fill))
        encoded = encode_run(run)
        made.append(({number: bytes(data) for number, data in encoded.data.items()}, encoded.leaves))
    assert made[0] == made[1]
