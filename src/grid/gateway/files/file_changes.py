"""PUT, POST and DELETE of a file: the entry at the end of a request's path. [spec webapi 4, 4.7, 4.8, 5.1]

Owns the choice between replacing contents in place and linking a new file. Every refusal happens before the body is
read, or, if early_upload.py has stored it meanwhile, before it is linked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from grid.caps import DirectoryCap, KnownCap, SdmfWriteCap, UnknownCap, UnknownChild, parse_cap, settle_unknown_child
from grid.directory.edits import Edit, RemoveChild, SetChild
from grid.directory.pack import Child, Target
from grid.errors import NotEnoughSharesError, NotWriteableError
from grid.gateway.faults import BadRequest, Conflict, NoSuchChild, NotImplementedHere
from grid.gateway.files.downloads import unrecoverable
from grid.gateway.files.uploads import (
    Arriving,
    NewFile,
    replace_contents,
    require_sdmf_size,
    spool_body,
    store_new,
    store_spooled,
)
from grid.gateway.history.operation import Operation
from grid.gateway.http.answers import Answer, cap_answer, check_when_done, redirect, warned
from grid.gateway.http.arguments import Replace, choose_format, parse_key_argument
from grid.gateway.http.exchange import Exchange
from grid.gateway.pages.entries import target_text
from grid.gateway.shared.home import is_local
from grid.gateway.shared.services import Services
from grid.gateway.shared.spool import Spool
from grid.limits import MAX_CAP_LENGTH, MAX_SDMF_BODY
from grid.values import field, frozen


class Parent(Protocol):
    """Where links are made: an existing directory, or directories that are created together with the link."""

    @property
    def is_writable(self) -> bool:
        """Whether links can be made and removed here."""

    async def edit(self, edits: Sequence[Edit]) -> Mapping[str, Child]:
        """Apply all edits or none. Return the replaced or removed children by name.

        Raises the errors of Directory.edit.
        """


@frozen(kw_only=True)
class PathEntry:
    """The end of a path. child: what is linked there, or None.

    parent: its directory, None for the root object of the URL.

    name: the link's name in NFC; "" without a parent.
    """

    child: Child | None = field(repr=False)
    parent: Parent | None = field(default=None, repr=False)
    name: str = ""

    @property
    def is_directory(self) -> bool:
        """Whether the child is a directory."""
        return self.child is not None and isinstance(self.child.target, DirectoryCap)

    @property
    def mutable_file(self) -> KnownCap | None:
        """The capability of the mutable file there; None if the child is anything else."""
        target = None if self.child is None else self.child.target
        if isinstance(target, KnownCap) and not isinstance(target, DirectoryCap) and target.is_mutable:
            return target
        return None


MAX_NAME = 300
"""Characters kept of the name of an upload."""

MAX_LABEL = 64
"""The longest label, in characters, that a client may give to an operation (`progress=`)."""


class WholeFile(Protocol):
    """A file whose bytes have all arrived."""

    def cap(self) -> Awaitable[KnownCap]:
        """Wait until it is stored; raises the errors of storing it."""

    def take_back(self) -> Spool:
        """Its bytes, if it is not to be stored as a new file."""


async def put_file(exchange: Exchange, entry: PathEntry, early: WholeFile | None = None) -> Answer:
    """PUT without `t`: replace the contents of the child, or link a new file under the entry's name.

    early: holds the body if it is already being stored, or arrived before.
    """
    arguments = exchange.arguments
    offset, replace = arguments.offset(), arguments.replace()
    if exchange.headers.get("content-range") is not None:
        raise NotImplementedHere("PUT does not support Content-Range; for mutable files, use offset=")
    file = _require_replaceable(entry, replace)
    if file is not None:
        exchange.gateway.require_allowed(file)
        if early is not None:
            await _replace(exchange, file, early.take_back(), offset)
        else:
            await _put_contents(exchange, file, offset)
        return warned(cap_answer(file), exchange.gateway.store.open_mutable(file).warning)
    if offset or (offset is not None and entry.child is not None):
        raise BadRequest("offset= is for mutable files: an immutable one is never changed")
    cap = await (store_body(exchange, new_file(exchange)) if early is None else early.cap())
    return await _link(entry, cap, "only-files" if replace else False)


async def put_cap(exchange: Exchange, entry: PathEntry) -> Answer:
    """PUT with `t=uri`: link the capability in the body. Always answers 200, whether or not a child was replaced."""
    replace = exchange.arguments.replace()
    if entry.parent is None:
        raise BadRequest("t=uri needs the path of a child: a bare capability cannot be replaced")
    _require_writable(entry)
    if (replace is False and entry.child is not None) or (replace == "only-files" and entry.is_directory):
        raise _exists(entry)
    text = await exchange.body.read_all(MAX_CAP_LENGTH)
    target = parse_target(text)
    await _link(entry, target, replace)
    return cap_answer(target_text(target))


async def post_file(exchange: Exchange, entry: PathEntry) -> Answer:
    """POST `t=upload` to an existing file: replace its contents, or link a new file in its place."""
    if entry.child is None:
        raise NoSuchChild(entry.name)
    _require_replaceable(entry, True)
    file = await required_form_file(exchange)
    return await put_form_file(exchange, entry, file, exchange.arguments.flag("replace", True))


async def required_form_file(exchange: Exchange) -> Spool:
    """Return the file of the request's form, and add the form's fields to the arguments; BadRequest without a file."""
    form = await exchange.form()
    if form.file is None:
        raise BadRequest("the form has no field `file` that holds a file")
    return form.file


async def put_form_file(exchange: Exchange, entry: PathEntry, spool: Spool, replace: Replace) -> Answer:
    """Store a form's file as new contents of the child, or link it as a new file under the entry's name."""
    location = when_done(exchange)
    file = _require_replaceable(entry, replace)
    if file is not None:
        exchange.gateway.require_allowed(file)
        await _replace(exchange, file, spool, None)
        answer = redirect(location) if location else cap_answer(file)
        return warned(answer, exchange.gateway.store.open_mutable(file).warning)
    cap = await store_form_file(exchange, new_file(exchange), spool)
    await _link(entry, cap, "only-files" if replace else False)
    return redirect(location) if location else cap_answer(cap)


async def delete_child(exchange: Exchange, entry: PathEntry) -> Answer:
    """DELETE: remove the link to a file or directory, and answer with the capability of the removed child."""
    if entry.parent is None:
        raise BadRequest("DELETE needs the path of a child: a bare capability cannot be removed")
    if entry.child is None:
        raise NoSuchChild(entry.name)
    previous = await entry.parent.edit([RemoveChild(entry.name)])
    target = previous.get(entry.name, entry.child).target
    return cap_answer(target_text(target))


def when_done(exchange: Exchange) -> str | None:
    """Return the URL to redirect to afterwards, or None for the usual answer; FormatError if it leads elsewhere.

    Call it before anything is changed and, for a POST, after its form was read.
    """
    url = exchange.arguments.text("when_done")
    return check_when_done(url, exchange.origin) if url else None


def new_file(exchange: Exchange) -> NewFile:
    """How the request wants a new file to be stored; BadRequest if its arguments contradict each other."""
    arguments = exchange.arguments
    format = arguments.format()
    chosen = choose_format(format, arguments.flag("mutable", False) if format is None else None)
    key = arguments.text("private-key")
    return NewFile(
        format=chosen,
        unique=arguments.flag("unique", False),
        key=parse_key_argument(key) if key is not None and chosen != "chk" else None,
    )


async def store_body(exchange: Exchange, new: NewFile) -> KnownCap:
    """Store the request's body as a new file."""
    gateway, body = exchange.gateway, exchange.body
    with _storing(gateway, new, body.size) as operation:
        operation.subject.label = (exchange.arguments.shown("progress") or "")[:MAX_LABEL]
        arriving = Arriving(size=body.size, chunks=_counted(gateway, operation, body.chunks()))
        cap = await store_new(gateway.store, gateway.settings.spools, gateway.stores, new, arriving)
        _note(operation, cap, body.received)
    _note_upload(exchange, cap, body.received)
    return cap


async def store_form_file(exchange: Exchange, new: NewFile, spool: Spool) -> KnownCap:
    """Store a file that was spooled, such as that of a form, as a new file."""
    gateway = exchange.gateway
    with _storing(gateway, new, spool.size) as operation:
        operation.subject.label = (exchange.arguments.shown("progress") or "")[:MAX_LABEL]
        cap = await store_spooled(gateway.store, gateway.stores, new, spool)
        _note(operation, cap, spool.size)
    _note_upload(exchange, cap, spool.size)
    return cap


def parse_target(text: bytes) -> Target:
    """Parse the capability to link; BadRequest if it cannot be linked."""
    text = text.strip()
    if not text:
        raise BadRequest("there is no capability in the request")
    cap = parse_cap(text)
    if not isinstance(cap, UnknownCap):
        return cap
    if cap.error is not None:
        raise cap.error
    unknown = settle_unknown_child(text, None)
    if unknown.error is not None:
        raise unknown.error
    return unknown


def _require_replaceable(entry: PathEntry, replace: Replace) -> KnownCap | None:
    """Return the mutable file whose contents are replaced, or None if a new file is linked.

    Raises if neither is allowed.
    """
    if entry.is_directory:
        raise BadRequest("there is a directory at this path, and a file cannot replace it")
    if entry.child is not None and replace is False and entry.parent is not None:
        raise _exists(entry)
    file = entry.mutable_file
    if file is not None:
        if file.authority != "write":
            raise BadRequest("this capability is read-only: it cannot change the file")
        return file
    if entry.parent is None:
        if entry.child is None or isinstance(entry.child.target, UnknownChild):
            raise NotImplementedHere("an object of an unknown kind cannot be written to")
        raise BadRequest("an immutable file cannot be changed, and there is no link here to replace")
    _require_writable(entry)
    return None


def _require_writable(entry: PathEntry) -> None:
    if entry.parent is not None and not entry.parent.is_writable:
        raise NotWriteableError("this capability is read-only: it cannot change the directory")


def _storing(gateway: Services, new: NewFile, size: int | None) -> AbstractContextManager[Operation]:
    history = gateway.history
    return history.upload(size=size) if new.format == "chk" else history.publish(size=size)


async def _counted(gateway: Services, operation: Operation, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass the chunks on, counting the bytes of each for the operation."""
    async for chunk in chunks:
        gateway.history.receive(operation, len(chunk))
        yield chunk


def _note(operation: Operation, cap: KnownCap, size: int) -> None:
    """Record the capability and size of a stored file in its operation."""
    operation.size = size
    if cap.storage_index is not None:
        operation.name(cap.storage_index)


def _note_upload(exchange: Exchange, cap: KnownCap, size: int) -> None:
    """Remember the upload's name, and the upload for the first page of the browser that sent it."""
    named = exchange.segments[-1] if len(exchange.segments) > 2 and exchange.method == "PUT" else ""
    name = named or exchange.arguments.shown("name") or exchange.file_name or exchange.arguments.shown("filename") or ""
    exchange.gateway.history.names.note(cap.storage_index, name)
    if is_local(exchange.peer, exchange.headers):
        exchange.gateway.home.note_upload(exchange.headers, name[:MAX_NAME], cap, size)


def _exists(entry: PathEntry) -> Conflict:
    return Conflict(f"there is already a {entry.name!r}, and replace= forbids replacing it")


async def _put_contents(exchange: Exchange, cap: KnownCap, offset: int | None) -> None:
    body, gateway = exchange.body, exchange.gateway
    is_whole_sdmf = offset is None and isinstance(cap, SdmfWriteCap)
    if is_whole_sdmf:
        require_sdmf_size(body.size)
    with Spool(gateway.settings.spools, gateway.store.runtime.cpu) as spool:
        arriving = Arriving(size=body.size, chunks=body.chunks())
        await spool_body(spool, arriving, MAX_SDMF_BODY if is_whole_sdmf else None)
        await _replace(exchange, cap, spool, offset)


async def _replace(exchange: Exchange, cap: KnownCap, spool: Spool, offset: int | None) -> None:
    if offset is None and isinstance(cap, SdmfWriteCap):
        require_sdmf_size(spool.size)
    gateway = exchange.gateway
    try:
        with gateway.history.publish(cap.storage_index, spool.size):
            await replace_contents(gateway.store.open_mutable(cap), gateway.stores, spool, offset)
    except NotEnoughSharesError as error:
        raise unrecoverable(error) from error


async def _link(entry: PathEntry, target: Target, overwrite: Replace) -> Answer:
    """Link the new file and answer: 201 if the name was free."""
    assert entry.parent is not None
    replaced = await entry.parent.edit([SetChild(entry.name, target, overwrite=overwrite)])
    return cap_answer(target_text(target), 200 if entry.name in replaced else 201)
