"""The library for multi-buffer hashing: loading, checking and skipping it; Merkle tree rows; its C declarations."""

from __future__ import annotations

import ast
import shutil
from hashlib import sha256
from pathlib import Path
from random import Random

import cffi  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.crypto import multi_buffer as module
from grid.crypto import multi_buffer_declarations
from grid.crypto.multi_buffer import MultiBufferLibrary, multi_buffer, use_multi_buffer


def libraries() -> list[MultiBufferLibrary]:
    """The library of this machine; none only where there is no compiler, or no SHA instruction."""
    found = multi_buffer()
    if found is None:
        assert shutil.which("cc") is None or "sha_ni" not in Path("/proc/cpuinfo").read_text()
        return []
    return [found]


def test_library_when_passed_over_is_not_used_until_it_is_wanted_again() -> None:
    before = libraries()
    use_multi_buffer(False)
    try:
        assert multi_buffer() is None
    finally:
        use_multi_buffer(True)
    assert len(libraries()) == len(before)


def test_library_when_it_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(OSError, match="text"):
        MultiBufferLibrary(str(tmp_path / "text.so"))
    with pytest.raises(AttributeError):
        MultiBufferLibrary("libc.so.6")


def test_library_when_it_hashes_wrongly_does_not_prove_itself() -> None:
    class Wrong(MultiBufferLibrary):
        def rows_above(self, row: object) -> bytes:
            return bytes(224)

    for _ in libraries():
        path = module._paths()[0]
        assert module._proves_itself(MultiBufferLibrary(path))
        assert not module._proves_itself(Wrong(path))


@given(st.integers(min_value=0, max_value=8), st.randoms(use_true_random=False))
def test_rows_above_a_row_are_those_of_the_specification(depth: int, random: Random) -> None:
    def parent(pair: bytes) -> bytes:
        text = b"25:Merkle tree internal node,32:" + pair[:32] + b",32:" + pair[32:] + b","
        return sha256(sha256(text).digest()).digest()

    row = leaves = random.randbytes(32 << depth)
    above = b""
    while len(row) > 32:
        row = b"".join(parent(row[start : start + 64]) for start in range(0, len(row), 64))
        above += row
    for library in libraries():
        assert library.rows_above(leaves) == above


def test_declarations_are_what_cffi_makes_of_those_in_the_text(tmp_path: Path) -> None:
    text = multi_buffer_declarations.__doc__ or ""
    builder = cffi.FFI()
    builder.cdef("\n".join(line for line in text.splitlines() if line.startswith("    ")))
    builder.set_source("made", None)
    builder.emit_python_code(str(tmp_path / "made.py"))
    calls = [node for node in ast.walk(ast.parse((tmp_path / "made.py").read_text())) if isinstance(node, ast.Call)]
    (made,) = ({str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords} for call in calls)
    right = {
        "_version": 0x2601,
        "_types": multi_buffer_declarations.TYPES,
        "_globals": multi_buffer_declarations.FUNCTIONS,
    }
    assert made == right
