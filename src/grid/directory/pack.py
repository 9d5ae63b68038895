"""The octets of a directory: entries to values and back. [spec directories 2, 3, 5, 6]

Pure. An entry that nobody changes keeps its octets, whatever they are: also one whose child cannot be listed.
Nothing but FormatError comes out of parsing. Reprs show names and no caps.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from hashlib import sha256
from math import isfinite

from attrs import field, frozen

from grid.caps import KnownCap, UnknownCap, UnknownChild, parse_cap, settle_unknown_child
from grid.codec.netstring import pack_netstring, parse_netstring
from grid.crypto.aes import crypt_once
from grid.crypto.hashing import tagged_hash, tagged_pair_hash
from grid.errors import CapError, FormatError, MustBeDeepImmutableError
from grid.limits import MAX_DIRECTORY_ENTRIES, MAX_DIRECTORY_SIZE, MAX_METADATA_DEPTH

SALT_SIZE = 16
MAC_SIZE = 32

Target = KnownCap | UnknownChild
"""What a link leads to."""

Metadata = Mapping[str, object]
"""A JSON object."""

_SALT_TAG = b"allmydata_dirnode_child_rwcap_to_salt_v1"
_KEY_TAG = b"allmydata_mutable_writekey_and_salt_to_dirnode_child_capkey_v1"
_MAYBE_INFINITE = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{300}")
"""What is in every number that Python reads as an infinite one, and in few others."""

_INNER_PAD = bytes([0x36]) * 16
_OUTER_PAD = bytes([0x5C]) * 16


@frozen(kw_only=True)
class Child:
    """One listed link: where it leads, and what is noted with it (not to be changed)."""

    target: Target = field(repr=False)
    metadata: Metadata = field(factory=dict)


@frozen(kw_only=True)
class Entry:
    """octets: the four fields, with whatever follows them. child: None if it is not to be listed."""

    octets: bytes = field(repr=False)
    child: Child | None


Entries = Mapping[str, Entry]
"""NFC names to entries."""


def normalize_name(name: str) -> str:
    """The name as directories hold it; FormatError if it is no text that UTF-8 has."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FormatError("a name in a directory is Unicode text, without lone surrogates") from error
    return unicodedata.normalize("NFC", name)


def parse_directory(data: bytes, *, mutable: bool, write_key: bytes | None = None) -> dict[str, Entry]:
    """Every entry of a directory, in the order of its octets; FormatError if one of them cannot be read.

    write_key: 16 octets of a mutable directory, None to see what its readers see.
    """
    if len(data) > MAX_DIRECTORY_SIZE:
        raise FormatError(f"a directory of {len(data)} octets is larger than any")
    entries: dict[str, Entry] = {}
    offset = count = 0
    while offset < len(data):
        octets, offset = parse_netstring(data, offset, len(data))
        count += 1
        if count > MAX_DIRECTORY_ENTRIES:
            raise FormatError(f"the directory has more than {MAX_DIRECTORY_ENTRIES} entries")
        name, entry = _parse_entry(octets, mutable, write_key)
        former = entries.get(name)
        if entry.child is not None or former is None or former.child is None:
            entries[name] = entry
    return entries


def pack_directory(entries: Entries) -> bytes:
    """The octets of a directory with these entries, by name; FormatError if it is larger than any may be."""
    packed = b"".join(pack_netstring(entries[name].octets) for name in sorted(entries))
    if len(packed) > MAX_DIRECTORY_SIZE or len(entries) > MAX_DIRECTORY_ENTRIES:
        raise FormatError(f"a directory of {len(entries)} entries and {len(packed)} octets is larger than any may be")
    return packed


def make_entry(name: str, child: Child, *, mutable: bool, write_key: bytes | None = None) -> Entry:
    """A new entry under an NFC name. write_key: that of a mutable directory.

    MustBeDeepImmutableError for something mutable in an immutable directory; CapError for what no directory takes.
    """
    write, read = _slots(name, child.target, mutable)
    if mutable:
        if write_key is None:
            raise ValueError("an entry of a mutable directory takes the directory's write key")
        sealed = seal_write_cap(write, write_key)
    else:
        sealed = b""
    fields = (name.encode("utf-8"), read, sealed, pack_metadata(child.metadata))
    return Entry(octets=b"".join(map(pack_netstring, fields)), child=child)


def seal_write_cap(write_cap: bytes, write_key: bytes) -> bytes:
    """A child's write cap (may be empty) as only holders of the directory's write key can read it."""
    salt = tagged_hash(_SALT_TAG, write_cap, SALT_SIZE)
    key = tagged_pair_hash(_KEY_TAG, salt, write_key, 16)
    sealed = crypt_once(key, write_cap)
    inner = sha256(_xor(key, _INNER_PAD) + salt + sealed).digest()
    return salt + sealed + sha256(_xor(key, _OUTER_PAD) + inner).digest()


def open_write_cap(sealed: bytes, write_key: bytes) -> bytes:
    """The write cap in the slot; empty if there is none. As 1.20, it does not look at the MAC."""
    if len(sealed) <= SALT_SIZE + MAC_SIZE:
        return b""  # Most children are immutable files, whose slot says no more than that, and costs nothing so.
    key = tagged_pair_hash(_KEY_TAG, sealed[:SALT_SIZE], write_key, 16)
    return crypt_once(key, sealed[SALT_SIZE:-MAC_SIZE])


def pack_metadata(metadata: Metadata) -> bytes:
    """The JSON of it; FormatError if it has none, or is nested too deep."""
    try:
        packed = json.dumps(metadata, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError("metadata must be what JSON can say") from error
    _check_depth(metadata)
    return packed


def parse_metadata(octets: bytes) -> dict[str, object]:
    """The JSON object that the octets say; FormatError.

    What is no number to anybody but Python, which 1.20 stores all the same, is null: whoever lists a directory is told JSON.
    """
    try:
        text = octets.decode("utf-8")
        if _MAYBE_INFINITE.search(octets) is None:
            value = json.loads(text, parse_constant=_no_number)
        else:
            value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise FormatError("an entry's metadata is not JSON") from error
    if not isinstance(value, dict):
        raise FormatError("an entry's metadata is not a JSON object")
    _check_depth(value)
    return value


def _parse_entry(octets: bytes, mutable: bool, write_key: bytes | None) -> tuple[str, Entry]:
    fields: list[bytes] = []
    offset = 0
    for _ in range(4):
        value, offset = parse_netstring(octets, offset, len(octets))
        fields.append(value)
    raw_name, read, sealed, metadata = fields
    if sealed and not mutable:
        raise FormatError("an entry of an immutable directory has a write cap")
    try:
        name = unicodedata.normalize("NFC", raw_name.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise FormatError("an entry's name is not UTF-8") from error
    write = open_write_cap(sealed, write_key).rstrip(b" ") if write_key is not None else b""
    target = _target(write, read.rstrip(b" "), deep_immutable=not mutable)
    noted = parse_metadata(metadata)
    child = None if target is None else Child(target=target, metadata=noted)
    return name, Entry(octets=octets, child=child)


def _target(write: bytes, read: bytes, *, deep_immutable: bool) -> Target | None:
    """What a reader takes the two slots for; None if it is not to be listed. [spec directories 5]"""
    cap = parse_cap(write or read, deep_immutable=deep_immutable)
    if not isinstance(cap, UnknownCap) and cap.authority != "verify":
        return cap
    child = settle_unknown_child(write, read, deep_immutable=deep_immutable)
    return None if child.error is not None else child


def _slots(name: str, target: Target, mutable: bool) -> tuple[bytes, bytes]:
    """The write cap and the read cap to store."""
    if isinstance(target, UnknownChild):
        if target.error is not None:
            raise target.error
        if not mutable:
            target = settle_unknown_child(target.write, target.read, deep_immutable=True)
            if target.error is not None or target.write is not None:
                raise MustBeDeepImmutableError(
                    f"{name!r} is not known to be immutable, as all in this directory must be"
                )
        return target.write or b"", target.stored_read(deep_immutable=not mutable)
    if target.authority == "verify":
        raise CapError(f"the capability for {name!r} only verifies; a directory takes one that reads")
    if target.is_mutable and not mutable:
        raise MustBeDeepImmutableError(f"{name!r} is mutable, and all in an immutable directory must be immutable")
    write = target.to_string().encode() if target.authority == "write" else b""
    return write, target.read_cap().to_string().encode()


def _no_number(name: str) -> None:
    """What NaN and Infinity become."""


def _finite(text: str) -> float | None:
    value = float(text)
    return value if isfinite(value) else None


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_METADATA_DEPTH):
        nested: list[object] = []
        for item in level:
            # Most are plain; asking them what else they may be takes longer than everything here.
            if isinstance(item, str | int | float) or item is None:
                continue
            if isinstance(item, dict | Mapping):
                nested.extend(item.values())
            elif isinstance(item, list | tuple):
                nested.extend(item)
        if not nested:
            return
        level = nested
    raise FormatError(f"metadata is nested more than {MAX_METADATA_DEPTH} deep")


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
