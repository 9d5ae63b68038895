"""The declarations of ISA-L's two functions that we call, in cffi's compiled form.

Parsing them from C would take longer than all other work of a small read. They are:

    void ec_init_tables(int k, int rows, unsigned char *a, unsigned char *gftbls);
    void ec_encode_data(int len, int k, int rows, unsigned char *gftbls, unsigned char **data, unsigned char **coding);

and were compiled by `FFI.emit_python_code`, which a test repeats.
"""

from __future__ import annotations

import _cffi_backend  # type: ignore[import-untyped]

TYPES = (
    b"\x00\x00\x0f\x0d\x00\x00\x07\x01\x00\x00\x07\x01\x00\x00\x07\x01\x00\x00\x0e\x03\x00\x00\x04\x03\x00\x00\x05\x11"
    b"\x00\x00\x00\x0f\x00\x00\x0f\x0d\x00\x00\x07\x01\x00\x00\x07\x01\x00\x00\x04\x11\x00\x00\x04\x11\x00\x00\x00\x0f"
    b"\x00\x00\x04\x01\x00\x00\x00\x01"
)
FUNCTIONS = (b"\x00\x00\x00\x23ec_encode_data", 0, b"\x00\x00\x08\x23ec_init_tables", 0)

ffi = _cffi_backend.FFI("grid.codec.isal_declarations", _version=0x2601, _types=TYPES, _globals=FUNCTIONS)
