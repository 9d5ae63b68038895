"""The requests of our extension to the protocol: whole batches in one request. [grid.wire.http.format.frames]"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from grid.errors import ConflictingWriteError, DataTooLargeError, FormatError
from grid.limits import MAX_HTTP_ERROR_BODY, MAX_SHARES
from grid.ports import Buffer, Find, NewShares, Range, ShareNumber, ShareWrite, StorageIndex, StoreAnswer
from grid.wire.http.client import single_requests
from grid.wire.http.client.connection import LONG_BYTES, Discarder, Receiver
from grid.wire.http.client.requester import Access, HttpRequest, Reply, Requester
from grid.wire.http.client.spread import Direction
from grid.wire.http.format.authority import UPLOAD
from grid.wire.http.format.frames import AnswerParser, pack_write
from grid.wire.http.format.messages import ResponseHead
from grid.wire.http.format.routes import FIND_PATH, STORE_PATH, pack_path
from grid.wire.packed import find_messages
from grid.wire.packed.share_ranges import pack_ranges, pack_wants
from grid.wire.packed.slots import pack_slot_wants
from grid.wire.packed.store_messages import MAX_STORE_ANSWER, pack_stores, parse_store_answers

_WRITE_ERRORS = {409: ConflictingWriteError, 413: DataTooLargeError, 416: DataTooLargeError}

Found = dict[ShareNumber, list[Buffer]]


async def find_shares(requester: Requester, access: Access, index: StorageIndex, ranges: Sequence[Range]) -> Found:
    """Every share with those ranges. A share has no data if the server left it out because the answer would be too long."""
    path = pack_path(index, "immutable", "grid-find")
    return await _ask(requester, access, path, pack_ranges(ranges), AnswerParser(None, ranges), [ranges])


async def find_each(
    requester: Requester, access: Access, finds: Sequence[Find], path: bytes = FIND_PATH
) -> Sequence[find_messages.Found | None]:
    """The shares of each file: one request. path: SLOTS_PATH for mutable files."""
    request = HttpRequest(method=b"POST", path=path, body=(find_messages.pack_finds(finds),))
    reply = await requester.require(access, request, find_messages.MAX_FIND_ANSWER)
    try:
        return find_messages.parse_find_answers(reply.body, finds)
    except FormatError as error:
        raise requester.misbehaved(error) from error


async def read_shares(
    requester: Requester, access: Access, index: StorageIndex, wants: Mapping[ShareNumber, Sequence[Range]]
) -> Found:
    """The ranges of those shares that exist."""
    named = {number: ranges for number, ranges in wants.items() if ranges}
    path = pack_path(index, "immutable", "grid-read")
    wanted = named.values()
    found = await _ask(requester, access, path, pack_wants(named), AnswerParser(named), wanted) if named else {}
    if len(named) < len(wants):
        held = await single_requests.list_shares(requester, access, "immutable", index)
        found.update({number: [] for number in (wants.keys() - named.keys()) & held})
    return found


async def read_slot(
    requester: Requester, access: Access, index: StorageIndex, numbers: frozenset[ShareNumber], ranges: Sequence[Range]
) -> Found:
    """The ranges of those mutable shares that exist, all read at the same moment."""
    path = pack_path(index, "mutable", "grid-read")
    wants = dict.fromkeys(numbers, ranges) if numbers else None
    return await _ask(requester, access, path, pack_slot_wants(numbers, ranges), AnswerParser(wants, ranges))


async def _ask(
    requester: Requester,
    access: Access,
    path: bytes,
    body: bytes,
    parser: AnswerParser,
    wanted: Iterable[Sequence[Range]] = (),
) -> Found:
    def choose(head: ResponseHead) -> Receiver:
        return parser if head.status == 200 else Discarder(MAX_HTTP_ERROR_BODY)

    size = sum(length for ranges in wanted for _, length in ranges)
    request = HttpRequest(method=b"POST", path=path, body=(body,), most=_if_long(Direction.DOWN, size))
    head = await requester.send(access, request, choose)
    if head.status != 200:
        raise requester.refusal(Reply(head.status, head))
    try:
        return parser.finish()
    except FormatError as error:
        raise requester.misbehaved(error) from error


async def store_shares(requester: Requester, access: Access, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
    """Store whole shares of any number of files: one request."""
    # It may be sent again: shares stored by the first attempt then already exist, and count as well.
    request = HttpRequest(method=b"POST", path=STORE_PATH, body=(pack_stores(stores),))
    reply = await requester.require(access, request, MAX_STORE_ANSWER)
    try:
        return parse_store_answers(reply.body, len(stores))
    except FormatError as error:
        raise requester.misbehaved(error) from error


async def write_shares(
    requester: Requester, access: Access, index: StorageIndex, secret: bytes, writes: Sequence[ShareWrite]
) -> frozenset[ShareNumber]:
    """Store all writes. Returns the shares that these writes completed and closed."""
    body, _ = pack_write(writes)
    path = pack_path(index, "immutable", "grid-write")
    most = _if_long(Direction.UP, sum(write.size for write in writes))
    request = HttpRequest(method=b"POST", path=path, secrets={UPLOAD: secret}, body=body, most=most)
    reply = await requester.ask(access, request, MAX_SHARES)
    named = frozenset(write.share_number for write in writes)
    if reply.status == 404 and named <= await single_requests.list_shares(requester, access, "immutable", index):
        return named  # The answer to the same request was lost the first time.
    if reply.status != 200:
        raise requester.refusal(reply, _WRITE_ERRORS)
    complete = frozenset(map(ShareNumber, bytes(reply.body)))
    if not complete <= named:
        raise requester.misbehaved("shares complete that were not written to")
    return complete


def _if_long(direction: Direction, size: int) -> Direction | None:
    """The direction of that many bytes, if they need a quick connection."""
    return direction if size >= LONG_BYTES else None
