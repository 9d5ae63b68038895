"""Answers GET and HEAD for a file: contents, ranges, entity tags, JSON and information. [spec webapi 3, 4.1]"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve

from grid.caps import ChkCap, KnownCap, LitCap, SequenceCap, SliceCap, UnknownChild
from grid.directory.node_json import describe_file
from grid.directory.pack import Child
from grid.errors import ConflictError, GridError, NotEnoughSharesError, UnknownWriteCapError
from grid.gateway.content_type import UNNAMED, attachment, content_type
from grid.gateway.faults import BadRequest, Gone, Headers, RangeNotSatisfiable
from grid.gateway.files.file_pages import markdown_page, share_page
from grid.gateway.http.answers import (
    EMBEDDABLE,
    Answer,
    AnyAnswer,
    StreamedAnswer,
    json_answer,
    page,
    plain_cap,
    warned,
)
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.ranges_and_tags import ByteRange, RangeBeyondEndError, entity_tag, is_held, parse_range
from grid.gateway.pages.entries import find_neighbors, info_path, order_arguments, parse_order
from grid.gateway.pages.info import neighbor_links, render_info, render_upload_results
from grid.gateway.pages.links import object_path, with_arguments
from grid.gateway.pages.markup import join
from grid.gateway.pages.shell import crumbs
from grid.ports import Sink
from grid.runtime import run_sized
from grid.sinks import BytesSink
from grid.values import frozen


def upload_page(cap: KnownCap, name: str = "") -> Answer:
    """The page shown after an unlinked immutable file is stored. name: the file's name on the sender's machine."""
    return page(render_upload_results(cap, name))


async def get_info(exchange: Exchange, child: Child, name: str, siblings: Mapping[str, Child] | None = None) -> Answer:
    """Describe a file or an object of unknown kind.

    name: of the file, "" if it has none. siblings: the children of its directory, if it was found by a path.
    """
    if not isinstance(child.target, UnknownChild):
        exchange.gateway.require_allowed(child.target)
    size = await size_if_known(exchange, child)
    shown = exchange.arguments.shown("filename") or name
    _note_name(exchange, child, shown)
    if siblings is None:
        return page(render_info(child, size, shown, is_visit=exchange.is_visit))
    root, *names = exchange.segments[1:]
    key, descending = parse_order(exchange.arguments.shown("sort"), exchange.arguments.shown("order"))
    cpu = exchange.gateway.store.runtime.cpu
    near = await run_sized(cpu, len(siblings), find_neighbors, siblings, name, key, descending)
    order = order_arguments(key, descending)

    def address(other: str) -> str:
        return with_arguments(object_path(root, (*names[:-1], other)), t="info", **order)

    way = join(crumbs(root, names, last=address(names[-1])), neighbor_links(near, address))
    return page(render_info(child, size, shown, way, is_visit=exchange.is_visit))


WHOLE_SIZE = 2**20
"""If the requested part of a mutable file is no longer than this, all of it is read before the answer begins, which saves
asking for the size separately. Of a longer part nothing is read before that but the size.
"""


async def get_file(exchange: Exchange, child: Child, *, name: str = "", by_path: bool) -> AnyAnswer:
    """Answer a GET or HEAD of a file or of an object of unknown kind.

    name: the last name of its path, which determines its type. by_path: whether it was found in a directory.
    """
    view = exchange.arguments.t
    if exchange.method == "HEAD" and view:
        raise BadRequest("HEAD takes no t=")
    _note_name(exchange, child, exchange.arguments.shown("filename") or name)
    if view == "json":
        return await _json(exchange, child, by_path)
    if view == "info":
        return await get_info(exchange, child, name)
    target = child.target
    if isinstance(target, UnknownChild):
        raise BadRequest(why_unknown(target))
    if target.authority == "verify":
        raise BadRequest("a verify capability can check this file, but not read it; t=json and t=info describe it")
    tag = entity_tag(target, view, by_path=by_path)
    match view:
        case "":
            return await file_contents(exchange, target, name, tag)
        case "preview":
            return await markdown_page(exchange, target, exchange.arguments.shown("filename") or name)
        case "share":
            shown = exchange.arguments.shown("filename") or name
            return await share_page(exchange, target, shown, info_path(target, shown))
        case "uri":
            return _tagged(exchange, plain_cap(target), tag)
        case "readonly-uri":
            return _tagged(exchange, plain_cap(target.read_cap()), tag)
    raise BadRequest(f"GET of a file: t={view!r} is not known")


def _note_name(exchange: Exchange, child: Child, name: str) -> None:
    """Note the name for the owner's pages, on which visitors of a read-only gateway have no say."""
    if not isinstance(child.target, UnknownChild) and not exchange.is_visit:
        exchange.gateway.history.names.note(child.target.storage_index, name)


def why_unknown(target: UnknownChild) -> str:
    """Explain why a capability in a URL leads to nothing readable."""
    if target.error is None or isinstance(target.error, UnknownWriteCapError):
        return "this gateway does not know this kind of capability. Was it copied completely?"
    return str(target.error)


async def _json(exchange: Exchange, child: Child, by_path: bool) -> Answer:
    target = child.target
    if isinstance(target, UnknownChild):
        return json_answer(describe_file(child, None, by_path=by_path))
    tag = entity_tag(target, "json", by_path=by_path)
    size = await size_if_known(exchange, child)
    warning = None
    if size is not None and target.is_mutable:
        warning = exchange.gateway.store.open_mutable(target).warning
    kind, properties = describe_file(child, size, by_path=by_path, warning=warning)
    if isinstance(properties, dict) and not exchange.gateway.is_allowed(target):
        properties.pop("size", None)
    return _tagged(exchange, json_answer([kind, properties]), tag)


async def size_if_known(exchange: Exchange, child: Child) -> int | None:
    """The size in bytes, or None if the file is lost or its capability does not say; the rest can still be shown."""
    target = child.target
    if isinstance(target, UnknownChild) or (target.is_mutable and target.authority == "verify"):
        return None
    try:
        exchange.gateway.require_allowed(target)
        return await exchange.gateway.store.size(target)
    except GridError:
        return None


def _tagged(exchange: Exchange, answer: Answer, tag: str | None) -> Answer:
    """Add the entity tag to the answer, or answer 304 if the client already has that version."""
    if tag is None:
        return answer
    if is_held(exchange.headers.get("if-none-match"), tag):
        return _not_modified(tag)
    return evolve(answer, headers=(*answer.headers, ("ETag", tag)))


def _not_modified(tag: str) -> Answer:
    return Answer(status=304, content_type="", headers=(*EMBEDDABLE, ("ETag", tag)))


@frozen(kw_only=True)
class _Contents:
    """The requested bytes: a range, or all `size` bytes. headers: derived from the file's name."""

    size: int
    range: ByteRange | None
    type: str
    headers: Headers

    @property
    def start(self) -> int:
        return self.range.start if self.range else 0

    @property
    def length(self) -> int:
        return self.range.length if self.range else self.size

    @property
    def status(self) -> int:
        return 206 if self.range else 200

    @property
    def all_headers(self) -> Headers:
        return (*self.headers, ("Content-Range", self.range.content_range(self.size))) if self.range else self.headers


async def file_contents(exchange: Exchange, cap: KnownCap, name: str, tag: str | None) -> AnyAnswer:
    """Answer a GET or HEAD of a file with its bytes, or the range that was requested. cap: not a verify capability.

    tag: the entity tag, None for no tag.
    """
    exchange.gateway.require_allowed(cap)
    if exchange.method != "HEAD" and tag is not None and is_held(exchange.headers.get("if-none-match"), tag):
        return _not_modified(tag)
    type, headers = _named_headers(exchange, name)
    if exchange.method == "HEAD":
        found = _choose(exchange, await exchange.gateway.store.size(cap), type, headers)
        return StreamedAnswer(found.status, type, found.length, found.all_headers, _write_nothing)
    if tag is not None:
        headers = (*headers, ("ETag", tag))
    if isinstance(cap, LitCap):
        found = _choose(exchange, cap.size, type, headers)
        return Answer(found.status, type, cap.data[found.start :][: found.length], found.all_headers)
    if isinstance(cap, ChkCap | SliceCap | SequenceCap):
        return _stream_immutable(exchange, cap, _choose(exchange, cap.size, type, headers))
    return await _mutable(exchange, cap, type, headers)


def _named_headers(exchange: Exchange, name: str) -> tuple[str, Headers]:
    """The media type, and the headers that do not depend on the size."""
    given = exchange.arguments.shown("filename") or name or UNNAMED
    found = content_type(given)
    headers: Headers = (*EMBEDDABLE, ("Accept-Ranges", "bytes"))
    if found.encoding is not None:
        headers = (*headers, ("Content-Encoding", found.encoding))
    if exchange.arguments.flag("save", False):
        headers = (*headers, ("Content-Disposition", attachment(given)))
    return found.type, headers


def _choose(exchange: Exchange, size: int, type: str, headers: Headers) -> _Contents:
    try:
        chosen = parse_range(exchange.headers.get("range"), size)
    except RangeBeyondEndError as error:
        raise RangeNotSatisfiable(str(error), headers=(("Content-Range", f"bytes */{size}"),)) from error
    return _Contents(size=size, range=chosen, type=type, headers=headers)


def _stream_immutable(exchange: Exchange, cap: ChkCap | SliceCap | SequenceCap, found: _Contents) -> StreamedAnswer:
    gateway = exchange.gateway

    async def write(sink: Sink) -> None:
        with gateway.history.download(cap.storage_index, found.length):
            await gateway.open_files.read(cap, sink, found.start, found.length, gateway.store.grid.observer)

    return StreamedAnswer(found.status, found.type, found.length, found.all_headers, write)


async def _mutable(exchange: Exchange, cap: KnownCap, type: str, headers: Headers) -> AnyAnswer:
    file, history = exchange.gateway.store.open_mutable(cap), exchange.gateway.history
    reading = _ShortReading(lambda size: _choose(exchange, size, type, headers))
    try:
        with history.retrieve(cap.storage_index) as operation:
            size = await file.read_chosen(reading.sink, reading.choose, likely=lambda size: _likely(exchange, size))
            # A long read continues as another operation, which streams.
            operation.is_listed = not reading.is_long
            operation.size = None if reading.is_long else size
    except NotEnoughSharesError as error:
        raise unrecoverable(error) from error
    found = reading.found
    if not reading.is_long:
        return warned(Answer(found.status, type, bytes(reading.sink.data), found.all_headers), file.warning)

    def choose_same(size: int) -> tuple[int, int]:
        if size != found.size:
            raise ConflictError("the file changed before it could be read; try again")
        return found.start, found.start + found.length

    async def write(sink: Sink) -> None:
        with history.retrieve(cap.storage_index, found.length):
            await file.read_chosen(sink, choose_same)

    return warned(StreamedAnswer(found.status, type, found.length, found.all_headers, write), file.warning)


class _ShortReading:
    """Reads the requested part of a mutable file before the answer begins, if that part is short; otherwise reads
    nothing.
    """

    def __init__(self, find: Callable[[int], _Contents]) -> None:
        self.sink = BytesSink()
        self._find = find
        self._found: _Contents | None = None

    @property
    def found(self) -> _Contents:
        """The requested bytes of the file that was read."""
        assert self._found is not None
        return self._found

    @property
    def is_long(self) -> bool:
        """Whether the part is too long to be read before the answer begins."""
        return self.found.length > WHOLE_SIZE

    def choose(self, size: int) -> tuple[int, int]:
        """Choose which part of a file of this size to read."""
        self._found = self._find(size)
        return (0, 0) if self.is_long else (self._found.start, self._found.start + self._found.length)


def _likely(exchange: Exchange, size: int) -> tuple[int, int] | None:
    """The likely range, given the file's last known size; None if it is empty or must be streamed."""
    try:
        chosen = parse_range(exchange.headers.get("range"), size)
    except RangeBeyondEndError:
        return None
    start, length = (chosen.start, chosen.length) if chosen else (0, size)
    return (start, length) if length <= WHOLE_SIZE else None


def unrecoverable(error: NotEnoughSharesError) -> Gone:
    """The fault for a mutable file without a readable version."""
    return Gone(str(error), kind="UnrecoverableFileError")


async def _write_nothing(sink: Sink) -> None:
    """The empty body of an answer to HEAD."""
