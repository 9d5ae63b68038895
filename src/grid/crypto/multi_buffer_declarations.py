"""The declarations of the functions of multi_buffer.c, in cffi's compiled form.

Parsing them from C would take longer than all other work of a small read. They are:

    size_t lanes_stream_size(void);
    int lanes_usable(void);
    void lanes_start(unsigned char *stream);
    void lanes_hash(unsigned char *running, unsigned char *data, size_t data_size, size_t count, unsigned char **prefixes, size_t *piece_counts, unsigned char **pieces, size_t *sizes, unsigned char *digests);
    void lanes_hash_rows(size_t count, size_t size, size_t last_size, unsigned char *leaf, size_t share_count, unsigned char **shares, unsigned char *leaves, unsigned char *segment, size_t column_count, unsigned char **columns, size_t total, unsigned char *segments);
    void lanes_join_pairs(unsigned char *children, size_t count, unsigned char *parents);

and were compiled by `FFI.emit_python_code`, which a test repeats.
"""

from __future__ import annotations

import _cffi_backend  # type: ignore[import-untyped]

TYPES = (
    b"\x00\x00\x25\x0d\x00\x00\x00\x0f\x00\x00\x05\x0d\x00\x00\x00\x0f\x00\x00\x27\x0d\x00\x00\x1c\x01\x00\x00\x1c\x01"
    b"\x00\x00\x1c\x01\x00\x00\x26\x03\x00\x00\x1c\x01\x00\x00\x08\x03\x00\x00\x08\x11\x00\x00\x08\x11\x00\x00\x1c\x01"
    b"\x00\x00\x0a\x11\x00\x00\x1c\x01\x00\x00\x08\x11\x00\x00\x00\x0f\x00\x00\x27\x0d\x00\x00\x08\x11\x00\x00\x00\x0f"
    b"\x00\x00\x27\x0d\x00\x00\x08\x11\x00\x00\x1c\x01\x00\x00\x08\x11\x00\x00\x00\x0f\x00\x00\x27\x0d\x00\x00\x08\x11"
    b"\x00\x00\x08\x11\x00\x00\x1c\x01\x00\x00\x1c\x01\x00\x00\x0a\x11\x00\x00\x05\x03\x00\x00\x0a\x11\x00\x00\x20\x11"
    b"\x00\x00\x08\x11\x00\x00\x00\x0f\x00\x00\x07\x01\x00\x00\x04\x01\x00\x00\x00\x01"
)
FUNCTIONS = (
    b"\x00\x00\x1a\x23lanes_hash",
    0,
    b"\x00\x00\x04\x23lanes_hash_rows",
    0,
    b"\x00\x00\x15\x23lanes_join_pairs",
    0,
    b"\x00\x00\x12\x23lanes_start",
    0,
    b"\x00\x00\x02\x23lanes_stream_size",
    0,
    b"\x00\x00\x00\x23lanes_usable",
    0,
)

ffi = _cffi_backend.FFI("grid.crypto.multi_buffer_declarations", _version=0x2601, _types=TYPES, _globals=FUNCTIONS)
