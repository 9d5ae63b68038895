"""Finding ISA-L, and the products it makes."""

from __future__ import annotations

import ast
import zlib
from pathlib import Path

import cffi  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.codec import isal, isal_declarations
from grid.codec.isal import IsalLibrary, load_isal


def test_load_when_pyeclib_is_installed_gives_its_library_first() -> None:
    assert "pyeclib" in next(load_isal()).path


def test_load_when_nothing_can_be_loaded_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isal, "_bundled_paths", lambda: ["/nonexistent/libisal.so", "libm.so.6"])
    assert not [library for library in load_isal() if "nonexistent" in library.path or "libm" in library.path]


def test_library_when_the_file_is_another_is_refused() -> None:
    with pytest.raises(OSError, match="nonexistent"):
        IsalLibrary("/nonexistent/libisal.so")
    with pytest.raises(AttributeError):
        IsalLibrary("libm.so.6")


def test_multiply_when_the_counts_do_not_fit_the_matrix_refuses() -> None:
    library = next(load_isal())
    matrix = library.make_tables([b"\x01\x02"])
    target = memoryview(bytearray(4))
    for sources, targets, size in (([b"abcd"], [target], 4), ([b"abcd"] * 2, [], 4), ([b"abcd"] * 2, [target], 0)):
        with pytest.raises(ValueError, match="fit the matrix"):
            library.multiply(size, matrix, sources, targets)
    library.multiply(4, matrix, [b"abcd", bytes(4)], [target])
    assert bytes(target) == b"abcd"


@given(rows=st.integers(1, 20), columns=st.integers(1, 20), size=st.integers(1, 300), strip=st.integers(1, 3000))
def test_multiply_when_cut_into_strips_makes_what_row_after_row_makes(
    rows: int, columns: int, size: int, strip: int
) -> None:
    library = next(load_isal())
    matrix = [bytes((7 * row + 3 * column) % 255 + 1 for column in range(columns)) for row in range(rows)]
    sources = [bytes((5 * column + place) % 251 for place in range(size)) for column in range(columns)]
    right, made = ([memoryview(bytearray(size)) for _ in range(rows)] for _ in range(2))
    for row, target in zip(matrix, right, strict=True):
        library.multiply(size, library.make_tables([row]), sources, [target])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isal, "_STRIP_BYTES", strip)
        library.multiply(size, library.make_tables(matrix), sources, made)
    assert made == right


@given(st.binary(max_size=5000), st.integers(0, 100))
def test_crc32_is_that_of_zlib(data: bytes, offset: int) -> None:
    library = next(load_isal())
    assert library.crc32(data) == zlib.crc32(data)
    assert library.crc32(memoryview(data)[offset:]) == zlib.crc32(data[offset:])


def test_declarations_are_what_cffi_makes_of_those_in_the_text(tmp_path: Path) -> None:
    text = isal_declarations.__doc__ or ""
    builder = cffi.FFI()
    builder.cdef("\n".join(line for line in text.splitlines() if line.startswith(("    void ", "    uint32_t "))))
    builder.set_source("made", None)
    builder.emit_python_code(str(tmp_path / "made.py"))
    calls = [node for node in ast.walk(ast.parse((tmp_path / "made.py").read_text())) if isinstance(node, ast.Call)]
    (made,) = ({str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords} for call in calls)
    assert made == {"_version": 0x2601, "_types": isal_declarations.TYPES, "_globals": isal_declarations.FUNCTIONS}
