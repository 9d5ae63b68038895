"""Parses the text of a capability into its value. [spec caps 7, 8]

Parsing raises nothing: anything but a known cap is kept, byte for byte, as an UnknownCap. Time is
bounded by limits.MAX_CAP_LENGTH. No message contains the text of a cap.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from grid.caps.extents import KEPT_PACKS, Cap, KnownCap, SequenceCap, SliceCap
from grid.caps.values import (
    ChkCap,
    ChkVerifyCap,
    DirectoryCap,
    FileCap,
    LitCap,
    MdmfReadCap,
    MdmfVerifyCap,
    MdmfWriteCap,
    SdmfReadCap,
    SdmfVerifyCap,
    SdmfWriteCap,
    StorageIndex,
    UnknownCap,
)
from grid.codec import base32
from grid.errors import CapError, FormatError, MustBeDeepImmutableError, MustBeReadOnlyError
from grid.limits import MAX_CAP_DIGITS, MAX_CAP_LENGTH, MAX_FILE_SIZE, MAX_SEQUENCE_TABLE_SIZE, MAX_SHARES
from grid.plural import counted
from grid.values import frozen

READ_PREFIX = b"ro."
IMMUTABLE_PREFIX = b"imm."

_KEY = rb"([a-z2-7]{25}[aeimquy4])"
_HASH = rb"([a-z2-7]{51}[aq])"
_NUMBER = rb"([0-9]{1,%d})(?![0-9])" % MAX_CAP_DIGITS
_NUMBERS = b":".join((_KEY, _HASH, _NUMBER, _NUMBER, _NUMBER))
_MUTABLE = _KEY + b":" + _HASH
# One line feed at the end is ignored, as in 1.20.
_END = rb"\n?"

_Fields = tuple[bytes, ...]


@frozen
class _Kind:
    """One kind of file cap: the form of its fields, and the function that makes the value."""

    cap_type: type[FileCap]
    pattern: re.Pattern[bytes]
    build: Callable[[_Fields], FileCap]


def _build_lit(fields: _Fields) -> LitCap:
    return LitCap(data=base32.decode(fields[0]))


def _build_chk(fields: _Fields) -> ChkCap:
    needed, total, size = map(int, fields[2:])
    return ChkCap(key=_bytes(fields[0]), ueb_hash=_bytes(fields[1]), needed=needed, total=total, size=size)


_build_pack = lru_cache(KEPT_PACKS)(_build_chk)
"""The pack of a slice. Of the slices in a directory, thousands have the same one: they share the value."""


def _build_chk_verify(fields: _Fields) -> ChkVerifyCap:
    needed, total, size = map(int, fields[2:])
    return ChkVerifyCap(
        storage_index=StorageIndex(_bytes(fields[0])),
        ueb_hash=_bytes(fields[1]),
        needed=needed,
        total=total,
        size=size,
    )


def _writes(cap_type: type[SdmfWriteCap | MdmfWriteCap]) -> Callable[[_Fields], FileCap]:
    return lambda fields: cap_type(write_key=_bytes(fields[0]), fingerprint=_bytes(fields[1]))


def _reads(cap_type: type[SdmfReadCap | MdmfReadCap]) -> Callable[[_Fields], FileCap]:
    return lambda fields: cap_type(read_key=_bytes(fields[0]), fingerprint=_bytes(fields[1]))


def _verifies(cap_type: type[SdmfVerifyCap | MdmfVerifyCap]) -> Callable[[_Fields], FileCap]:
    return lambda fields: cap_type(storage_index=StorageIndex(_bytes(fields[0])), fingerprint=_bytes(fields[1]))


_bytes = base32.decode
_SDMF = re.compile(_MUTABLE + _END)
# Fields that older writers added to MDMF caps carry no authority and are dropped. [spec caps 8]
_MDMF = re.compile(_MUTABLE + b"(?::.*|" + _END + b")", re.DOTALL)

_KINDS = (
    _Kind(LitCap, re.compile(b"([a-z2-7]*)" + _END), _build_lit),
    _Kind(ChkCap, re.compile(_NUMBERS + _END), _build_chk),
    # 1.20 drops whatever follows the size.
    _Kind(ChkVerifyCap, re.compile(_NUMBERS + b".*", re.DOTALL), _build_chk_verify),
    _Kind(SdmfWriteCap, _SDMF, _writes(SdmfWriteCap)),
    _Kind(SdmfReadCap, _SDMF, _reads(SdmfReadCap)),
    _Kind(SdmfVerifyCap, _SDMF, _verifies(SdmfVerifyCap)),
    _Kind(MdmfWriteCap, _MDMF, _writes(MdmfWriteCap)),
    _Kind(MdmfReadCap, _MDMF, _reads(MdmfReadCap)),
    _Kind(MdmfVerifyCap, _MDMF, _verifies(MdmfVerifyCap)),
)
# These have only one spelling. [spec extents 2, 4]
_COUNT = rb"(0|[1-9][0-9]{0,18})"
_CHK_FIELDS = b":".join((_KEY, _HASH, _COUNT, _COUNT, _COUNT))
_SLICE_PREFIX = b"URI:GRID-SLICE:"
_SLICE = re.compile(b":".join((_CHK_FIELDS, _COUNT, _COUNT, _KEY)))
_SEQUENCE_PREFIX = b"URI:GRID-SEQUENCE:"
_SEQUENCE = re.compile(_COUNT + b":(?:CHK:" + _CHK_FIELDS + b"|LIT:([a-z2-7]*))")
_PREFIX = re.compile(rb"URI:[A-Z0-9A-Za-z-]{1,32}:")
_FILES = {kind.cap_type.prefix.encode(): kind for kind in _KINDS}
_DIRECTORIES = {kind.cap_type.directory_prefix.encode(): kind for kind in _KINDS}

_FUTURE_WRITE_PREFIX = b"x-tahoe-future-test-writeable:"
_FUTURE_MUTABLE_PREFIX = b"x-tahoe-future-test-mutable:"


def parse_cap(text: str | bytes, *, deep_immutable: bool = False) -> Cap:
    """Parse the text into a cap, or into an UnknownCap with the text's bytes. Raises nothing.

    deep_immutable: the text comes from an immutable directory, which may contain only immutable caps. Text is
    encoded as UTF-8. A prefix `ro.` or `imm.` is dropped once the cap is known to obey it.
    """
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_CAP_LENGTH:
        return UnknownCap(data, CapError(f"a capability of {len(data)} bytes is longer than any"))
    can_write = can_mutate = not deep_immutable
    bare = data
    if data.startswith(IMMUTABLE_PREFIX):
        can_write = can_mutate = False
        bare = data[len(IMMUTABLE_PREFIX) :]
    elif data.startswith(READ_PREFIX):
        can_write = False
        bare = data[len(READ_PREFIX) :]
    try:
        cap = _parse_bare(bare, can_write=can_write, can_mutate=can_mutate)
    except CapError as error:
        return UnknownCap(data, error)
    return UnknownCap(data) if cap is None else cap


def _parse_bare(data: bytes, *, can_write: bool, can_mutate: bool) -> KnownCap | None:
    """Parse text without `ro.` or `imm.`; None if its kind is unknown. CapError."""
    found = _PREFIX.match(data)
    prefix = found.group() if found else b""
    if prefix in (_SLICE_PREFIX, _SEQUENCE_PREFIX):
        return _parse_extent(data, prefix)
    kind = _FILES.get(prefix) or _DIRECTORIES.get(prefix)
    if kind is None:
        is_future_write = data.startswith(_FUTURE_WRITE_PREFIX)
        is_future_mutable = data.startswith(_FUTURE_MUTABLE_PREFIX)
        _check_permitted(is_future_write, is_future_write or is_future_mutable, can_write, can_mutate)
        return None
    cap_type = kind.cap_type
    _check_permitted(cap_type.authority == "write", cap_type.is_mutable, can_write, can_mutate)
    fields = kind.pattern.fullmatch(data, len(prefix))
    if fields is None:
        raise CapError(_MALFORMED)
    try:
        cap = kind.build(fields.groups())
    except FormatError as error:
        raise CapError(f"this capability is malformed: {error}") from None
    return cap if prefix in _FILES else DirectoryCap(cap)


_MALFORMED = "this capability is malformed. Was it copied completely?"


def _parse_extent(data: bytes, prefix: bytes) -> SliceCap | SequenceCap:
    """Parse a slice or a sequence, which have only one spelling; CapError."""
    pattern = _SLICE if prefix == _SLICE_PREFIX else _SEQUENCE
    fields = pattern.fullmatch(data, len(prefix))
    if fields is None:
        raise CapError(_MALFORMED)
    found = fields.groups()
    try:
        if prefix == _SLICE_PREFIX:
            return SliceCap(
                pack=_build_pack(found[:5]), offset=int(found[5]), length=int(found[6]), key=_bytes(found[7])
            )
        return SequenceCap(
            size=int(found[0]), table=_build_lit(found[6:]) if found[1] is None else _build_chk(found[1:6])
        )
    except FormatError as error:
        raise CapError(f"this capability is malformed: {error}") from None


def _check_permitted(writes: bool, mutable: bool, can_write: bool, can_mutate: bool) -> None:
    if (writes and not can_write) or (mutable and not can_mutate):
        if not can_mutate:
            raise MustBeDeepImmutableError("only an immutable capability is allowed here, and this one is mutable")
        raise MustBeReadOnlyError("only a read capability is allowed here, and this is a write capability")


def require_usable(cap: Cap) -> KnownCap:
    """Return the cap if a file can have its numbers; CapError otherwise, and for unknown caps.

    1 <= needed <= total <= 256 and 1 <= size <= limits.MAX_FILE_SIZE, because an empty file is literal. A slice must lie in its
    pack, and the table of a sequence has at most limits.MAX_SEQUENCE_TABLE_SIZE bytes. [spec extents 2, 4]
    """
    if isinstance(cap, UnknownCap):
        raise CapError(
            str(cap.error)
            if cap.error
            else "this capability is of an unknown kind; a newer version of Grid may support it"
        )
    if isinstance(cap, SliceCap):
        require_usable(cap.pack)
        _require_slice(cap)
        return cap
    if isinstance(cap, SequenceCap):
        require_usable(cap.table)
        _require_sequence(cap)
        return cap
    body = cap.body if isinstance(cap, DirectoryCap) else cap
    if isinstance(body, ChkCap | ChkVerifyCap):
        if not 1 <= body.needed <= body.total <= MAX_SHARES:
            raise CapError(
                f"this capability is damaged: no file can have {counted(body.total, 'share')} of which {counted(body.needed, 'is', 'are')} needed. Was it copied completely?"
            )
        if not 1 <= body.size <= MAX_FILE_SIZE:
            raise CapError(
                f"this capability is damaged: no file of {counted(body.size, 'byte')} is stored this way. Was it copied completely?"
            )
    return cap


def _require_slice(cap: SliceCap) -> None:
    if not cap.length:
        raise CapError("this capability is damaged: no slice of a pack is empty. Was it copied completely?")
    if cap.offset + cap.length > cap.pack.size:
        raise CapError(
            f"this capability is damaged: its slice ends at byte {cap.offset + cap.length}, but its pack has only {counted(cap.pack.size, 'byte')}. Was it copied completely?"
        )


def _require_sequence(cap: SequenceCap) -> None:
    if not 1 <= cap.size <= MAX_FILE_SIZE:
        raise CapError(
            f"this capability is damaged: no sequence has {counted(cap.size, 'byte')}. Was it copied completely?"
        )
    if cap.table.size > MAX_SEQUENCE_TABLE_SIZE:
        raise CapError(
            f"this sequence cannot be read: its table of {counted(cap.table.size, 'byte')} is larger than the limit"
        )


def has_cap_prefix(text: str) -> bool:
    """Whether the text is meant as a cap, not as an alias or a path. [spec caps 10]"""
    return text.startswith(("URI:", "ro.URI:", "imm.URI:"))


def is_literal(text: str) -> bool:
    """Whether the text begins like a literal cap."""
    return text.startswith(("URI:LIT:", "ro.URI:LIT:", "imm.URI:LIT:"))
