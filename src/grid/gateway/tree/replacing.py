"""Changes to a directory by a person's form: asks before replacing anything, and reverts recent changes. [spec webapi
10]

The forms of the pages send `ask=true`; requests without it behave as in 1.20. Owns the order: nothing changes until the
person agrees, and an uploaded file is kept meanwhile as a capability in the page that asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from grid.directory.edits import Edit, Overwrite, RemoveChild, SetChild, read_only
from grid.directory.node import Directory, Look
from grid.directory.pack import Child, Target
from grid.directory.store import Trail
from grid.errors import ExistingChildError
from grid.gateway.faults import NotFound
from grid.gateway.history.undo_journal import PastChange, UndoJournal
from grid.gateway.http.answers import Answer, page, redirect
from grid.gateway.http.exchange import Exchange, own_path
from grid.gateway.pages.entries import target_text
from grid.gateway.pages.links import object_path
from grid.gateway.pages.replacing import Conflict, Gone, free_name, render_conflict, render_gone
from grid.gateway.tree.path import list_children
from grid.values import field, frozen


@frozen(kw_only=True)
class Reply:
    """How to answer a form. action: its address. back: where to return to. agreed: the person saw the question."""

    action: str = field(repr=False)
    back: str = field(repr=False)
    agreed: bool

    @property
    def overwrite(self) -> Overwrite:
        """What an edit may replace; never a directory."""
        return "only-files" if self.agreed else False

    def done(self, title: str, gone: Gone | None) -> Answer:
        """The page about the replaced or removed entry, or a redirect back if there is none."""
        return redirect(self.back) if gone is None else page(render_gone(title, gone, self.back))


def asks(exchange: Exchange) -> bool:
    """Whether the request comes from a page's form, so its sender can be asked."""
    return exchange.arguments.flag("ask", False)


def reply_to(exchange: Exchange, back: str | None) -> Reply:
    """How to answer the form. back: its `when_done`, checked; None for the directory's page."""
    arguments, action = exchange.arguments, own_path(exchange)
    agreed = "replace" in arguments and arguments.replace() is not False
    return Reply(action=action, back=back or action, agreed=agreed)


async def link(directory: Directory, name: str, target: Target, reply: Reply) -> Answer:
    """Link a target, such as that of a file just stored."""
    replaced: Mapping[str, Child] | None = None
    with suppress(ExistingChildError):
        replaced = await directory.edit([SetChild(name, target, overwrite=reply.overwrite)])
    if replaced is None:
        children = await list_children(directory)
        there = children.get(name)
        if there is not None and there.target == target:
            return reply.done("", None)
        fields = {"t": "uri", "name": name, "uri": target_text(target)}
        return _ask(children, name, fields, "name", reply)
    old = replaced.get(name)
    if old is None or old.target == target:
        return reply.done("", None)
    return reply.done(f"Replaced {name}", Gone(name=name, child=old, directory=_path(directory), replaces=True))


async def move(exchange: Exchange, source: Trail, old: str, target: Trail, new: str, reply: Reply) -> Answer:
    """Rename or move an entry."""
    store = exchange.gateway.store
    is_taken = False
    try:
        replaced = await store.move(source, old, target, new, overwrite=reply.overwrite)
    except ExistingChildError:
        is_taken, replaced = True, None
    if is_taken:
        children = await list_children(store.directory(target.end))
        arguments = exchange.arguments
        fields = {"t": arguments.t, "from_name": old, "to_name": new}
        if arguments.text("to_dir"):
            fields["to_dir"] = arguments.text("to_dir") or ""
        return _ask(children, new, fields, "to_name", reply)
    if replaced is None:
        return reply.done("", None)
    directory = store.directory(target.end)
    free = free_name(new, (await list_children(directory)).__contains__)
    return reply.done(f"Replaced {new}", Gone(name=free, child=replaced, directory=_path(directory)))


async def unlink(directory: Directory, name: str, reply: Reply) -> Answer:
    """Remove an entry."""
    removed = await directory.edit([RemoveChild(name)])
    old = removed.get(name)
    gone = None if old is None else Gone(name=name, child=old, directory=_path(directory))
    return reply.done(f"Deleted {name}", gone)


async def undo(directory: Directory, journal: UndoJournal, number: int, back: str) -> Answer:
    """Revert a change, in one publish. number: as the page names it. back: where to return to. NotFound if it is forgotten."""
    change = journal.find(directory.cap, number)
    if change is None:
        raise NotFound("this change was already undone, or is no longer remembered", shape="page")

    def choose(look: Look, retrying: bool) -> Sequence[Edit]:
        return reverting_edits(change, look)

    await directory.edit_by(choose, len(change.entries))
    journal.drop(change)
    return redirect(back)


def reverting_edits(change: PastChange, look: Look) -> list[Edit]:
    """The edits that revert a change. look: finds what is there now.

    They never replace what came later: an entry whose name is used otherwise by now returns under a free name.
    """
    made: list[Edit] = []
    used: set[str] = set()
    for entry in change.entries:
        name, there, old = entry.name, look(entry.name), entry.old
        if there is not None and there.target in (old.target, read_only(old.target)):
            continue
        is_left = there is not None and entry.new is not None and there.target in (entry.new, read_only(entry.new))
        if not is_left and (there is not None or name in used):
            name = free_name(name, lambda name: name in used or look(name) is not None)
        used.add(name)
        made.append(SetChild(name, old.target, old.metadata, overwrite=is_left))
    return made


def _ask(children: Mapping[str, Child], name: str, fields: dict[str, str], name_field: str, reply: Reply) -> Answer:
    """The page that asks about an entry that is in the way; ExistingChildError if that entry cannot be listed."""
    there = children.get(name)
    if there is None:
        raise ExistingChildError(f"there is already a {name!r} in the directory", name=name)
    conflict = Conflict(
        name=name,
        there=there,
        action=reply.action,
        back=reply.back,
        fields=fields,
        name_field=name_field,
        free_name=free_name(name, children.__contains__),
    )
    return page(render_conflict(conflict), 409)


def _path(directory: Directory) -> str:
    return object_path(directory.cap.to_string(), directory=True)
