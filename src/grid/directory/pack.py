"""The bytes of a directory: parses and packs its entries. [spec directories 2, 3, 5, 6]

Pure. An entry that nobody changes keeps its bytes, even if it is malformed, its child cannot be listed, or a later entry has its
name. It never makes the others unreadable. Parsing raises only FormatError. Reprs show names and no caps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from itertools import islice

from attrs import evolve, field

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
from grid.values import frozen

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
    """A listed link: its target and its metadata, which must not be changed."""

    target: Target = field(repr=False)
    _metadata: Metadata | bytes = field(factory=dict, alias="metadata")

    @property
    def metadata(self) -> Metadata:
        """The link's metadata. In a directory with very much metadata, it is parsed at each access."""
        kept = self._metadata
        return parse_metadata(kept) if isinstance(kept, bytes) else kept


@frozen(kw_only=True)
class Entry:
    """data: the four fields and whatever follows them. child: None if it is not listed.

    rows: if a directory has several entries with this name, the data of all of them in order, including this one.
    """

    data: bytes | memoryview = field(repr=False)
    child: Child | None
    rows: Sequence[bytes | memoryview] = field(default=(), repr=False)


Entries = Mapping[str, Entry]
"""NFC names to entries. The key of an entry without a usable name begins with UNNAMED."""

UNNAMED = "\udcff"
"""Half of a surrogate pair: no name begins with it, because UTF-8 cannot encode it."""

_LARGE_ENTRY = 2 * (MAX_NAME_SIZE + 2 * MAX_CAP_LENGTH + MAX_METADATA_SIZE)
"""An entry of at least this size is not copied: copying a hundred megabytes would block the interpreter."""

_PACKED_AT_ONCE = 2**11
"""Entries joined in one call: joining all at once, and freeing the list, would block the interpreter."""


def parse_directory(data: bytes, *, mutable: bool, write_key: bytes | None = None) -> dict[str, Entry]:
    """Every entry of a directory; FormatError if the data is not a row of netstrings or has too many entries.

    An unreadable entry has no child, and keeps its name if that is readable and unique.
    write_key: 16 bytes, of a mutable directory; None to see what readers see.
    """
    if len(data) > MAX_DIRECTORY_SIZE:
        raise FormatError(f"a directory of {len(data)} bytes is larger than the limit")
    view = memoryview(data)
    room = MetadataRoom()
    entries: Emptied[str, Entry] = Emptied()
    malformed: list[tuple[str | None, Entry]] = []
    crowded: dict[str, list[bytes | memoryview]] = {}
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
        if former is not None:
            crowded.setdefault(name, [former.data]).append(raw)
        if entry.child is not None or former is None or former.child is None:
            entries[name] = entry
    for name, rows in crowded.items():
        entries[name] = evolve(entries[name], rows=rows)
    unnamed = 0
    for name, entry in malformed:
        if name is None or name in entries:
            name = f"{UNNAMED}{unnamed:07}"
            unnamed += 1
        entries[name] = entry
    return entries.completed()


def pack_directory(entries: Entries) -> bytes:
    """Pack a directory with these entries, by name; FormatError if it is too large."""
    pieces = BytesIO()
    rows, count = _rows(entries), 0
    while piece := list(islice(rows, _PACKED_AT_ONCE)):
        count += len(piece)
        pieces.write(b"".join(map(pack_netstring, piece)))
    packed = pieces.getvalue()
    if len(packed) > MAX_DIRECTORY_SIZE or count > MAX_DIRECTORY_ENTRIES:
        raise FormatError(f"a directory of {count} entries and {len(packed)} bytes is larger than the limit")
    return packed


def _rows(entries: Entries) -> Iterator[bytes | memoryview]:
    """The data of every entry, in the order of their names."""
    for name in sort_names(entries):
        entry = entries[name]
        if entry.rows:
            yield from entry.rows
        else:
            yield entry.data


def make_entry(name: str, child: Child, *, mutable: bool, write_key: bytes | None = None) -> Entry:
    """A new entry under an NFC name. write_key: of a mutable directory.

    MustBeDeepImmutableError for something mutable in an immutable directory; CapError for a child that no directory accepts.
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
    """Encrypt a child's write cap (which may be empty) for holders of the directory's write key."""
    return _seal(write_cap, write_key) if write_cap else _seal_nothing(write_key)


@lru_cache(8)
def _seal_nothing(write_key: bytes) -> bytes:
    """The slot of a child without a write cap. Most children are immutable, and all of them in one directory have the same."""
    return _seal(b"", write_key)


def _seal(write_cap: bytes, write_key: bytes) -> bytes:
    salt = tagged_hash(_SALT_TAG, write_cap, SALT_SIZE)
    key = tagged_pair_hash(_KEY_TAG, salt, write_key, 16)
    sealed = crypt_once(key, write_cap)
    inner = sha256(_xor(key, _INNER_PAD) + salt + sealed).digest()
    return salt + sealed + sha256(_xor(key, _OUTER_PAD) + inner).digest()


def open_write_cap(sealed: bytes, write_key: bytes) -> bytes:
    """Decrypt the write cap in the slot; empty if there is none. Like 1.20, this ignores the MAC."""
    if len(sealed) <= SALT_SIZE + MAC_SIZE:
        return b""  # Most children are immutable files. Their slot is empty, and costs nothing in this form.
    key = tagged_pair_hash(_KEY_TAG, sealed[:SALT_SIZE], write_key, 16)
    return crypt_once(key, sealed[SALT_SIZE:-MAC_SIZE])


def _fields(raw: bytes | memoryview) -> tuple[bytes, bytes, bytes, bytes]:
    """The four fields of an entry. A field that is too long is cut, but not so far that it becomes acceptable."""
    found: list[bytes] = []
    offset = 0
    for longest in _LONGEST:
        start, end = locate_netstring(raw, offset, len(raw))
        found.append(bytes(raw[start : end if end - start <= longest else start + longest + 1]))
        offset = end + 1
    name, read, sealed, metadata = found
    return name, read, sealed, metadata


_LONGEST = (MAX_NAME_SIZE, MAX_CAP_LENGTH, MAX_CAP_LENGTH + SALT_SIZE + MAC_SIZE, MAX_METADATA_SIZE)
"""Most bytes of each field of an entry that can be parsed."""


def _child(
    fields: tuple[bytes, bytes, bytes, bytes], mutable: bool, write_key: bytes | None, room: MetadataRoom
) -> Child | None:
    """The entry's child; None if it is not listed. FormatError."""
    _, read, sealed, metadata = fields
    if sealed and not mutable:
        raise FormatError("an entry of an immutable directory has a write capability")
    write = open_write_cap(sealed, write_key).rstrip(b" ") if write_key is not None else b""
    target = _target(write, read.rstrip(b" "), deep_immutable=not mutable)
    noted = room.read(metadata)
    return None if target is None else Child(target=target, metadata=noted)


def _target(write: bytes, read: bytes, *, deep_immutable: bool) -> Target | None:
    """What a reader makes of the two slots; None if it is not listed. [spec directories 5]"""
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
                    f"{name!r} is not known to be immutable, and everything in this directory must be"
                )
        return target.write or b"", target.stored_read(deep_immutable=not mutable)
    if target.authority == "verify":
        raise CapError(f"the capability for {name!r} can only verify; a directory needs one that can read")
    if target.is_mutable and not mutable:
        raise MustBeDeepImmutableError(
            f"{name!r} is mutable, and everything in an immutable directory must be immutable"
        )
    write = target.to_string().encode() if target.authority == "write" else b""
    read = target.read_cap().to_string().encode()
    return write, read if mutable else read.removeprefix(IMMUTABLE_PREFIX)


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
