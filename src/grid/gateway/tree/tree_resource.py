"""`/uri/$CAP[/PATH]`: follows the path and selects the handler for its method and `t`. [spec webapi 4, 5]

Owns the order: first come the refusals that need no look at the grid, then the path is followed, and only then is
anything created. Handlers of files are elsewhere, and receive the end of a path as a PathEntry.
"""

from __future__ import annotations

from functools import partial

from grid.caps import DirectoryCap, UnknownChild
from grid.directory.node import Directory
from grid.errors import GridError
from grid.gateway.faults import BadRequest, Conflict, NoSuchChild, NotImplementedHere
from grid.gateway.files.downloads import get_file, get_info, why_unknown
from grid.gateway.files.early_upload import EarlyUpload, may_store_early
from grid.gateway.files.file_changes import (
    PathEntry,
    delete_child,
    new_file,
    post_file,
    put_cap,
    put_file,
    store_form_file,
    when_done,
)
from grid.gateway.files.resumable_resource import resumed_file
from grid.gateway.http.answers import AnyAnswer, cap_answer, plain_cap, redirect
from grid.gateway.http.exchange import Exchange
from grid.gateway.tree.checks import check_object
from grid.gateway.tree.directories import CHANGES, MOVES, change_directory, get_directory, zip_of
from grid.gateway.tree.mkdir import MAKERS, make_at_path, make_named
from grid.gateway.tree.operation_resource import STARTS, start_operation
from grid.gateway.tree.operations import Operations
from grid.gateway.tree.path import NewBranch, Obstacle, Reached, TreePath, follow, open_directory, parse_path
from grid.gateway.tree.streams import STREAMS, stream_tree

_ONLY_LOOKING = frozenset({"delete", "rename", "rename-form", "check"})
"""Values of `t` with which a POST creates no directories on its way."""

_PUTS = frozenset({"", "uri", "mkdir"})


async def tree_resource(operations: Operations, exchange: Exchange) -> AnyAnswer:
    """Handle a request for an object by its capability, or by a path from a directory."""
    path = parse_path(exchange.segments[1:])
    if exchange.method == "POST":
        if exchange.is_form:
            await exchange.form()
        _require_known_charset(exchange)
    _require_known_t(exchange)
    if _is_new_file(exchange, path):
        with EarlyUpload(exchange) as early:
            await early.begin(partial(store_form_file, exchange, new_file(exchange)))
            reached = await _follow(exchange, path)
            return await put_file(exchange, _entry_at(exchange, reached), early)
    identifier = exchange.arguments.text("upload")
    if identifier and exchange.method == "PUT" and not exchange.arguments.t:
        return await _put_upload(exchange, path, identifier)
    reached = await _follow(exchange, path)
    if reached.missing:
        return await _at_nothing(exchange, path, reached)
    match exchange.method:
        case "GET" | "HEAD":
            return await _get(operations, exchange, path, reached)
        case "PUT":
            return await _put(exchange, path, reached)
        case "POST":
            return await _post(operations, exchange, path, reached)
        case "DELETE":
            _require_no_slash(path, reached)
            return await delete_child(exchange, _entry(reached))
    raise NotImplementedHere("the method is not known here")


async def _put_upload(exchange: Exchange, path: TreePath, identifier: str) -> AnyAnswer:
    """Link the file of an upload that arrived over several requests; it is kept until that succeeds."""
    if path.has_slash:
        raise BadRequest("the name after the last slash is empty", shape="page")
    uploads = exchange.gateway.uploads
    with uploads.using(identifier) as upload:
        file = resumed_file(exchange, upload)
        answer = await put_file(exchange, _entry_at(exchange, await _follow(exchange, path)), file)
        uploads.release(identifier)
    return answer


async def _follow(exchange: Exchange, path: TreePath) -> Reached:
    try:
        return await follow(exchange.gateway, path)
    except Obstacle:
        raise _obstacle(exchange, path) from None


def _is_new_file(exchange: Exchange, path: TreePath) -> bool:
    """Whether to store a file while its path is being followed. Errors in the request are found later, as usual."""
    if exchange.method != "PUT" or exchange.arguments.t or path.has_slash:
        return False
    try:
        return new_file(exchange).format == "chk" and may_store_early(exchange, path.root, path.names)
    except GridError:
        return False


def _entry_at(exchange: Exchange, reached: Reached) -> PathEntry:
    """The end of the path, whether or not an object exists there."""
    if not reached.missing:
        return _entry(reached)
    return _new_entry(open_directory(exchange.gateway, reached.child), reached.missing)


async def _get(operations: Operations, exchange: Exchange, path: TreePath, reached: Reached) -> AnyAnswer:
    target = reached.child.target
    if isinstance(target, DirectoryCap) and target.authority != "verify":
        last_check = operations.check_of(target)
        return await get_directory(exchange, target, by_path=reached.parent is not None, last_check=last_check)
    _require_no_slash(path, reached)
    by_path = reached.parent is not None
    if exchange.method == "GET" and exchange.arguments.t == "info" and by_path:
        return await get_info(exchange, reached.child, reached.name, reached.siblings)
    return await get_file(exchange, reached.child, name=reached.name, by_path=by_path)


async def _put(exchange: Exchange, path: TreePath, reached: Reached) -> AnyAnswer:
    _require_no_slash(path, reached)
    t, target = exchange.arguments.t, reached.child.target
    if t == "mkdir":
        if not isinstance(target, DirectoryCap):
            raise BadRequest(
                "there is a file at this path; PUT t=mkdir needs a free path, or one that leads to a directory"
            )
        exchange.gateway.require_allowed(target)
        return plain_cap(target)
    return await (put_cap if t == "uri" else put_file)(exchange, _entry(reached))


async def _post(operations: Operations, exchange: Exchange, path: TreePath, reached: Reached) -> AnyAnswer:
    t, target = exchange.arguments.t, reached.child.target
    if t == "check":
        return await check_object(exchange, target)
    if not isinstance(target, DirectoryCap):
        _require_no_slash(path, reached)
        if t == "upload" and not isinstance(target, UnknownChild):
            return await post_file(exchange, _entry(reached))
        raise BadRequest(f"POST to a file: t={t!r} is not known")
    if t == "zip":
        return await zip_of(exchange, open_directory(exchange.gateway, reached.child).cap)
    if t in STREAMS:
        return await stream_tree(exchange, open_directory(exchange.gateway, reached.child).cap)
    if t in STARTS:
        return start_operation(operations, exchange, open_directory(exchange.gateway, reached.child).cap)
    assert reached.trail is not None
    return await change_directory(exchange, open_directory(exchange.gateway, reached.child), reached.trail)


async def _at_nothing(exchange: Exchange, path: TreePath, reached: Reached) -> AnyAnswer:
    """A path whose last names are missing: create what the request asks for, or answer NoSuchChild."""
    method, t, missing = exchange.method, exchange.arguments.t, reached.missing
    absent = NoSuchChild(missing[0], len(missing))
    directory = open_directory(exchange.gateway, reached.child)
    if method == "PUT" and t == "mkdir":
        return plain_cap(await make_at_path(exchange, directory, missing))
    if method == "PUT":
        if path.has_slash:
            raise BadRequest("the name after the last slash is empty", shape="page")
        return await (put_cap if t == "uri" else put_file)(exchange, _new_entry(directory, missing))
    if method == "POST" and t in MAKERS:
        return await _make(exchange, directory, missing)
    raise absent


async def _make(exchange: Exchange, directory: Directory, missing: tuple[str, ...]) -> AnyAnswer:
    location, name = when_done(exchange), exchange.arguments.text("name")
    if name:
        cap = await make_named(exchange, NewBranch(directory, missing), name)
    else:
        cap = await make_at_path(exchange, directory, missing)
    return redirect(location) if location else cap_answer(cap)


def _new_entry(directory: Directory, missing: tuple[str, ...]) -> PathEntry:
    holder = directory if len(missing) == 1 else NewBranch(directory, missing[:-1])
    return PathEntry(child=None, parent=holder, name=missing[-1])


def _entry(reached: Reached) -> PathEntry:
    return PathEntry(child=reached.child, parent=reached.parent, name=reached.name)


def _require_no_slash(path: TreePath, reached: Reached) -> None:
    if path.has_slash and not isinstance(reached.child.target, DirectoryCap):
        raise BadRequest("not a directory: remove the trailing slash", shape="page")


def _require_known_t(exchange: Exchange) -> None:
    """Raise BadRequest for a `t` that is invalid with this method, whatever the path leads to."""
    t = exchange.arguments.t
    if exchange.method == "PUT" and t not in _PUTS:
        raise BadRequest(f"PUT: t={t!r} is not known")
    if exchange.method == "POST" and t not in (*CHANGES, *MOVES, *STREAMS, *STARTS, "check", "zip"):
        raise BadRequest(f"POST: t={t!r} is not known")


def _require_known_charset(exchange: Exchange) -> None:
    charset = (exchange.arguments.text("_charset") or "utf-8").strip().lower()
    if charset not in ("utf-8", "utf8", "us-ascii", "ascii"):
        raise BadRequest("_charset= other than utf-8 is not supported")


def _obstacle(exchange: Exchange, path: TreePath) -> BadRequest | Conflict:
    message = "the path leads through something that is not a directory"
    if isinstance(path.root.target, UnknownChild):
        message = f"the capability before the path is not valid: {why_unknown(path.root.target)}"
    makes = exchange.method == "PUT" or (exchange.method == "POST" and exchange.arguments.t not in _ONLY_LOOKING)
    return Conflict(message, shape="page") if makes else BadRequest(message, shape="page")
