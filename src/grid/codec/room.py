"""Room for octets that are written before they are read: what the system gives, not wiped first.

What stands in it may be anything that this process has held, keys among them: every octet of it must be written
before it goes anywhere.
"""

from __future__ import annotations

import _cffi_backend  # type: ignore[import-untyped]

_ffi = _cffi_backend.FFI()
_allocate = _ffi.new_allocator(should_clear_after_alloc=False)


def unwiped(size: int) -> memoryview:
    """Writable room of that size, all of which the caller writes."""
    return memoryview(_ffi.buffer(_allocate("char[]", size), size)).cast("B") if size else memoryview(bytearray())
