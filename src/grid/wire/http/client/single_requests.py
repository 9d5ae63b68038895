"""The requests of 1.20 servers: one per range, write and share, all sent at once. [spec wire 17, 18]"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from grid.errors import ConflictingWriteError, DataTooLargeError, FormatError, PeerRefusedError
from grid.limits import MAX_HTTP_ERROR_BODY
from grid.ports import Buffer, Range, ShareKind, ShareNumber, ShareWrite, StorageIndex
from grid.wire.http.client.connection import Collector, Discarder, Receiver
from grid.wire.http.client.requester import Access, HttpRequest, Reply, Requester, all_of
from grid.wire.http.format.answers import parse_numbers, parse_required
from grid.wire.http.format.authority import UPLOAD
from grid.wire.http.format.messages import ResponseHead, first_value
from grid.wire.http.format.ranges import pack_content_range, pack_range, parse_content_range
from grid.wire.http.format.routes import pack_path

Fetch = Callable[[Access, bytes, int, int], Coroutine[Any, Any, Buffer | None]]
"""Fetches the bytes at an offset, given access, path, offset and length; None if the share does not exist."""

SERVER_FAILED = "HTTP 500"

_WRITE_ERRORS = {409: ConflictingWriteError, 413: DataTooLargeError, 416: DataTooLargeError}


async def list_shares(
    requester: Requester, access: Access, kind: ShareKind, index: StorageIndex
) -> frozenset[ShareNumber]:
    """The finished shares of that storage index."""
    reply = await requester.require(access, HttpRequest(method=b"GET", path=pack_path(index, kind, "shares")))
    try:
        return parse_numbers(reply.body)
    except FormatError as error:
        raise requester.misbehaved(error) from error


async def read_ranges(
    requester: Requester,
    access: Access,
    kind: ShareKind,
    index: StorageIndex,
    wants: Mapping[ShareNumber, Sequence[Range]],
    fetch: Fetch | None = None,
) -> dict[ShareNumber, list[Buffer]]:
    """Read those ranges; missing shares are left out. One request per share and run of ranges, all at once.

    A share that the server fails to read has no ranges, unless all of them fail.
    fetch: how to get a range, if not by a request of its own.
    """
    fetch = fetch or partial(fetch_range, requester)
    idle = [number for number, ranges in wants.items() if not any(length for _, length in ranges)]
    held = await list_shares(requester, access, kind, index) if idle else frozenset()
    fetches = [(number, run) for number, ranges in wants.items() for run in plan_fetches(ranges)]
    answers = await all_of(
        _refusal_or(fetch(access, pack_path(index, kind, number), offset, length))
        for number, (offset, length) in fetches
    )
    fetched: dict[ShareNumber, dict[Range, Buffer]] = {}
    missing: set[ShareNumber] = set(idle) - held
    refused: dict[ShareNumber, PeerRefusedError] = {}
    for (number, run), answer in zip(fetches, answers, strict=True):
        if answer is None:
            missing.add(number)
        elif isinstance(answer, PeerRefusedError):
            refused[number] = answer
        else:
            fetched.setdefault(number, {})[run] = answer
    if refused and refused.keys() == wants.keys():
        raise next(iter(refused.values()))
    return {
        number: [] if number in refused else cut_ranges(ranges, fetched.get(number, {}))
        for number, ranges in wants.items()
        if number not in missing
    }


async def _refusal_or(fetched: Coroutine[Any, Any, Buffer | None]) -> Buffer | PeerRefusedError | None:
    """What is fetched, or the error of a server that fails to read this share."""
    try:
        return await fetched
    except PeerRefusedError as error:
        if error.kind != SERVER_FAILED:
            raise
        return error


async def fetch_range(requester: Requester, access: Access, path: bytes, offset: int, length: int) -> Buffer | None:
    """Those bytes of a share, cut at its end; None if the share does not exist."""
    request = HttpRequest(method=b"GET", path=path, headers=((b"Range", pack_range(offset, length)),))
    collector = Collector(length, requester.where)

    def choose(head: ResponseHead) -> Receiver:
        if head.status in (206, 204):
            return collector
        if head.status < 300:
            raise requester.misbehaved(f"status {head.status} for a range")
        return Discarder(MAX_HTTP_ERROR_BODY)

    head = await requester.send(access, request, choose)
    if head.status == 404:
        return None
    if head.status >= 300:
        raise requester.refusal(Reply(head.status, head))
    body = collector.body
    if head.status == 206:
        _check_range(requester, head, (offset, length), len(body))
    elif len(body):
        raise requester.misbehaved("bytes in an empty answer")
    return body


def _check_range(requester: Requester, head: ResponseHead, asked: Range, size: int) -> None:
    try:
        given = parse_content_range(first_value(head.headers, b"content-range") or b"")
    except FormatError as error:
        raise requester.misbehaved(error) from error
    if given[0] != asked[0] or given[1] > asked[1] or given[1] != size:
        raise requester.misbehaved("not the range that was asked for")


async def write_share(
    requester: Requester, access: Access, index: StorageIndex, secret: bytes, write: ShareWrite
) -> bool:
    """Store those bytes. Returns whether this completed and closed the share."""
    request = HttpRequest(
        method=b"PATCH",
        path=pack_path(index, "immutable", write.share_number),
        secrets={UPLOAD: secret},
        headers=((b"Content-Range", pack_content_range(write.offset, write.size)),),
        body=write.pieces,
    )
    reply = await requester.ask(access, request)
    if reply.status in (200, 201):
        try:
            parse_required(reply.body)
        except FormatError as error:
            raise requester.misbehaved(error) from error
        return reply.status == 201
    if reply.status == 404 and write.share_number in await list_shares(requester, access, "immutable", index):
        return True  # The answer to the same request was lost the first time.
    raise requester.refusal(reply, _WRITE_ERRORS)


async def find_missing(
    requester: Requester, access: Access, index: StorageIndex, secret: bytes, number: ShareNumber, size: int
) -> list[tuple[int, int]] | None:
    """What an upload begun with this secret has yet to store of its share: (begin, end), ascending; None if there is none.

    The server says so only when it is given bytes: it gets the first one, which is zero in every immutable share.
    """
    request = HttpRequest(
        method=b"PATCH",
        path=pack_path(index, "immutable", number),
        secrets={UPLOAD: secret},
        headers=((b"Content-Range", pack_content_range(0, 1)),),
        body=(b"\0",),
    )
    reply = await requester.ask(access, request)
    if reply.status not in (200, 201):
        return None
    try:
        gaps = parse_required(reply.body)
    except FormatError as error:
        raise requester.misbehaved(error) from error
    edges = [edge for gap in gaps for edge in gap]
    if edges != sorted(edges) or (edges and edges[-1] > size):
        raise requester.misbehaved("gaps in a share that are out of order, or behind its end")
    return gaps


async def abort_shares(
    requester: Requester, access: Access, index: StorageIndex, secret: bytes, share_numbers: Collection[ShareNumber]
) -> None:
    """Abort these shares; those that are no longer being uploaded are ignored."""

    async def abort(number: ShareNumber) -> None:
        path = pack_path(index, "immutable", number, "abort")
        reply = await requester.ask(access, HttpRequest(method=b"PUT", path=path, secrets={UPLOAD: secret}, body=()))
        if reply.status >= 300 and reply.status not in (404, 405):
            raise requester.refusal(reply)

    await all_of(abort(number) for number in share_numbers)


MERGE_GAP = 2048
"""Gaps of up to this many bytes are read too, to save a request, which costs some 500 us."""


def plan_fetches(ranges: Sequence[Range]) -> list[Range]:
    """Disjoint ascending ranges that cover the given ones; empty ranges need none."""
    fetches: list[Range] = []
    for offset, length in sorted(item for item in ranges if item[1]):
        if fetches:
            start, size = fetches[-1]
            if offset <= start + size + MERGE_GAP:
                fetches[-1] = (start, max(size, offset + length - start))
                continue
        fetches.append((offset, length))
    return fetches


def cut_ranges(ranges: Sequence[Range], fetched: Mapping[Range, Buffer]) -> list[Buffer]:
    """Cut the given ranges out of the fetched ones (those of plan_fetches); shorter where an answer was."""
    pieces: list[Buffer] = []
    starts = sorted(fetched)
    for offset, length in ranges:
        piece: Buffer = b""
        for start, size in starts if length else ():
            if start <= offset < start + size:
                data = fetched[start, size]
                exact = (start, size) == (offset, length)
                piece = data if exact else memoryview(data)[offset - start : offset - start + length]
                break
        pieces.append(piece)
    return pieces
