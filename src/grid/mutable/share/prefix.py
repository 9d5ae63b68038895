"""The signed prefix of a share, which identifies a version and fixes its sizes. [spec mutable 6]

Pure. Shares with equal prefixes are of one version, whatever their unsigned offsets say.
"""

from __future__ import annotations

import struct

from grid.errors import FormatError, UnknownVersionError
from grid.mutable.share.geometry import HASH_SIZE, MDMF_VERSION, SALT_SIZE, SDMF_VERSION, Geometry
from grid.ports import Buffer
from grid.values import field, frozen

SDMF_PREFIX = struct.Struct(">BQ32s16sBBQQ")
MDMF_PREFIX = struct.Struct(">BQ32sBBQQ")
LONGEST_PREFIX = SDMF_PREFIX.size
_IDENTITY = struct.Struct(">BQ32s")
SDMF_CHECKSTRING_SIZE = 57
MDMF_CHECKSTRING_SIZE = 41
MAX_SEQNUM = 2**64 - 1


@frozen(kw_only=True)
class Prefix:
    """seqnum: the sequence number. root_hash: over all shares. iv: 16 bytes for SDMF, empty for MDMF.

    k, n, segment_size and size are as parsed; `geometry` checks them.
    """

    version: int
    seqnum: int
    root_hash: bytes = field(repr=bytes.hex)
    iv: bytes = field(repr=bytes.hex)
    k: int
    n: int
    segment_size: int
    size: int

    @property
    def geometry(self) -> Geometry:
        """The sizes; FormatError if they are impossible."""
        return Geometry(version=self.version, size=self.size, k=self.k, n=self.n, segment_size=self.segment_size)

    @property
    def order(self) -> tuple[int, bytes]:
        """Decides which of two recoverable versions is newer. [spec mutable 10]"""
        return self.seqnum, self.root_hash

    @property
    def checkstring(self) -> bytes:
        """The start of the prefix, which identifies the version; test-and-set compares it."""
        return self.pack()[: checkstring_size(self.version)]

    @classmethod
    def of_version(cls, geometry: Geometry, *, seqnum: int, root_hash: bytes, iv: bytes) -> Prefix:
        """The prefix of a new version; FormatError if the sequence numbers are used up."""
        if not 0 < seqnum <= MAX_SEQNUM:
            raise FormatError("the file's sequence numbers are used up; it cannot be written any more")
        return cls(
            version=geometry.version,
            seqnum=seqnum,
            root_hash=root_hash,
            iv=iv,
            k=geometry.k,
            n=geometry.n,
            segment_size=geometry.segment_size,
            size=geometry.size,
        )

    def pack(self) -> bytes:
        """The bytes that are signed."""
        sizes = (self.k, self.n, self.segment_size, self.size)
        if self.version == SDMF_VERSION:
            return SDMF_PREFIX.pack(SDMF_VERSION, self.seqnum, self.root_hash, self.iv, *sizes)
        return MDMF_PREFIX.pack(MDMF_VERSION, self.seqnum, self.root_hash, *sizes)


def checkstring_size(version: int) -> int:
    """Bytes of the checkstring of that share version."""
    return SDMF_CHECKSTRING_SIZE if version == SDMF_VERSION else MDMF_CHECKSTRING_SIZE


def prefix_size(version: int) -> int:
    """Bytes of the signed prefix of that share version."""
    return SDMF_PREFIX.size if version == SDMF_VERSION else MDMF_PREFIX.size


def parse_prefix(data: Buffer) -> Prefix:
    """Parse the prefix at the start of a share; FormatError, and UnknownVersionError for other formats."""
    if not data:
        raise FormatError("the share is empty")
    version = data[0]
    if version not in {SDMF_VERSION, MDMF_VERSION}:
        raise UnknownVersionError(f"the share is of version {version}, which this code does not know")
    if len(data) < prefix_size(version):
        raise FormatError("the share ends within its header")
    if version == SDMF_VERSION:
        _, seqnum, root_hash, iv, *sizes = SDMF_PREFIX.unpack_from(data)
    else:
        _, seqnum, root_hash, *sizes = MDMF_PREFIX.unpack_from(data)
        iv = b""
    k, n, segment_size, size = sizes
    prefix = Prefix(
        version=version,
        seqnum=seqnum,
        root_hash=root_hash,
        iv=iv,
        k=k,
        n=n,
        segment_size=segment_size,
        size=size,
    )
    _ = prefix.geometry
    return prefix


def parse_identity(data: Buffer) -> tuple[int, bytes] | None:
    """(sequence number, root hash) from a checkstring or a share's front; None if it is neither SDMF nor MDMF."""
    if len(data) < _IDENTITY.size or data[0] not in {SDMF_VERSION, MDMF_VERSION}:
        return None
    _, seqnum, root_hash = _IDENTITY.unpack_from(data)
    return seqnum, root_hash


assert LONGEST_PREFIX == 75 and MDMF_PREFIX.size == 59 and HASH_SIZE + SALT_SIZE + 9 == SDMF_CHECKSTRING_SIZE
