"""A directory behind a gateway. [spec webapi 5]

Paths are looked up name by name, as in a direct store, so errors read the same; the gateway caches what it read last.
Edits of the same kind share a request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from grid.caps import DirectoryCap, UnknownChild
from grid.cli.webapi.http import GatewayClient
from grid.cli.webapi.shapes import describe_link, directory_cap, parse_listing
from grid.directory.edits import Edit, RemoveChild, SetChild, SetMetadata, require_beside
from grid.directory.names import normalize_name
from grid.directory.pack import Child
from grid.errors import (
    AuthorityError,
    ChildOfWrongTypeError,
    ExistingChildError,
    GridError,
    NoSuchChildError,
    NotWriteableError,
)
from grid.limits import MAX_LISTING_JSON
from grid.mutable.share.geometry import FormatName
from grid.values import frozen

CHILDREN_AT_ONCE = 4000
"""Links set by one request: two megabytes of JSON."""


@frozen(eq=False)
class RemoteDirectory:
    """One directory, with the permissions of its capability."""

    client: GatewayClient
    cap: DirectoryCap

    @property
    def is_writable(self) -> bool:
        """Whether this capability permits changes."""
        return self.cap.authority == "write"

    async def list(self) -> Mapping[str, Child]:
        """The children that can be listed, sorted by name. AuthorityError with a verify capability."""
        return (await self.listing())[0]

    async def listing(self) -> tuple[Mapping[str, Child], int]:
        """The result of `list`, and its size in bytes."""
        if self.cap.authority == "verify":
            raise AuthorityError("this is a verify capability: use the read or write capability to read the directory")
        answer = await self.client.json("GET", self._path, [("t", "json")], limit=MAX_LISTING_JSON)
        children = parse_listing(answer, is_mutable=self.cap.is_mutable)
        return children, 1000 * len(children)

    async def get(self, path: Sequence[str]) -> Child:
        """The child at the end of a path.

        NoSuchChildError, ChildOfWrongTypeError for the first name that does not fit.
        """
        child = Child(target=self.cap)
        directory = self
        for depth, given in enumerate(path):
            if depth:
                if not isinstance(child.target, DirectoryCap):
                    raise ChildOfWrongTypeError(f"{path[depth - 1]!r} is not a directory", name=path[depth - 1])
                directory = RemoteDirectory(self.client, child.target)
            name = normalize_name(given)
            found = (await directory.list()).get(name)
            if found is None:
                raise NoSuchChildError(f"there is no {name!r} in the directory", name=name)
            child = found
        return child

    async def edit(self, edits: Sequence[Edit]) -> None:
        """Make all edits: links are set in one request per run, removals one by one.

        NotWriteableError; ExistingChildError, NoSuchChildError, ChildOfWrongTypeError for the first that does not fit.
        """
        if not self.is_writable:
            raise NotWriteableError("this capability cannot change the directory: use its write capability")
        for overwrite, run in groupby(edits, lambda edit: edit.overwrite if isinstance(edit, SetChild) else None):
            if overwrite is not None:
                links = [edit for edit in run if isinstance(edit, SetChild)]
                for batch in _batches(links):
                    await self._set(batch, overwrite if isinstance(overwrite, str) else str(overwrite).lower())
                continue
            for edit in run:
                await (self._remove(edit) if isinstance(edit, RemoveChild) else self._annotate(edit))

    async def make_directories(self, path: Sequence[str], *, format: FormatName | None = None) -> RemoteDirectory:
        """The directory at the end of a path; missing directories are created.

        One request, except where 1.20 misunderstands it: it takes a name in the path that equals the last one for the
        last, and applies the format only to the last. [spec webapi 5.1]
        """
        if not path:
            return self
        query = [("t", "mkdir"), *([("format", format.upper())] if format else [])]
        stepwise = path[-1] in path[:-1] or format is not None or not self.is_writable
        answer = ""
        for depth in range(1 if stepwise else len(path), len(path) + 1):
            shown = "/".join(path[:depth])

            def conflict(text: str, shown: str = shown) -> GridError:
                return ChildOfWrongTypeError(f"something on the path {shown!r} is not a directory", name=shown)

            answer = await self.client.text("POST", [*self._path, *path[:depth]], query, conflict=conflict)
        return RemoteDirectory(self.client, directory_cap(answer))

    @property
    def _path(self) -> Sequence[str]:
        return ["uri", self.cap.to_string()]

    async def _set(self, links: Sequence[SetChild], replace: str) -> None:
        body = {normalize_name(link.name): describe_link(link.target, link.metadata) for link in links}
        await self.client.text(
            "POST",
            self._path,
            [("t", "set_children"), ("replace", replace)],
            body=json.dumps(body).encode("ascii"),
            headers=[("Content-Type", "application/json")],
            conflict=link_conflict(", ".join(link.name for link in links[:3])),
        )

    async def _remove(self, edit: RemoveChild) -> None:
        name = normalize_name(edit.name)
        if edit.must_be is not None or edit.only is not None or edit.beside:
            children = await self.list()
            require_beside(edit, children)
            child = children.get(name)
            if child is not None and not _fits(child, edit):
                return
        try:
            await self.client.text("POST", self._path, [("t", "unlink"), ("name", name)])
        except NoSuchChildError:
            if edit.must_exist:
                raise NoSuchChildError(f"there is no {name!r} in the directory", name=name) from None

    async def _annotate(self, edit: Edit) -> None:
        assert isinstance(edit, SetMetadata)
        name = normalize_name(edit.name)
        child = (await self.list()).get(name)
        if child is None:
            raise NoSuchChildError(f"there is no {name!r} in the directory", name=name)
        await self._set([SetChild(name, child.target, edit.metadata)], "true")


def link_conflict(shown: str) -> Callable[[str], GridError]:
    """Translates status 409 for a request that makes links."""
    return lambda text: ExistingChildError(f"there is already a {shown!r} in the directory", name=shown)


def _batches(links: Sequence[SetChild]) -> Iterator[Sequence[SetChild]]:
    """Split the links into runs that contain each name once: a second link of the same name is a separate change."""
    batch: dict[str, SetChild] = {}
    for link in links:
        if link.name in batch or len(batch) >= CHILDREN_AT_ONCE:
            yield list(batch.values())
            batch = {}
        batch[link.name] = link
    if batch:
        yield list(batch.values())


def _fits(child: Child, edit: RemoveChild) -> bool:
    """Whether to make the removal; ChildOfWrongTypeError if the child does not have the required type."""
    if edit.must_be is not None and not isinstance(child.target, UnknownChild):
        found = "directory" if isinstance(child.target, DirectoryCap) else "file"
        if found != edit.must_be:
            raise ChildOfWrongTypeError(f"{edit.name!r} is a {found}, not a {edit.must_be}", name=edit.name)
    return edit.only is None or edit.only == child.target
