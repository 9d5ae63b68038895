"""Creates directories: unlinked, at the end of a path, or under a name. [spec webapi 3, 5.1, 5.3]

Owns what a new directory starts with. Every refusal happens before anything is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from urllib.parse import quote

from grid.caps import DirectoryCap
from grid.crypto.rsa import PrivateKey
from grid.directory.edits import Overwrite, SetChild
from grid.directory.names import normalize_name
from grid.directory.node import Directory
from grid.errors import ExistingChildError, NotWriteableError
from grid.gateway.faults import BadRequest
from grid.gateway.files.file_changes import when_done
from grid.gateway.http.answers import AnyAnswer, cap_answer, redirect
from grid.gateway.http.arguments import parse_key_argument
from grid.gateway.http.exchange import Exchange
from grid.gateway.tree.children import GivenChild, as_children, parse_children
from grid.gateway.tree.path import NewBranch, list_children
from grid.limits import MAX_CHILDREN_BODY
from grid.mutable.share.geometry import FormatName
from grid.runtime import run_sized
from grid.values import frozen

MAKERS = frozenset({"mkdir", "mkdir-with-children", "mkdir-immutable"})
"""The values of `t` that create a directory."""

POOLED_BYTES = 2**16
"""Descriptions of children from this many bytes on are parsed on the pool: a few hundred children, 2 ms."""


@frozen(kw_only=True)
class NewDirectory:
    """A directory to create. key: of a mutable one, None for a fresh key."""

    children: Mapping[str, GivenChild]
    immutable: bool = False
    format: FormatName | None = None
    key: PrivateKey | None = None

    async def store(self, exchange: Exchange) -> DirectoryCap:
        """Store the directory without linking it. Raises the errors of `FileStore`."""
        store = exchange.gateway.store
        children = await run_sized(store.runtime.cpu, len(self.children), as_children, self.children)
        if self.immutable:
            return await store.create_immutable_directory(children)
        return await store.create_directory(children, format=self.format, key=self.key)


async def read_children(
    exchange: Exchange, *, immutable: bool = False, may_be_empty: bool = True
) -> dict[str, GivenChild]:
    """Parse the children in the body; BadRequest, FormatError, CapError, PayloadTooLarge."""
    if exchange.is_form:
        raise BadRequest("children are sent as JSON: put t= in the URL, not in the form")
    size = exchange.body.size
    if size is not None and size < POOLED_BYTES:
        data = await exchange.body.read_all(POOLED_BYTES)
        return parse_children(data, immutable=immutable, may_be_empty=may_be_empty)
    # The body is spooled until its turn, so a slow sender delays nobody else.
    async with exchange.body.spooled(MAX_CHILDREN_BODY) as spool:
        await exchange.hold(exchange.gateway.stores.children, spool.size)
        data = bytes(await spool.read_at(0, spool.size))
    parse = partial(parse_children, data, immutable=immutable, may_be_empty=may_be_empty)
    return await exchange.gateway.store.runtime.cpu.run(parse)


async def make_unlinked(exchange: Exchange) -> AnyAnswer:
    """Handle PUT or POST of `/uri?t=mkdir`, and POST of its variants: answer with the capability of a new, unlinked
    directory.
    """
    kind = exchange.arguments.t
    if kind not in MAKERS or (exchange.method == "PUT" and kind != "mkdir"):
        raise BadRequest(f"t={kind!r} is not known for an unlinked object")
    location = when_done(exchange) if exchange.method == "POST" else None
    goes_there = exchange.method == "POST" and exchange.arguments.flag("redirect_to_result", False)
    new = await _read_unlinked(exchange, kind)
    cap = await new.store(exchange)
    if goes_there:
        return redirect(f"uri/{quote(cap.to_string(), safe='')}", 303)
    return redirect(location) if location else cap_answer(cap)


async def _read_unlinked(exchange: Exchange, kind: str) -> NewDirectory:
    key = None
    if exchange.method == "POST" and kind != "mkdir-immutable":
        given = exchange.arguments.text("private-key")
        key = parse_key_argument(given) if given is not None else None
    if kind != "mkdir":
        immutable = kind == "mkdir-immutable"
        return NewDirectory(children=await read_children(exchange, immutable=immutable), immutable=immutable, key=key)
    format = exchange.arguments.format()
    if format == "chk":
        raise BadRequest("a mutable directory cannot have format=CHK")
    if exchange.method == "POST" and not exchange.is_form and await anext(exchange.body.chunks(), None) is not None:
        raise BadRequest("t=mkdir takes no body; children come with t=mkdir-with-children")
    return NewDirectory(children={}, format=format, key=key)


async def read_linked(exchange: Exchange) -> NewDirectory:
    """The directory requested below another directory; BadRequest and the errors of `read_children`."""
    kind, format = exchange.arguments.t, exchange.arguments.format()
    chosen = None if format == "chk" else format
    if kind == "mkdir":
        return NewDirectory(children={}, format=chosen)
    immutable = kind == "mkdir-immutable"
    return NewDirectory(children=await read_children(exchange, immutable=immutable), immutable=immutable, format=chosen)


async def make_at_path(exchange: Exchange, above: Directory, missing: tuple[str, ...]) -> DirectoryCap:
    """Create the directory at the end of a path whose last names are missing below `above`.

    Intermediate directories get the default format. Raises the errors of `read_linked` and of `Directory.edit`.
    """
    new = await read_linked(exchange)
    require_writable(above)
    if exchange.arguments.t == "mkdir":
        # Two requests that create the same directory at the same time get the same one.
        on_the_way = await above.make_directories(missing[:-1])
        return (await on_the_way.make_directories(missing[-1:], format=new.format)).cap
    cap = await new.store(exchange)
    await NewBranch(above, missing[:-1]).edit([SetChild(missing[-1], cap, overwrite=False)])
    return cap


async def make_named(exchange: Exchange, directory: Directory | NewBranch, name: str) -> DirectoryCap:
    """Create a directory as a child of an existing directory, or of one yet to be created. ExistingChildError."""
    overwrite: Overwrite = exchange.arguments.flag("replace", True) if exchange.arguments.t == "mkdir" else False
    new = await read_linked(exchange)
    require_writable(directory)
    if not overwrite and isinstance(directory, Directory) and normalize_name(name) in await list_children(directory):
        raise ExistingChildError(f"there is already a {name!r} in the directory", name=name)
    cap = await new.store(exchange)
    await directory.edit([SetChild(name, cap, overwrite=overwrite)])
    return cap


def require_writable(directory: Directory | NewBranch) -> None:
    """Raise NotWriteableError if the given capability does not permit changes."""
    if not directory.is_writable:
        raise NotWriteableError("this capability is read-only: it cannot change the directory")
