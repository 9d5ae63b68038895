"""Room for bytes that are written before they are read: what the system gives, not wiped first.

What stands in it may be anything that this process has held, keys among them: every byte of it must be written
before it goes anywhere.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import _cffi_backend  # type: ignore[import-untyped]

from grid.crypto.buffer import Buffer

_ffi = _cffi_backend.FFI()
_allocate = _ffi.new_allocator(should_clear_after_alloc=False)


def _find_string_maker() -> Callable[[None, int], bytes] | None:
    """CPython's way to make a byte string that is filled afterwards; None elsewhere."""
    if sys.implementation.name != "cpython":
        return None
    make = ctypes.pythonapi.PyBytes_FromStringAndSize
    make.argtypes, make.restype = (ctypes.c_char_p, ctypes.c_ssize_t), ctypes.py_object
    found: Callable[[None, int], bytes] = make
    return found


_make_string = _find_string_maker()


def unwiped(size: int) -> memoryview:
    """Writable room of that size, all of which the caller writes."""
    return memoryview(_ffi.buffer(_allocate("char[]", size), size)).cast("B") if size else memoryview(bytearray())


def unwiped_string(size: int) -> tuple[Buffer, memoryview]:
    """A byte string of that size, and the view which writes all of it before anybody else sees the string.

    What asks for byte strings, as Foolscap does, need not copy it then. Without CPython's way to make one, the first is the
    view as well.
    """
    if _make_string is None or not size:
        room = unwiped(size)
        return room, room
    string = _make_string(None, size)
    return string, memoryview(_ffi.buffer(_ffi.from_buffer("char[]", string), size)).cast("B")
