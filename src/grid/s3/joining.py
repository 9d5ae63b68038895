"""Joins uploaded parts into one object: selects the parts, and computes contents, ETag and checksums. Pure.

The object is a sequence: a table of its parts, each of which remains its own file. [spec extents 3]
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise

from grid.caps import ChkCap, KnownCap, LitCap, SequenceCap, SliceCap
from grid.extents.table import Part, Table
from grid.limits import MAX_SEQUENCE_PARTS
from grid.s3.checksums import ALGORITHMS, Digests, combine, is_checksum
from grid.s3.documents import Element
from grid.s3.faults import S3Fault, invalid_argument
from grid.s3.object_info import MAX_PARTS, StoredObject
from grid.values import field, frozen

MAX_ELEMENTS = 6 * MAX_PARTS
"""Elements of the document that names the parts."""

LEAST_PART = 5 * 2**20
"""The least size in bytes of each part but the last, as in S3."""


@frozen(kw_only=True)
class WantedPart:
    """A part as the client names it."""

    number: int
    etag: str
    checksums: Mapping[str, str] = field(factory=dict)


def parse_wanted(root: Element) -> list[WantedPart]:
    """The parts named by a client's document; MalformedXML, InvalidPart, InvalidPartOrder."""
    wanted = [_wanted(each) for each in root.all("Part")]
    if not 0 < len(wanted) <= MAX_PARTS:
        raise S3Fault("MalformedXML")
    if any(before.number >= after.number for before, after in pairwise(wanted)):
        raise S3Fault("InvalidPartOrder")
    return wanted


def _wanted(part: Element) -> WantedPart:
    number, etag = (part.get("PartNumber") or "").strip(), (part.get("ETag") or "").strip().strip('"')
    digits = number.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 6) or not etag:
        raise S3Fault("MalformedXML")
    stated = {name: value for name in ALGORITHMS if (value := part.get(f"Checksum{name.upper()}"))}
    if len(stated) > 1 or not all(is_checksum(name, value) for name, value in stated.items()):
        said = "".join(f"{name.upper()}:{value};" for name, value in stated.items()) if len(stated) > 1 else ""
        message = "Invalid Base64 or multiple checksums present in request"
        raise invalid_argument("Checksum", said or min(stated.values()), message)
    if int(number) < 1:
        raise invalid_argument("PartNumber", number, "PartNumber must be >= 1")
    return WantedPart(number=int(number), etag=etag, checksums=stated)


def require_checksums(wanted: Sequence[WantedPart], algorithm: str) -> None:
    """Raise InvalidRequest if a part is named without a checksum of this algorithm; "" for none."""
    for each in wanted:
        if algorithm and not each.checksums:
            raise S3Fault(
                "InvalidRequest",
                f"The upload was created using a {algorithm} checksum. The complete request must include the checksum"
                f" for each part. It was missing for part {each.number} in the request.",
            )


def choose_parts(wanted: Sequence[WantedPart], present: Mapping[int, StoredObject]) -> list[StoredObject]:
    """Select the object's parts; InvalidPart, EntityTooSmall."""
    chosen = []
    for each in wanted:
        part = present.get(each.number)
        if part is None or part.info.etag != each.etag:
            raise S3Fault("InvalidPart")
        for name, value in each.checksums.items():
            known = part.info.checksums
            if known and name not in known:
                message = f"The {name} you specified for part {each.number} did not match what we received."
                raise S3Fault("BadDigest", message)
            if known.get(name, value) != value:
                raise S3Fault("InvalidPart")
        chosen.append(part)
    if any((part.size or 0) < LEAST_PART for part in chosen[:-1]):
        raise S3Fault("EntityTooSmall")
    return chosen


def joined_etag(etags: Sequence[str]) -> str:
    """The ETag of a multipart object; InvalidPart if a part's ETag is impossible."""
    try:
        whole = b"".join(bytes.fromhex(etag.partition("-")[0]) for etag in etags)
    except ValueError:
        raise S3Fault("InvalidPart") from None
    return f"{hashlib.md5(whole, usedforsecurity=False).hexdigest()}-{len(etags)}"


def joined_checksum(algorithm: str, checksum_type: str, parts: Sequence[StoredObject]) -> str:
    """The checksum of the whole object, from those of its parts; InvalidPart if one is missing. Slow for many parts."""
    found = [part.info.checksums.get(algorithm) for part in parts]
    raw = [base64.b64decode(each.partition("-")[0]) for each in found if each is not None]
    if len(raw) != len(parts):
        raise S3Fault("InvalidPart", f"One of the parts has no checksum {algorithm.upper()}.")
    if checksum_type != "FULL_OBJECT":
        digests = Digests([algorithm])
        digests.update(b"".join(raw))
        return f"{digests.checksums[algorithm]}-{len(parts)}"
    whole = combine(algorithm, [(each, part.size or 0) for each, part in zip(raw, parts, strict=True)])
    return base64.b64encode(whole).decode()


def runs_of(sizes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Run-length encode the sizes: pairs of a size and how often it repeats."""
    runs: list[tuple[int, int]] = []
    for size in sizes:
        if runs and runs[-1][0] == size:
            runs[-1] = size, runs[-1][1] + 1
        else:
            runs.append((size, 1))
    return tuple(runs)


def pieces_of(target: KnownCap, start: int, stop: int, table: Table | None) -> list[Part]:
    """Bytes start .. stop of a file as parts of a sequence. table: of a sequence. NotImplemented for a mutable file."""
    if start == stop:
        return []
    if isinstance(target, SequenceCap):
        assert table is not None
        return list(table.between(start, stop))
    if not isinstance(target, LitCap | ChkCap | SliceCap):
        raise S3Fault("NotImplemented", "Grid does not copy mutable files.")
    if isinstance(target, LitCap):
        return [Part.whole(LitCap(data=target.data[start:stop]))]
    return [Part(cap=target, offset=start, length=stop - start)]


def single_file(pieces: Sequence[Part]) -> KnownCap | None:
    """The file that equals all pieces together, if there is one; None if a sequence is needed.

    InvalidRequest for too many pieces.
    """
    if not pieces:
        return LitCap(data=b"")
    if len(pieces) > MAX_SEQUENCE_PARTS:
        raise S3Fault("InvalidRequest", "The object would be made of too many copied ranges; upload it again.")
    only = pieces[0]
    return only.cap if len(pieces) == 1 and only == Part.whole(only.cap) else None
