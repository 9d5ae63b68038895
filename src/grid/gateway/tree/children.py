"""Parses the children in a request's body, strictly and member by member. Pure. [spec webapi 5.4]

Owns which link a given pair of capabilities makes. The JSON library would parse a whole document in one call, holding
the interpreter lock: 64 MB of children take a second. Here each call sees one member of bounded size.
"""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping

from grid.caps import UnknownCap, parse_cap, settle_unknown_child
from grid.directory.edits import Overwrite, SetChild, read_only
from grid.directory.metadata import Metadata, pack_metadata
from grid.directory.names import normalize_name
from grid.directory.pack import Child, Target
from grid.errors import CapError, FormatError
from grid.limits import MAX_CAP_LENGTH, MAX_DIRECTORY_ENTRIES
from grid.values import field, frozen

WINDOWS = (2**12, 2**17, 2**20)
"""Sizes in bytes of the successive windows in which a name or value must end; one that exceeds the last is too long."""

_SPACE = re.compile(rb"[ \t\r\n]*")
_UTF8 = getincrementaldecoder("utf-8")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def read_members(data: bytes) -> Iterator[tuple[str, object]]:
    """Yield names with values; FormatError if the data is not a JSON object or a member is too long.

    Meant for members that are lists or objects: a number of thousands of digits may be truncated.
    """
    offset = _expect(data, 0, b"{")
    if data[offset : offset + 1] == b"}":
        _require_end(data, offset + 1)
        return
    while True:
        if data[offset : offset + 1] != b'"':
            raise FormatError("the body is not JSON in UTF-8: a name is missing")
        name, offset = _read(data, offset)
        offset = _expect(data, offset, b":")
        value, offset = _read(data, offset)
        yield str(name), value
        offset = _skip_space(data, offset)
        if data[offset : offset + 1] == b"}":
            _require_end(data, offset + 1)
            return
        offset = _expect(data, offset, b",")


def _read(data: bytes, offset: int) -> tuple[object, int]:
    """The value that begins at the offset, and the offset after it."""
    for window in WINDOWS:
        try:
            text = _UTF8().decode(data[offset : offset + window])
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError) as error:
            if offset + window >= len(data):
                raise FormatError("the body is not JSON in UTF-8") from error
            continue
        return value, offset + (end if text.isascii() else len(text[:end].encode("utf-8")))
    raise FormatError(f"the body is not JSON in UTF-8, or one child takes more than {WINDOWS[-1]} bytes of it")


def _expect(data: bytes, offset: int, sign: bytes) -> int:
    """The offset after the expected character."""
    offset = _skip_space(data, offset)
    if data[offset : offset + 1] != sign:
        raise FormatError(f"the body is not JSON in UTF-8, or not an object: {sign.decode()} is missing")
    return _skip_space(data, offset + 1)


def _require_end(data: bytes, offset: int) -> None:
    if _skip_space(data, offset) != len(data):
        raise FormatError("the body is not JSON in UTF-8: something follows the object")


def _skip_space(data: bytes, offset: int) -> int:
    found = _SPACE.match(data, offset)
    return offset if found is None else found.end()


@frozen(kw_only=True)
class GivenChild:
    """A link as given in the request. metadata: None if absent."""

    target: Target = field(repr=False)
    metadata: Metadata | None = None


def parse_children(data: bytes, *, immutable: bool, may_be_empty: bool) -> dict[str, GivenChild]:
    """Parse children by NFC name, in the given order; of two with the same name, the later counts.

    immutable: for an immutable directory. may_be_empty: an empty body means no children. FormatError; CapError, which
    names the child, for a capability that is not allowed there.
    """
    if may_be_empty and not data.strip():
        return {}
    children: dict[str, GivenChild] = {}
    for given, entry in read_members(data):
        name = normalize_name(given)
        children[name] = _parse_child(name, entry, immutable)
        if len(children) > MAX_DIRECTORY_ENTRIES:
            raise FormatError(f"a directory has at most {MAX_DIRECTORY_ENTRIES} children")
    return children


def as_edits(children: Mapping[str, GivenChild], overwrite: Overwrite) -> list[SetChild]:
    """Edits that set the children in an existing directory."""
    return [SetChild(name, given.target, given.metadata, overwrite) for name, given in children.items()]


def as_children(children: Mapping[str, GivenChild]) -> dict[str, Child]:
    """Children of a new directory, with their metadata as given."""
    return {name: Child(target=given.target, metadata=given.metadata or {}) for name, given in children.items()}


def settle_target(write: bytes | None, read: bytes | None, *, immutable: bool) -> Target:
    """The link target for a pair of capabilities; CapError. A write capability in the read slot loses its authority.

    If both are missing, the child is of unknown kind and empty: magic-folder records deletions this way.
    """
    cap = parse_cap(write or read or b"", deep_immutable=immutable)
    if not isinstance(cap, UnknownCap):
        if cap.authority == "verify":
            raise CapError("this is a verify capability; a directory needs one that can read")
        return cap if write else read_only(cap)
    unknown = settle_unknown_child(write, read, deep_immutable=immutable)
    if unknown.error is not None:
        raise cap.error or unknown.error  # The parser's error describes the input more precisely.
    return unknown


def _parse_child(name: str, entry: object, immutable: bool) -> GivenChild:
    if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[1], dict):
        raise FormatError(f"{name!r}: a child must be a list of a type and an object with properties")
    properties = entry[1]
    write, read = _slot(name, properties, "rw_uri"), _slot(name, properties, "ro_uri")
    metadata = properties.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise FormatError(f"{name!r}: metadata must be a JSON object")
    if metadata:
        pack_metadata(metadata)
    try:
        target = settle_target(write, read, immutable=immutable)
    except CapError as error:
        raise type(error)(f"{name!r}: {error}") from error
    return GivenChild(target=target, metadata=metadata)


def _slot(name: str, properties: Mapping[str, object], key: str) -> bytes | None:
    """The capability in a slot, or None."""
    value = properties.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise FormatError(f"{name!r}: {key} must be text")
    try:
        data = value.strip().encode("utf-8")
    except UnicodeEncodeError as error:
        raise FormatError(f"{name!r}: {key} must be Unicode text") from error
    if len(data) > MAX_CAP_LENGTH:
        raise FormatError(f"{name!r}: {key} is longer than any capability")
    return data or None
