"""The bytes of a directory: entries to values and back. [spec directories 2, 3, 5, 6]

Pure. An entry that nobody changes keeps its bytes, whatever they are: also one that is malformed, or whose child cannot
be listed. It never makes the others unreadable. Nothing but FormatError comes out of parsing. Reprs show names and no caps.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from itertools import islice

from attrs import field, frozen

from grid.caps import KnownCap, UnknownCap, UnknownChild, parse_cap, settle_unknown_child
from grid.caps.parsing import IMMUTABLE_PREFIX
from grid.codec.netstring import locate_netstring, pack_netstring
from grid.crypto.aes import crypt_once
from grid.crypto.hashing import tagged_hash, tagged_pair_hash
from grid.directory.large import Emptied
from grid.directory.metadata import Metadata, MetadataRoom, pack_metadata, parse_metadata
from grid.directory.names import parse_name, sort_names
from grid.errors import CapError, FormatError, MustBeDeepImmutableError
from grid.limits import MAX_CAP_LENGTH, MAX_DIRECTORY_ENTRIES, MAX_DIRECTORY_SIZE, MAX_METADATA_SIZE, MAX_NAME_SIZE

SALT_SIZE = 16
MAC_SIZE = 32

Target = KnownCap | UnknownChild
"""What a link leads to."""

_SALT_TAG = b"allmydata_dirnode_child_rwcap_to_salt_v1"
_KEY_TAG = b"allmydata_mutable_writekey_and_salt_to_dirnode_child_capkey_v1"
_INNER_PAD = bytes([0x36]) * 16
_OUTER_PAD = bytes([0x5C]) * 16


@frozen(kw_only=True)
class Child:
    """One listed link: where it leads, and what is noted with it (not to be changed)."""

    target: Target = field(repr=False)
    _metadata: Metadata | bytes = field(factory=dict, alias="metadata")

    @property
    def metadata(self) -> Metadata:
        """What is noted with the link. Of a directory with very much of it, made from its JSON each time."""
        kept = self._metadata
        return parse_metadata(kept) if isinstance(kept, bytes) else kept


@frozen(kw_only=True)
class Entry:
    """bytes: the four fields, with whatever follows them. child: None if it is not to be listed."""

    data: bytes | memoryview = field(repr=False)
    child: Child | None


Entries = Mapping[str, Entry]
"""NFC names to entries. An entry without a name of its own has a key that begins with UNNAMED."""

UNNAMED = "\udcff"
"""Half of a surrogate pair, with which no name begins: UTF-8 does not have it."""

_LARGE_ENTRY = 2 * (MAX_NAME_SIZE + 2 * MAX_CAP_LENGTH + MAX_METADATA_SIZE)
"""Bytes from which an entry is left where it lies: copying a hundred megabytes would hold the interpreter."""

_PACKED_AT_ONCE = 2**11
"""Entries joined in one call: a join of all of them, and the end of its list, would hold the interpreter."""


def parse_directory(data: bytes, *, mutable: bool, write_key: bytes | None = None) -> dict[str, Entry]:
    """Every entry of a directory; FormatError if the data is no row of netstrings, or has more entries than any.

    An entry that cannot be read is there without a child, under its name if that can be read and is no other's.
    write_key: 16 bytes of a mutable directory, None to see what its readers see.
    """
    if len(data) > MAX_DIRECTORY_SIZE:
        raise FormatError(f"a directory of {len(data)} bytes is larger than any")
    view = memoryview(data)
    room = MetadataRoom()
    entries: Emptied[str, Entry] = Emptied()
    malformed: list[tuple[str | None, Entry]] = []
    offset = count = 0
    while offset < len(data):
        try:
            start, end = locate_netstring(data, offset, len(data))
        except FormatError as error:
            raise FormatError(f"this is not a directory, or its contents are damaged: {error}") from None
        offset = end + 1
        count += 1
        if count > MAX_DIRECTORY_ENTRIES:
            raise FormatError(f"the directory has more than {MAX_DIRECTORY_ENTRIES} entries")
        raw = data[start:end] if end - start < _LARGE_ENTRY else view[start:end]
        name: str | None = None
        try:
            fields = _fields(raw)
            name = parse_name(fields[0])
            entry = Entry(data=raw, child=_child(fields, mutable, write_key, room))
        except FormatError:
            malformed.append((name, Entry(data=raw, child=None)))
            continue
        former = entries.get(name)
        if entry.child is not None or former is None or former.child is None:
            entries[name] = entry
    unnamed = 0
    for name, entry in malformed:
        if name is None or name in entries:
            name = f"{UNNAMED}{unnamed:07}"
            unnamed += 1
        entries[name] = entry
    return entries.completed()


def pack_directory(entries: Entries) -> bytes:
    """The bytes of a directory with these entries, by name; FormatError if it is larger than any may be."""
    pieces = BytesIO()
    names = iter(sort_names(entries))
    while piece := list(islice(names, _PACKED_AT_ONCE)):
        pieces.write(b"".join(pack_netstring(entries[name].data) for name in piece))
    packed = pieces.getvalue()
    if len(packed) > MAX_DIRECTORY_SIZE or len(entries) > MAX_DIRECTORY_ENTRIES:
        raise FormatError(f"a directory of {len(entries)} entries and {len(packed)} bytes is larger than any may be")
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
    return Entry(data=b"".join(map(pack_netstring, fields)), child=child)


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


def _fields(raw: bytes | memoryview) -> tuple[bytes, bytes, bytes, bytes]:
    """The four fields of an entry. One that is longer than any such field is cut after that: it is still too long."""
    found: list[bytes] = []
    offset = 0
    for longest in _LONGEST:
        start, end = locate_netstring(raw, offset, len(raw))
        found.append(bytes(raw[start : min(end, start + longest + 1)]))
        offset = end + 1
    name, read, sealed, metadata = found
    return name, read, sealed, metadata


_LONGEST = (MAX_NAME_SIZE, MAX_CAP_LENGTH, MAX_CAP_LENGTH + SALT_SIZE + MAC_SIZE, MAX_METADATA_SIZE)
"""Bytes that each field of an entry has at most, if it is to be understood."""


def _child(
    fields: tuple[bytes, bytes, bytes, bytes], mutable: bool, write_key: bytes | None, room: MetadataRoom
) -> Child | None:
    """What the entry leads to; None if it is not to be listed. FormatError."""
    _, read, sealed, metadata = fields
    if sealed and not mutable:
        raise FormatError("an entry of an immutable directory has a write capability")
    write = open_write_cap(sealed, write_key).rstrip(b" ") if write_key is not None else b""
    target = _target(write, read.rstrip(b" "), deep_immutable=not mutable)
    noted = room.read(metadata)
    return None if target is None else Child(target=target, metadata=noted)


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
    read = target.read_cap().to_string().encode()
    return write, read if mutable else read.removeprefix(IMMUTABLE_PREFIX)


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
