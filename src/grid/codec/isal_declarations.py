"""The declarations of ISA-L's functions that we call, in cffi's compiled form.

Parsing them from C would take longer than all other work of a small read. They are:

    void ec_init_tables(int k, int rows, unsigned char *a, unsigned char *gftbls);
    void ec_encode_data(int len, int k, int rows, unsigned char *gftbls, unsigned char **data, unsigned char **coding);
    uint32_t crc32_gzip_refl(uint32_t init_crc, const unsigned char *buf, uint64_t len);

and were compiled by `FFI.emit_python_code`, which a test repeats.
"""

from __future__ import annotations

import _cffi_backend  # type: ignore[import-untyped]

TYPES = (
    b"\x00\x00\x01\x0d\x00\x00\x16\x01\x00\x00\x13\x03\x00\x00\x18\x01\x00\x00\x00\x0f\x00\x00\x14\x0d\x00\x00\x07\x01"
    b"\x00\x00\x07\x01\x00\x00\x07\x01\x00\x00\x13\x03\x00\x00\x09\x03\x00\x00\x0a\x11\x00\x00\x00\x0f\x00\x00\x14\x0d"
    b"\x00\x00\x07\x01\x00\x00\x07\x01\x00\x00\x09\x11\x00\x00\x09\x11\x00\x00\x00\x0f\x00\x00\x04\x01\x00\x00\x00\x01"
)
FUNCTIONS = (
    b"\x00\x00\x00\x23crc32_gzip_refl", 0, b"\x00\x00\x05\x23ec_encode_data", 0, b"\x00\x00\x0d\x23ec_init_tables", 0
)  # fmt: skip

ffi = _cffi_backend.FFI("grid.codec.isal_declarations", _version=0x2601, _types=TYPES, _globals=FUNCTIONS)
