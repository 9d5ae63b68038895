"""A private file that keeps what pages can undo while the gateway does not run. (decision 359)

Each change is encrypted with a key made of the write capability of its directory, so that the file gives its reader no
capability that they do not have already. It owns the file: JSON lines that are only appended, rewritten when most of
them are outdated, and refused if others can read or change them. Without the file, changes are remembered in memory only.

Cost: one append per change, and a rewrite of at most MAX_FILE bytes per hundred changes.
"""

from __future__ import annotations

import json
import os
import re
import stat
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from grid.caps import DirectoryCap, UnknownCap, UnknownChild, parse_cap, settle_unknown_child
from grid.crypto.hashing import tagged_hash
from grid.directory.metadata import pack_metadata
from grid.directory.names import normalize_name
from grid.directory.pack import Child, Target
from grid.errors import FormatError, GridError
from grid.values import define, field, frozen

MAX_LINE = 2**18
"""Bytes of a line. A larger change is remembered until the gateway stops."""

MAX_FILE = 64 * 2**20
"""Bytes of a file that is read: more than twice what a hundred changes take."""

_TAG = b"grid_undo_of_pages_v1"
_NONCE_SIZE = 12
_HEAD = re.compile(rb'\{"number": ([1-9][0-9]{0,15}), ')


@frozen(kw_only=True)
class SealedChange:
    """A change that only the directory's write capability opens. index: the directory's storage index."""

    number: int
    index: bytes = field(repr=False)
    time: float
    sealed: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return len(self.sealed)


Entries = Sequence[tuple[str, Child, Target | None]]
"""The name of each entry, what it was, and what the change left there."""


def seal(cap: DirectoryCap, number: int, entries: Entries, nonce: bytes) -> bytes:
    """Encrypt entries of a change. cap: the directory's write capability. nonce: random."""
    plain = json.dumps(
        [[name, _describe(old.target), dict(old.metadata), _describe(new)] for name, old, new in entries]
    )
    return nonce + AESGCM(_key(cap)).encrypt(nonce, plain.encode("ascii"), b"%d" % number)


def unseal(cap: DirectoryCap, change: SealedChange) -> list[tuple[str, Child, Target | None]]:
    """The entries of a change; FormatError unless the capability is the one that sealed them."""
    nonce, sealed = change.sealed[:_NONCE_SIZE], change.sealed[_NONCE_SIZE:]
    try:
        value = json.loads(AESGCM(_key(cap)).decrypt(nonce, sealed, b"%d" % change.number))
    except (InvalidTag, ValueError, RecursionError):
        raise FormatError("not a change of this directory") from None
    return [_parse_entry(each) for each in value]


@define(eq=False)
class UndoFile:
    """The file, which need not exist yet. After an error of the disk, `warn` is called once, and the file left alone."""

    path: Path
    _random: Callable[[int], bytes] = field(repr=False)
    _warn: Callable[[str], None] = field(repr=False)
    _line_count: int = 0
    _size: int = 0
    _is_broken: bool = False

    def load(self) -> list[SealedChange]:
        """The changes in the file, the oldest first; none if it cannot be used."""
        lines = self._read()
        self._count(lines)
        found: dict[int, SealedChange] = {}
        for line in lines:
            change = _parse_line(line)
            if isinstance(change, SealedChange):
                found[change.number] = change
            elif change is not None:
                found.pop(change, None)
        return [found[number] for number in sorted(found)]

    def add(self, cap: DirectoryCap, index: bytes, number: int, time: float, entries: Entries) -> None:
        """Append a change."""
        sealed = b64encode(seal(cap, number, entries, self._random(_NONCE_SIZE))).decode("ascii")
        line = json.dumps({"number": number, "time": time, "index": index.hex(), "sealed": sealed}).encode("ascii")
        if len(line) < MAX_LINE:
            self._append(line)

    def drop(self, number: int) -> None:
        """Note that a change is forgotten."""
        self._append(json.dumps({"number": number, "is": "dropped"}).encode("ascii"))

    def trim(self, kept: Collection[int]) -> None:
        """Rewrite the file if most of its lines are outdated. kept: the numbers of the changes that are remembered."""
        is_small = self._line_count <= 2 * len(kept) + 100 and self._size <= MAX_FILE - 2 * MAX_LINE
        if self._is_broken or is_small:
            return
        dropped = {number for line in self._read() if isinstance(number := _parse_line(line), int)}
        lines = [line for line in self._read() if (number := _number(line)) in kept and number not in dropped]
        temporary = self.path.with_name(f"{self.path.name}.new")
        try:
            with suppress(FileNotFoundError):
                temporary.unlink()
            self._write(temporary, b"".join(line + b"\n" for line in lines), os.O_EXCL)
            temporary.replace(self.path)
        except OSError as error:
            self._give_up(error)
        self._count(lines)

    def _count(self, lines: Sequence[bytes]) -> None:
        self._line_count, self._size = len(lines), sum(map(len, lines)) + len(lines)

    def _append(self, line: bytes) -> None:
        if self._is_broken:
            return
        try:
            self._write(self.path, b"\n" * self._is_torn() + line + b"\n", os.O_APPEND)
            self._line_count += 1
            self._size += len(line) + 1
        except OSError as error:
            self._give_up(error)

    def _is_torn(self) -> bool:
        """Whether the file ends with a line whose writer was killed."""
        try:
            with self.path.open("rb") as file:
                return file.seek(0, os.SEEK_END) > 0 and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n"
        except FileNotFoundError:
            return False

    def _write(self, path: Path, data: bytes, flag: int) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flag, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)

    def _read(self) -> list[bytes]:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._give_up(error)
            return []
        try:
            self._require_own(os.fstat(descriptor))
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return [line for line in file.read(MAX_FILE).split(b"\n") if line]
        except OSError as error:
            self._give_up(error)
            return []
        finally:
            os.close(descriptor)

    def _require_own(self, about: os.stat_result) -> None:
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise OSError("others can read or change it, or it is not a regular file")
        if about.st_size > MAX_FILE:
            raise OSError("it is too large")

    def _give_up(self, error: OSError) -> None:
        if not self._is_broken:
            self._warn(f"changes cannot be kept for undo in {self.path}: {error.strerror or error}")
        self._is_broken = True


def _key(cap: DirectoryCap) -> bytes:
    return tagged_hash(_TAG, cap.to_string().encode("ascii"))


def _number(line: bytes) -> int | None:
    found = _HEAD.match(line)
    return None if found is None else int(found[1])


def _parse_line(line: bytes) -> SealedChange | int | None:
    """A change, the number of a dropped one, or None for a line that is neither, such as a torn one."""
    try:
        match json.loads(line):
            case {"number": int(number), "is": "dropped"}:
                return number
            case {"number": int(number), "time": float(time), "index": str(index), "sealed": str(sealed)}:
                return SealedChange(
                    number=number, time=time, index=bytes.fromhex(index), sealed=b64decode(sealed, validate=True)
                )
    except (ValueError, RecursionError):
        pass
    return None


def _describe(target: Target | None) -> list[str | None] | None:
    """The target's capabilities: the strongest one, or the write and read slots of an unknown child."""
    if target is None:
        return None
    if isinstance(target, UnknownChild):
        slots = (target.write, target.read)
        return [None if slot is None else slot.decode("utf-8", "surrogateescape") for slot in slots]
    return [target.to_string()]


def _parse_target(value: object) -> Target:
    match value:
        case [str(text)]:
            cap = parse_cap(text)
            if not isinstance(cap, UnknownCap):
                return cap
        case [write, read]:
            return settle_unknown_child(_slot(write), _slot(read))
    raise FormatError("not a capability")


def _slot(text: object) -> bytes | None:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else None


def _parse_entry(value: object) -> tuple[str, Child, Target | None]:
    match value:
        case [str(name), old, dict(metadata), new]:
            try:
                pack_metadata(metadata)  # Raises for metadata that no directory can hold.
                left = None if new is None else _parse_target(new)
                return normalize_name(name), Child(target=_parse_target(old), metadata=metadata), left
            except GridError:
                raise FormatError("a malformed entry") from None
    raise FormatError("a malformed entry")
