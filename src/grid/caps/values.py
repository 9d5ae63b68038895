"""Capabilities: frozen values, their text, and attenuation from write to read to verify. [spec caps 3, 4, 6]

A weaker cap never gives access to what only the stronger one grants. No repr contains a key or a plaintext.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal, NewType, Self, TypeVar

from attrs import Attribute, field

from grid.codec import base32
from grid.crypto.hashing import tagged_hash
from grid.errors import CapError
from grid.values import frozen

StorageIndex = NewType("StorageIndex", bytes)
"""The 16 bytes that identify a file on the servers."""

Authority = Literal["write", "read", "verify"]

B = TypeVar("B", bound=bytes)


def _has_size(size: int) -> Callable[[object, Attribute[B], B], None]:
    """A validator. With those of the library, making a cap takes twice as long, and reading a directory makes thousands."""

    def check(_: object, attribute: Attribute[B], value: B) -> None:
        if len(value) != size:
            raise ValueError(f"{attribute.name} of a capability must have {size} bytes, not {len(value)}")

    return check


def _is_natural(_: object, attribute: Attribute[int], value: int) -> None:
    if value < 0:
        raise ValueError(f"{attribute.name} of a capability must not be negative")


def _secret() -> bytes:
    return field(repr=False, validator=_has_size(16))


def _digest() -> bytes:
    return field(repr=base32.encode, validator=_has_size(32))


def _number() -> int:
    return field(validator=_is_natural)


def _chk_text(first: bytes, cap: ChkCap | ChkVerifyCap) -> str:
    return f"{base32.encode(first)}:{base32.encode(cap.ueb_hash)}:{cap.needed}:{cap.total}:{cap.size}"


def _mutable_index(read_key: bytes) -> StorageIndex:
    return StorageIndex(tagged_hash(b"allmydata_mutable_readkey_to_storage_index_v1", read_key, 16))


class _CapBase:
    """What all known file caps have in common.

    authority: what the cap permits. is_mutable: whether the file that it reads may change. It has no ABC as its base: with one,
    checks of types take several times as long, and a listing makes five for each of its children.
    """

    __slots__ = ()

    prefix: ClassVar[str]
    authority: ClassVar[Authority]
    is_mutable: ClassVar[bool] = False

    @abstractmethod
    def fields_text(self) -> str:
        """What follows the prefix."""

    def to_string(self) -> str:
        """The cap as text, which grants all of its authority."""
        return self.prefix + self.fields_text()


@frozen(kw_only=True)
class LitCap(_CapBase):
    """A whole small file in the cap itself. data: its plaintext."""

    prefix = "URI:LIT:"
    directory_prefix = "URI:DIR2-LIT:"
    authority = "read"

    data: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return len(self.data)

    @property
    def storage_index(self) -> None:
        """None: nothing is stored on servers."""
        return None

    def fields_text(self) -> str:
        """What follows the prefix."""
        return base32.encode(self.data)

    def read_cap(self) -> LitCap:
        """The cap itself."""
        return self

    def verify_cap(self) -> None:
        """None: there is nothing to verify."""


@frozen(kw_only=True)
class ChkCap(_CapBase):
    """Reads an immutable file. key: 16 bytes; ueb_hash: 32 bytes; needed and total shares; size in bytes.

    The three numbers are as parsed: call require_usable before you use them.
    """

    prefix = "URI:CHK:"
    directory_prefix = "URI:DIR2-CHK:"
    authority = "read"

    key: bytes = _secret()
    ueb_hash: bytes = _digest()
    needed: int = _number()
    total: int = _number()
    size: int = _number()

    @property
    def storage_index(self) -> StorageIndex:
        """The storage index that identifies the file on servers."""
        return StorageIndex(tagged_hash(b"allmydata_immutable_key_to_storage_index_v1", self.key, 16))

    def fields_text(self) -> str:
        """What follows the prefix."""
        return _chk_text(self.key, self)

    def read_cap(self) -> ChkCap:
        """The cap itself."""
        return self

    def verify_cap(self) -> ChkVerifyCap:
        """The cap that checks and repairs the file without reading it."""
        return ChkVerifyCap(
            storage_index=self.storage_index,
            ueb_hash=self.ueb_hash,
            needed=self.needed,
            total=self.total,
            size=self.size,
        )


@frozen(kw_only=True)
class ChkVerifyCap(_CapBase):
    """Checks and repairs an immutable file; the numbers are as in ChkCap."""

    prefix = "URI:CHK-Verifier:"
    directory_prefix = "URI:DIR2-CHK-Verifier:"
    authority = "verify"

    storage_index: StorageIndex = field(repr=base32.encode, validator=_has_size(16))
    ueb_hash: bytes = _digest()
    needed: int = _number()
    total: int = _number()
    size: int = _number()

    def fields_text(self) -> str:
        """What follows the prefix."""
        return _chk_text(self.storage_index, self)

    def read_cap(self) -> ChkVerifyCap:
        """The cap itself."""
        return self

    def verify_cap(self) -> ChkVerifyCap:
        """The cap itself."""
        return self


@frozen(kw_only=True)
class _MutableWriteCap(_CapBase):
    """Writes a mutable file. write_key: 16 bytes; fingerprint: of its public key, 32 bytes."""

    authority = "write"
    is_mutable = True

    write_key: bytes = _secret()
    fingerprint: bytes = _digest()

    @property
    def read_key(self) -> bytes:
        """The 16-byte key that reads the file."""
        return tagged_hash(b"allmydata_mutable_writekey_to_readkey_v1", self.write_key, 16)

    @property
    def storage_index(self) -> StorageIndex:
        """The storage index that identifies the file on servers."""
        return _mutable_index(self.read_key)

    def fields_text(self) -> str:
        """What follows the prefix."""
        return f"{base32.encode(self.write_key)}:{base32.encode(self.fingerprint)}"


@frozen(kw_only=True)
class _MutableReadCap(_CapBase):
    """Reads a mutable file. read_key: 16 bytes; fingerprint: of its public key, 32 bytes."""

    authority = "read"
    is_mutable = True

    read_key: bytes = _secret()
    fingerprint: bytes = _digest()

    @property
    def storage_index(self) -> StorageIndex:
        """The storage index that identifies the file on servers."""
        return _mutable_index(self.read_key)

    def fields_text(self) -> str:
        """What follows the prefix."""
        return f"{base32.encode(self.read_key)}:{base32.encode(self.fingerprint)}"

    def read_cap(self) -> Self:
        """The cap itself."""
        return self


@frozen(kw_only=True)
class _MutableVerifyCap(_CapBase):
    """Checks a mutable file. storage_index: 16 bytes; fingerprint: of its public key, 32 bytes."""

    authority = "verify"

    storage_index: StorageIndex = field(repr=base32.encode, validator=_has_size(16))
    fingerprint: bytes = _digest()

    def fields_text(self) -> str:
        """What follows the prefix."""
        return f"{base32.encode(self.storage_index)}:{base32.encode(self.fingerprint)}"

    def read_cap(self) -> Self:
        """The cap itself."""
        return self

    def verify_cap(self) -> Self:
        """The cap itself."""
        return self


@frozen(kw_only=True)
class SdmfVerifyCap(_MutableVerifyCap):
    """Checks an SDMF file."""

    prefix = "URI:SSK-Verifier:"
    directory_prefix = "URI:DIR2-Verifier:"


@frozen(kw_only=True)
class SdmfReadCap(_MutableReadCap):
    """Reads an SDMF file."""

    prefix = "URI:SSK-RO:"
    directory_prefix = "URI:DIR2-RO:"

    def verify_cap(self) -> SdmfVerifyCap:
        """The cap that checks the file without reading it."""
        return SdmfVerifyCap(storage_index=self.storage_index, fingerprint=self.fingerprint)


@frozen(kw_only=True)
class SdmfWriteCap(_MutableWriteCap):
    """Writes an SDMF file."""

    prefix = "URI:SSK:"
    directory_prefix = "URI:DIR2:"

    def read_cap(self) -> SdmfReadCap:
        """The cap that reads the file without writing it."""
        return SdmfReadCap(read_key=self.read_key, fingerprint=self.fingerprint)

    def verify_cap(self) -> SdmfVerifyCap:
        """The cap that checks the file without reading it."""
        return self.read_cap().verify_cap()


@frozen(kw_only=True)
class MdmfVerifyCap(_MutableVerifyCap):
    """Checks an MDMF file."""

    prefix = "URI:MDMF-Verifier:"
    directory_prefix = "URI:DIR2-MDMF-Verifier:"


@frozen(kw_only=True)
class MdmfReadCap(_MutableReadCap):
    """Reads an MDMF file."""

    prefix = "URI:MDMF-RO:"
    directory_prefix = "URI:DIR2-MDMF-RO:"

    def verify_cap(self) -> MdmfVerifyCap:
        """The cap that checks the file without reading it."""
        return MdmfVerifyCap(storage_index=self.storage_index, fingerprint=self.fingerprint)


@frozen(kw_only=True)
class MdmfWriteCap(_MutableWriteCap):
    """Writes an MDMF file."""

    prefix = "URI:MDMF:"
    directory_prefix = "URI:DIR2-MDMF:"

    def read_cap(self) -> MdmfReadCap:
        """The cap that reads the file without writing it."""
        return MdmfReadCap(read_key=self.read_key, fingerprint=self.fingerprint)

    def verify_cap(self) -> MdmfVerifyCap:
        """The cap that checks the file without reading it."""
        return self.read_cap().verify_cap()


FileCap = (
    LitCap
    | ChkCap
    | ChkVerifyCap
    | SdmfWriteCap
    | SdmfReadCap
    | SdmfVerifyCap
    | MdmfWriteCap
    | MdmfReadCap
    | MdmfVerifyCap
)


@frozen
class DirectoryCap:
    """A directory. body: the cap of the file that stores it, which determines the authority."""

    body: FileCap

    @property
    def authority(self) -> Authority:
        """What the cap permits."""
        return self.body.authority

    @property
    def is_mutable(self) -> bool:
        """Whether the directory may change."""
        return self.body.is_mutable

    @property
    def storage_index(self) -> StorageIndex | None:
        """The storage index that identifies the directory on servers; None if the directory is in the cap itself."""
        return self.body.storage_index

    def to_string(self) -> str:
        """The cap as text, which grants all of its authority."""
        return self.body.directory_prefix + self.body.fields_text()

    def read_cap(self) -> DirectoryCap:
        """The cap that reads the directory without writing it."""
        return DirectoryCap(self.body.read_cap())

    def verify_cap(self) -> DirectoryCap | None:
        """The cap that checks the directory without reading it; None if there is nothing to check."""
        body = self.body.verify_cap()
        return None if body is None else DirectoryCap(body)


@frozen
class UnknownCap:
    """Bytes that are not a cap of a known kind, kept unchanged.

    error: why they cannot be a cap, or None if they may be a future one. Grants no authority, and has no storage
    index or size. Two are equal if their bytes are.
    """

    text: bytes = field(repr=False)
    error: CapError | None = field(default=None, eq=False)
