"""The URI extension block (UEB): what a file's capability does not contain and all its shares repeat.

Owns its bytes, its hash, and its agreement with the capability. The caller must compare
`ueb_hash` with the capability's hash before it trusts a value. [spec immutable 9]
"""

from __future__ import annotations

import re

from attrs import field, fields

from grid import limits
from grid.codec.netstring import pack_netstring, parse_netstring
from grid.crypto.hashing import tagged_hash
from grid.errors import FormatError
from grid.immutable.share.geometry import HASH_SIZE, Geometry
from grid.ports import Buffer
from grid.values import frozen

UEB_TAG = b"allmydata_uri_extension_v1"
CODEC_NAME = b"crs"

_KEY = re.compile(rb"[a-zA-Z_-]{1,64}:")
_NUMBER = re.compile(rb"0|[1-9][0-9]{0,19}")
_NUMBERS = frozenset({"needed_shares", "num_segments", "segment_size", "size", "total_shares"})
_HASHES = frozenset({"crypttext_hash", "crypttext_root_hash", "share_root_hash"})


@frozen(kw_only=True)
class UriExtension:
    """The fields of an extension block that have a meaning; None for absent ones.

    Numbers are bytes or counts; hashes have 32 bytes. A value from parse_ueb is well-formed, but only
    check_ueb shows that it agrees with its capability.
    """

    segment_size: int
    crypttext_root_hash: bytes = field(repr=bytes.hex)
    share_root_hash: bytes = field(repr=bytes.hex)
    crypttext_hash: bytes | None = field(default=None, repr=False)
    codec_name: bytes | None = None
    codec_params: bytes | None = None
    tail_codec_params: bytes | None = None
    needed_shares: int | None = None
    total_shares: int | None = None
    num_segments: int | None = None
    size: int | None = None


def describe_file(
    geometry: Geometry, *, crypttext_hash: bytes, crypttext_root_hash: bytes, share_root_hash: bytes
) -> UriExtension:
    """The complete extension block of a file, with all 11 fields that 1.20 writes."""
    suffix = b"-%d-%d" % (geometry.k, geometry.n)
    return UriExtension(
        segment_size=geometry.segment_size,
        crypttext_root_hash=crypttext_root_hash,
        share_root_hash=share_root_hash,
        crypttext_hash=crypttext_hash,
        codec_name=CODEC_NAME,
        codec_params=b"%d" % geometry.segment_size + suffix,
        tail_codec_params=b"%d" % geometry.padded_tail_size + suffix,
        needed_shares=geometry.k,
        total_shares=geometry.n,
        num_segments=geometry.segment_count,
        size=geometry.size,
    )


def pack_ueb(ueb: UriExtension) -> bytes:
    """The bytes of the extension block: its fields in ascending order of their keys, without those that are None."""
    pieces = []
    for name in _FIELD_NAMES:
        value = getattr(ueb, name)
        if value is not None:
            raw = b"%d" % value if name in _NUMBERS else value
            pieces.append(b"%s:%s" % (name.encode(), pack_netstring(raw)))
    return b"".join(pieces)


def ueb_size(geometry: Geometry) -> int:
    """Bytes of the extension block that a writer makes for a file of this geometry."""
    blank = bytes(HASH_SIZE)
    ueb = describe_file(geometry, crypttext_hash=blank, crypttext_root_hash=blank, share_root_hash=blank)
    return len(pack_ueb(ueb))


def ueb_hash(data: Buffer) -> bytes:
    """The 32-byte hash by which the capability names this extension block."""
    return tagged_hash(UEB_TAG, data)


def parse_ueb(data: Buffer) -> UriExtension:
    """Parse the fields, in any order. Unknown keys are ignored; of a repeated key the
    last value counts.

    FormatError if the bytes are not exactly a sequence of fields, are too many, or lack a mandatory field,
    or if a field's value is malformed.
    """
    if len(data) >= limits.MAX_UEB_SIZE:
        raise FormatError(f"an extension block of {len(data)} bytes is too long")
    raw = bytes(data)
    values: dict[str, bytes] = {}
    offset = 0
    while offset < len(raw):
        match = _KEY.match(raw, offset)
        if match is None:
            raise FormatError(f"no field starts at offset {offset} of the extension block")
        value, offset = parse_netstring(raw, match.end(), limits.MAX_UEB_SIZE)
        values[match.group()[:-1].decode("ascii")] = value
    return _interpret(values)


def check_ueb(ueb: UriExtension, size: int, k: int, n: int) -> Geometry:
    """The geometry of the file, after checking the block against the capability's size, k and n.

    FormatError if the segment size is impossible, or if a redundant field disagrees. That is the
    uploader's fault, whichever share the block came from. [spec immutable 12, step 3]
    """
    geometry = Geometry(size=size, k=k, n=n, segment_size=ueb.segment_size)
    expected = describe_file(
        geometry,
        crypttext_hash=ueb.crypttext_hash or b"",
        crypttext_root_hash=ueb.crypttext_root_hash,
        share_root_hash=ueb.share_root_hash,
    )
    for name in _FIELD_NAMES:
        said = getattr(ueb, name)
        if said is not None and said != getattr(expected, name):
            raise FormatError(f"the extension block's {name} disagrees with the capability: {said!r:.80}")
    return geometry


def _interpret(values: dict[str, bytes]) -> UriExtension:
    for name in ("segment_size", "crypttext_root_hash", "share_root_hash"):
        if name not in values:
            raise FormatError(f"the extension block lacks {name}")
    for name in _HASHES & values.keys():
        if len(values[name]) != HASH_SIZE:
            raise FormatError(f"the extension block's {name} has {len(values[name])} bytes, not {HASH_SIZE}")
    return UriExtension(
        segment_size=_parse_number("segment_size", values["segment_size"]),
        crypttext_root_hash=values["crypttext_root_hash"],
        share_root_hash=values["share_root_hash"],
        crypttext_hash=values.get("crypttext_hash"),
        codec_name=values.get("codec_name"),
        codec_params=values.get("codec_params"),
        tail_codec_params=values.get("tail_codec_params"),
        needed_shares=_number(values, "needed_shares"),
        total_shares=_number(values, "total_shares"),
        num_segments=_number(values, "num_segments"),
        size=_number(values, "size"),
    )


def _number(values: dict[str, bytes], name: str) -> int | None:
    return _parse_number(name, values[name]) if name in values else None


def _parse_number(name: str, value: bytes) -> int:
    if _NUMBER.fullmatch(value) is None:
        raise FormatError(f"the extension block's {name} is not a number: {value!r:.80}")
    return int(value)


_FIELD_NAMES = tuple(sorted(attribute.name for attribute in fields(UriExtension)))
