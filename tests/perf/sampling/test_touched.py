"""Memory touched before samples."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from perf.sampling import touched


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
    touched.touch_memory(3 * touched.PIECE)
    assert sum(sizes) == 3 * touched.PIECE
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, 64 << 20), (10 << 20, 124 << 20), (10**9, (64 << 20) + 6 * 10**9), (2 * 10**9, 6144 << 20)],
)
def test_memory_touched_for_an_operation_is_six_times_its_bytes_within_limits(
    size: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(touched, "LEAST_TOUCHED", 64 << 20)
    monkeypatch.setattr(touched, "touch_memory", sizes.append)
    monkeypatch.setattr(touched, "total_memory", lambda: 64 << 30)
    touched.touch_for(size)
    assert sizes == [expected]


def test_no_more_than_a_quarter_of_the_memory_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(touched, "touch_memory", sizes.append)
    monkeypatch.setattr(touched, "total_memory", lambda: 4 << 30)
    touched.touch_for(10**9)
    assert sizes == [1 << 30]
    monkeypatch.undo()
    assert touched.total_memory() > 1 << 28
