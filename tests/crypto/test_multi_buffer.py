"""The library for multi-buffer hashing: loading, checking and skipping it; Merkle tree rows; its C declarations."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

import cffi  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.crypto import multi_buffer as module
from grid.crypto import multi_buffer_declarations
from grid.crypto.multi_buffer import GrowingHash, MultiBufferLibrary, grow_together, multi_buffer, use_multi_buffer


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


@given(st.lists(st.lists(st.binary(max_size=300), max_size=4), max_size=5))
def test_streams_that_grow_together_have_the_digests_of_their_messages(messages: list[list[bytes]]) -> None:
    for library in libraries():
        streams = [library.stream() for _ in messages]
        for turn in range(4):
            pairs = [
                (stream, parts[turn]) for stream, parts in zip(streams, messages, strict=True) if turn < len(parts)
            ]
            library.grow([stream for stream, _ in pairs], [part for _, part in pairs])
        for _ in range(2):  # A digest ends nothing.
            assert [library.digest(stream) for stream in streams] == [
                sha256(b"".join(parts)).digest() for parts in messages
            ]


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


@pytest.fixture(params=[True, False])
def library(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the library is used, if there is one."""
    use_multi_buffer(request.param)
    yield request.param
    use_multi_buffer(True)


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 100_000])
def test_hash_has_the_digest_of_what_it_took_in_pieces_of_any_size(size: int) -> None:
    data = os.urandom(3 * size)
    grown = GrowingHash()
    for begin in range(0, len(data), size or 1):
        grown.update(memoryview(data)[begin : begin + size])
        assert grown.digest() == sha256(data[: begin + size]).digest()
    assert grown.digest() == sha256(data).digest()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("sizes", [(), (5,), (0, 70), (1000, 64, 64, 3), (10, 100_000, 1)])
def test_hashes_that_grow_together_are_those_that_grow_alone(sizes: tuple[int, ...]) -> None:
    hashes, messages = [GrowingHash() for _ in sizes], [b"" for _ in sizes]
    for _ in range(3):
        pieces = [os.urandom(size) for size in sizes]
        grow_together(hashes, pieces)
        messages = [message + piece for message, piece in zip(messages, pieces, strict=True)]
    assert [each.digest() for each in hashes] == [sha256(message).digest() for message in messages]


def test_hashes_of_both_kinds_grow_together() -> None:
    hashes = []
    for wanted in (True, False):
        use_multi_buffer(wanted)
        hashes.append(GrowingHash())
    use_multi_buffer(True)
    grow_together(hashes, [b"a", b"b"])
    grow_together(hashes[::-1], [b"d", b"c"])
    assert [each.digest() for each in hashes] == [sha256(b"ac").digest(), sha256(b"bd").digest()]


@pytest.mark.usefixtures("library")
def test_hashes_without_as_many_pieces_are_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        grow_together([GrowingHash(), GrowingHash()], [b"a"])
