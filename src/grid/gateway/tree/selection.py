"""Changes to several entries of a directory at once, for its page: removing them, and moving them elsewhere. [spec webapi 10]

Each change is one publish in each directory that it changes, of all entries or of none.
"""

from __future__ import annotations

from grid.directory.edits import RemoveChild
from grid.directory.moving import same_directory
from grid.directory.names import normalize_name
from grid.directory.node import Directory
from grid.directory.store import Trail
from grid.errors import ExistingChildError, GridError
from grid.gateway.faults import BadRequest, HttpFault
from grid.gateway.http.answers import Answer, page, redirect
from grid.gateway.http.exchange import Exchange, own_path
from grid.gateway.pages.mistakes import sentence
from grid.gateway.pages.selection import Picker, render_picker, render_removal
from grid.gateway.tree.path import find_target_directory, list_children
from grid.runtime import run_sized


def selected_names(exchange: Exchange) -> list[str]:
    """The names that `name=` gives, each once; BadRequest if there are none."""
    names = list(dict.fromkeys(map(normalize_name, exchange.arguments.texts("name"))))
    if not names:
        raise BadRequest("select at least one entry (name=)", shape="page")
    return names


async def remove_selected(exchange: Exchange, directory: Directory, back: str | None) -> Answer:
    """Remove the entries, once the person is sure; until then, ask. An entry that is gone already is no mistake."""
    names, action = selected_names(exchange), own_path(exchange)
    if not exchange.arguments.flag("sure", False):
        return page(render_removal(names, action, back or action))
    await directory.edit([RemoveChild(name, must_exist=False) for name in names])
    return redirect(back or action)


async def move_selected(exchange: Exchange, source: Trail, back: str | None) -> Answer:
    """Move the entries to `to_dir=`. Without it, show the directories at `at=`, to choose one."""
    names, action = selected_names(exchange), own_path(exchange)
    to_dir = exchange.arguments.text("to_dir")
    if not to_dir:
        return await _pick(exchange, source, names, back or action)
    target = await find_target_directory(exchange.gateway, to_dir)
    try:
        await exchange.gateway.store.move_all(source, names, target)
    except ExistingChildError as error:
        problem, status = f"“{error.name}” already exists there. Nothing was moved.", 409
    except GridError as error:
        if type(error) is not GridError:
            raise
        problem, status = sentence(str(error)), 400
    else:
        return redirect(back or action)
    return await _pick(exchange, source, names, back or action, to_dir, problem, status)


async def _pick(
    exchange: Exchange,
    source: Trail,
    names: list[str],
    back: str,
    at: str = "",
    problem: str | None = None,
    status: int = 200,
) -> Answer:
    """The page on which a person chooses the directory. at: the place to show; by default as the form has it."""
    typed = (exchange.arguments.text("other") or "").strip()
    at = at or typed or exchange.arguments.text("at") or _place_of(exchange)
    place: Trail | None = None
    try:
        place = await find_target_directory(exchange.gateway, at)
    except HttpFault as fault:
        if not typed:
            raise
        at, problem, status = _place_of(exchange), sentence(fault.message), 400
    if place is None:
        place = await find_target_directory(exchange.gateway, at)
    children = await list_children(exchange.gateway.store.directory(place.end), shape="page")
    root, *path = at.strip().removesuffix("/").split("/")
    picker = Picker(
        names=names,
        action=own_path(exchange),
        back=back,
        root=root,
        path=path,
        children=children,
        is_source=same_directory(place.end, source.end),
        is_writable=place.end.authority == "write",
        problem=problem,
    )
    return page(await run_sized(exchange.gateway.store.runtime.cpu, len(children), render_picker, picker), status)


def _place_of(exchange: Exchange) -> str:
    """The directory of the request, as `at=` has it."""
    root, *names = exchange.segments[1:]
    return "/".join((root.removesuffix("\n"), *(name for name in names if name)))
