"""Uninitialized buffers, for bytes that are written before they are read.

A new buffer may contain anything from this process's memory, keys included: write every byte of it before you pass it
on.
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
    """CPython's function that makes a byte string to be filled later; None on other interpreters."""
    if sys.implementation.name != "cpython":
        return None
    make = ctypes.pythonapi.PyBytes_FromStringAndSize
    make.argtypes, make.restype = (ctypes.c_char_p, ctypes.c_ssize_t), ctypes.py_object
    found: Callable[[None, int], bytes] = make
    return found


_make_string = _find_string_maker()


def unwiped(size: int) -> memoryview:
    """A writable buffer of `size` bytes; the caller must write all of them."""
    return memoryview(_ffi.buffer(_allocate("char[]", size), size)).cast("B") if size else memoryview(bytearray())


def unwiped_string(size: int) -> tuple[Buffer, memoryview]:
    """A byte string of `size` bytes, and a view through which the caller must fill it before anyone else sees it.

    This saves a copy for Foolscap, which accepts only byte strings. On interpreters other than CPython, both are the same view.
    """
    if _make_string is None or not size:
        room = unwiped(size)
        return room, room
    string = _make_string(None, size)
    return string, memoryview(_ffi.buffer(_ffi.from_buffer("char[]", string), size)).cast("B")
