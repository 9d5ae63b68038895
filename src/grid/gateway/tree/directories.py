"""GET and HEAD of a directory, and its changes by POST. [spec webapi 5.2, 5.3]"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from attrs import evolve

from grid.caps import DirectoryCap, UnknownChild
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.names import normalize_name
from grid.directory.node import Directory
from grid.directory.store import Trail
from grid.errors import GridError
from grid.gateway.faults import BadRequest, NoSuchChild
from grid.gateway.files.file_changes import (
    PathEntry,
    new_file,
    parse_target,
    put_form_file,
    required_form_file,
    store_form_file,
    when_done,
)
from grid.gateway.files.file_pages import share_page
from grid.gateway.http.answers import (
    HTML,
    Answer,
    AnyAnswer,
    StreamedAnswer,
    cap_answer,
    plain_cap,
    redirect,
    text_answer,
    warned,
)
from grid.gateway.http.exchange import Exchange, own_path
from grid.gateway.http.ranges_and_tags import entity_tag, is_held
from grid.gateway.pages.links import file_path, with_arguments
from grid.gateway.tree.archive import zip_directory
from grid.gateway.tree.children import as_edits
from grid.gateway.tree.directory_views import (
    directory_info_page,
    listing_answer,
    listing_page,
    rename_form_page,
    view_of,
)
from grid.gateway.tree.mkdir import make_named, read_children, require_writable
from grid.gateway.tree.path import find_target_directory, list_children, lost
from grid.gateway.tree.replacing import asks, link, move, reply_to, undo, unlink
from grid.gateway.tree.selection import move_selected, remove_selected
from grid.runtime import run_sized

_HEADED = {
    "": HTML,
    "json": "text/plain",
    "uri": "text/plain",
    "readonly-uri": "text/plain",
    "info": HTML,
    "share": HTML,
    "rename-form": HTML,
    "save": HTML,
    "zip": "application/zip",
}
"""Media types that HEAD reports for a directory, by `t`, without reading anything."""

UNNAMED_UPLOAD = "unknown-filename"
"""The name of an upload that arrives without one."""


async def get_directory(
    exchange: Exchange, cap: DirectoryCap, *, by_path: bool, last_check: tuple[str, bool] | None = None
) -> AnyAnswer:
    """Answer a GET or HEAD of a directory. by_path: whether it was found in another directory.

    last_check: of everything below: its handle, and whether it has finished.
    """
    view = exchange.arguments.t
    if exchange.method == "HEAD" and view not in _HEADED:
        raise BadRequest(f"HEAD of a directory: t={view!r} is not known")
    if view in ("", "json", "info", "save", "zip"):
        exchange.gateway.require_allowed(cap)
    # An archive's contents depend on which servers are reachable.
    tag = entity_tag(cap, view, by_path=by_path) if view != "zip" else None
    if tag is not None and view == "" and exchange.is_visit:
        tag += "visit"  # Their page offers less.
    headers = (("ETag", tag),) if tag is not None else ()
    if exchange.method == "HEAD":
        return Answer(200, _HEADED[view], headers=headers)
    if is_held(exchange.headers.get("if-none-match"), tag):
        return Answer(304, "", headers=headers)
    answer = await (_listing(exchange, cap, last_check) if view == "" else _view(exchange, cap, view))
    return evolve(answer, headers=(*answer.headers, *headers)) if answer.status == 200 else answer


async def _view(exchange: Exchange, cap: DirectoryCap, view: str) -> AnyAnswer:
    match view:
        case "json":
            directory = exchange.gateway.store.directory(cap)
            children = await list_children(directory, shape="json")
            warning = directory.warning
            return warned(await listing_answer(exchange.gateway.store.runtime.cpu, cap, children, warning), warning)
        case "uri":
            return plain_cap(cap)
        case "readonly-uri":
            return plain_cap(cap.read_cap())
        case "info":
            return directory_info_page(view_of(exchange, cap))
        case "share":
            return await share_page(exchange, cap, _shown_name(exchange), _way_back(exchange))
        case "rename-form":
            return await _rename_form(exchange, cap)
        case "save":
            return await _save(exchange, cap)
        case "zip":
            return await zip_of(exchange, cap)
    raise BadRequest(f"GET of a directory: t={view!r} is not known")


async def zip_of(exchange: Exchange, cap: DirectoryCap) -> StreamedAnswer:
    """The archive of a directory, or of the entries that `name=` selects, by GET or by the form of its page."""
    return await zip_directory(exchange, cap, exchange.arguments.shown("filename") or _last_name(exchange))


def _shown_name(exchange: Exchange) -> str:
    return _last_name(exchange) or exchange.arguments.shown("filename") or ""


def _way_back(exchange: Exchange) -> str:
    name = exchange.arguments.shown("filename")
    return with_arguments(own_path(exchange), **({"filename": name} if name else {}))


def _last_name(exchange: Exchange) -> str:
    """The directory's name in the path; empty for a root."""
    return next((name for name in reversed(exchange.segments[2:]) if name), "")


async def _listing(exchange: Exchange, cap: DirectoryCap, last_check: tuple[str, bool] | None) -> Answer:
    """The page of a directory. If it cannot be read, the page says so."""
    directory = exchange.gateway.store.directory(cap)
    try:
        view = view_of(exchange, cap, await directory.list(), warning=directory.warning, last_check=last_check)
        render = partial(
            listing_page,
            accept_encoding=exchange.headers.get("accept-encoding"),
            is_opened=exchange.headers.get("sec-fetch-dest") != "empty",
        )
        shown = await run_sized(exchange.gateway.store.runtime.cpu, len(view.children), render, view)
        return warned(shown, directory.warning)
    except GridError as error:
        return listing_page(view_of(exchange, cap, problem=lost(directory, error).message))


async def _rename_form(exchange: Exchange, cap: DirectoryCap) -> Answer:
    exchange.gateway.require_allowed(cap)
    name = normalize_name(exchange.arguments.text("name") or "")
    children = await list_children(exchange.gateway.store.directory(cap), shape="page")
    view = view_of(exchange, cap, children)
    return await run_sized(exchange.gateway.store.runtime.cpu, len(children), rename_form_page, view, name)


async def _save(exchange: Exchange, cap: DirectoryCap) -> Answer:
    """Lead to the contents of a child at the address of its own capability, which browsers note of what they save."""
    name = normalize_name(exchange.arguments.text("name") or "")
    children = await list_children(exchange.gateway.store.directory(cap), shape="page")
    if name not in children:
        raise NoSuchChild(name, depth=0)
    target = children[name].target
    if isinstance(target, UnknownChild | DirectoryCap):
        raise BadRequest("t=save takes the name= of a file", shape="page")
    return redirect(file_path(target.to_string(), name, save=True))


Change = Callable[[Exchange, Directory], Awaitable[Answer]]
Move = Callable[[Exchange, Trail], Awaitable[Answer]]


async def change_directory(exchange: Exchange, directory: Directory, trail: Trail) -> AnyAnswer:
    """Handle a POST that changes a directory; `t` is one of CHANGES or MOVES. trail: the path to the directory."""
    location = when_done(exchange)
    t = exchange.arguments.t
    change = CHANGES.get(t)
    if change is not _set_children:
        require_writable(directory)
    answer = await (MOVES[t](exchange, trail) if change is None else change(exchange, directory))
    answer = warned(answer, directory.warning)
    return redirect(location) if location and answer.status < 300 and not answer.is_page else answer


async def _make(exchange: Exchange, directory: Directory) -> Answer:
    name = exchange.arguments.text("name")
    if not name:
        return cap_answer(directory.cap)  # It already exists, and stays as it is.
    return cap_answer(await make_named(exchange, directory, name))


async def _upload(exchange: Exchange, directory: Directory) -> Answer:
    """Store the form's file as a child.

    An existing mutable file gets new contents, unless the sender can be asked first.
    """
    if asks(exchange):
        file, name = await required_form_file(exchange), await _upload_name(exchange)
        cap = await store_form_file(exchange, new_file(exchange), file)
        return await link(directory, name, cap, reply_to(exchange, when_done(exchange)))
    replace = exchange.arguments.flag("replace", True)
    file = await required_form_file(exchange)
    name = await _upload_name(exchange)
    child = (await list_children(directory)).get(name)
    return await put_form_file(exchange, PathEntry(child=child, parent=directory, name=name), file, replace)


async def _upload_name(exchange: Exchange) -> str:
    given = exchange.arguments.text("name")
    if not given:
        given = (await exchange.form()).file_name or UNNAMED_UPLOAD
    return _one_name(given, "name")


async def _link(exchange: Exchange, directory: Directory) -> Answer:
    arguments = exchange.arguments
    name, text = arguments.required("name"), arguments.required("uri").strip()
    if not name:
        raise BadRequest("name= is empty")
    target = parse_target(text.encode("utf-8"))
    if asks(exchange):
        return await link(directory, normalize_name(name), target, reply_to(exchange, when_done(exchange)))
    await directory.edit([SetChild(name, target, overwrite=arguments.replace())])
    return text_answer(text)


async def _unlink(exchange: Exchange, directory: Directory) -> Answer:
    name = exchange.arguments.text("name") or ""
    if asks(exchange):
        return await unlink(directory, normalize_name(name), reply_to(exchange, when_done(exchange)))
    await directory.edit([RemoveChild(name)])
    return text_answer("thing unlinked")


async def _unlink_many(exchange: Exchange, directory: Directory) -> Answer:
    return await remove_selected(exchange, directory, when_done(exchange))


async def _move_many(exchange: Exchange, source: Trail) -> Answer:
    return await move_selected(exchange, source, when_done(exchange))


async def _undo(exchange: Exchange, directory: Directory) -> Answer:
    number = exchange.arguments.count("change")
    if number is None:
        raise BadRequest("change= is missing")
    back = when_done(exchange) or own_path(exchange)
    return await undo(directory, exchange.gateway.store.journal, number, back)


async def _rename(exchange: Exchange, source: Trail) -> Answer:
    if "to_dir" in exchange.arguments:
        raise BadRequest("t=rename stays in its directory; t=relink takes to_dir=")
    old = _one_name(exchange.arguments.required("from_name"), "from_name")
    new = _one_name(exchange.arguments.required("to_name"), "to_name")
    return await _move(exchange, source, old, source, new)


async def _relink(exchange: Exchange, source: Trail) -> Answer:
    old = _one_name(exchange.arguments.required("from_name"), "from_name")
    given = exchange.arguments.text("to_name")
    new = old if not given else _one_name(given, "to_name")
    to_dir = exchange.arguments.text("to_dir")
    target = source if not to_dir else await find_target_directory(exchange.gateway, to_dir)
    return await _move(exchange, source, old, target, new)


async def _move(exchange: Exchange, source: Trail, old: str, target: Trail, new: str) -> Answer:
    try:
        if asks(exchange):
            return await move(exchange, source, old, target, new, reply_to(exchange, when_done(exchange)))
        await exchange.gateway.store.move(source, old, target, new, overwrite=exchange.arguments.replace())
    except GridError as error:
        if type(error) is GridError:
            raise BadRequest(str(error)) from error
        raise
    return text_answer("thing moved")


async def _set_children(exchange: Exchange, directory: Directory) -> Answer:
    replace = exchange.arguments.replace()
    children = await read_children(exchange, may_be_empty=False)
    require_writable(directory)
    edits = await run_sized(exchange.gateway.store.runtime.cpu, len(children), as_edits, children, replace)
    await directory.edit(edits)
    return text_answer("Okay so I did it.")


def _one_name(given: str, argument: str) -> str:
    """Strip spaces around a name; BadRequest if nothing remains or it contains a slash."""
    name = normalize_name(given.strip())
    if not name:
        raise BadRequest(f"{argument}= is empty")
    if "/" in name:
        raise BadRequest(f"{argument}= may not contain a slash")
    return name


CHANGES: dict[str, Change] = {
    "mkdir": _make,
    "mkdir-with-children": _make,
    "mkdir-immutable": _make,
    "upload": _upload,
    "uri": _link,
    "unlink": _unlink,
    "delete": _unlink,
    "unlink-many": _unlink_many,
    "undo": _undo,
    "set_children": _set_children,
    "set-children": _set_children,
}
"""What POST can change in a directory, by `t`."""

MOVES: dict[str, Move] = {"rename": _rename, "relink": _relink, "move-many": _move_many}
"""What POST can do with links between two directories, by `t`."""
