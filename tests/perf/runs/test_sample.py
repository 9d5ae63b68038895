"""Preparations before a sample."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from perf.runs import sample


def test_memory_when_touched_then_that_much_is_written_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tempfile.TemporaryFile
    sizes: list[int] = []

    class Noted:
        def __init__(self, **options: object) -> None:
            self._file = made(dir=tmp_path, **options)  # type: ignore[call-overload]

        def __enter__(self) -> Noted:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def write(self, data: bytes) -> None:
            self._file.write(data)
            sizes.append(len(data))

    monkeypatch.setattr(tempfile, "TemporaryFile", Noted)
    sample.touch_memory(3 * sample.PIECE)
    assert sum(sizes) == 3 * sample.PIECE
    assert list(tmp_path.iterdir()) == []
