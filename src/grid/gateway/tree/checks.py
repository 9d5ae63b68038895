"""Checks and repairs: options of a request, `t=check` of one object, and the JSON documents on health.

[spec webapi 6, 7.3]
"""

from __future__ import annotations

from collections.abc import Mapping

from grid.caps import KnownCap, UnknownChild
from grid.codec.base32 import encode
from grid.directory.deep_check import Checked, check_and_repair
from grid.directory.pack import Target
from grid.directory.walk import Visited
from grid.errors import GridError, NotEnoughSharesError
from grid.gateway.faults import BadRequest, Gone, HttpFault, fault_of
from grid.gateway.files.downloads import unrecoverable
from grid.gateway.files.file_changes import when_done
from grid.gateway.http.answers import AnyAnswer, check_when_done, json_answer, redirect
from grid.gateway.http.arguments import Arguments
from grid.gateway.http.exchange import Exchange
from grid.gateway.tree.directory_views import check_page
from grid.placement.health import HEALTH_COUNTS
from grid.values import frozen


@frozen(kw_only=True)
class CheckOptions:
    """What a check does besides looking for shares."""

    verify: bool
    repair: bool
    add_lease: bool

    @classmethod
    def of(cls, arguments: Arguments) -> CheckOptions:
        """Parse the options of a request; BadRequest."""
        return cls(
            verify=arguments.flag("verify", False),
            repair=arguments.flag("repair", False),
            add_lease=arguments.flag("add-lease", False),
        )


def output_of(arguments: Arguments, *others: str) -> str:
    """`output=` in lower case: "" for a page, "json", or one of the others; BadRequest."""
    output = (arguments.text("output") or "").strip().lower()
    if output == "html":
        output = ""
    if output not in ("", "json", *others):
        raise BadRequest("output= must be JSON or absent")
    return output


Json = dict[str, object]


def nothing_to_check() -> Json:
    """CHECK of an object without shares or of unknown kind."""
    return {"storage-index": "", "results": {"healthy": True}}


def check_document(checked: Checked, storage_index: str) -> Json:
    """CHECK. storage_index: base32, for an object whose health is unknown."""
    if checked.health is not None:
        return dict(checked.health.to_json())
    return nothing_to_check() if checked.error is None else unknown_health(storage_index, checked)


def repair_document(checked: Checked, storage_index: str, *, in_tree: bool) -> Json:
    """CHECK-AND-REPAIR. in_tree: the object is one of many, where those without shares have a document of their own."""
    if not storage_index:
        return {"storage-index": "", "repair-attempted": False} if in_tree else nothing_to_check()
    if checked.repair is not None:
        return dict(checked.repair.to_json())
    before = check_document(checked, storage_index)
    document: Json = {
        "storage-index": storage_index,
        "repair-attempted": checked.health is not None and checked.error is not None,
        "repair-successful": False,
        "pre-repair-results": before,
        "post-repair-results": before,
    }
    if checked.error is not None:
        document["error"] = str(fault_of(checked.error))
    return document


def unknown_health(storage_index: str, checked: Checked) -> Json:
    """CHECK of an object whose check failed: it claims nothing good."""
    why = str(fault_of(checked.error)) if checked.error is not None else "it was not checked"
    zeros = dict.fromkeys(HEALTH_COUNTS, 0)
    results: Mapping[str, object] = {
        "healthy": False,
        "recoverable": False,
        **zeros,
        "list-corrupt-shares": [],
        "servers-responding": [],
        "sharemap": {},
    }
    return {"storage-index": storage_index, "summary": f"Not checked: {why}", "results": dict(results), "error": why}


class UnreadDirectories:
    """Directories that a walk cannot read. If the root is among them, the walk ends."""

    def __init__(self) -> None:
        self.reasons: dict[tuple[str, ...], str] = {}

    def note(self, visited: Visited, error: GridError) -> None:
        """Record an unreadable directory; raises its error if it is the root."""
        if not visited.path:
            raise error
        self.reasons[visited.path] = str(walk_fault(error))

    def explain(self, unit: Json) -> Json:
        """Add the reason to a unit if it describes such a directory."""
        path = unit["path"]
        reason = self.reasons.pop(tuple(path), None) if isinstance(path, list) else None
        return unit if reason is None else {**unit, "error": reason}


def walk_fault(error: GridError) -> HttpFault:
    """The fault for an error that ends a walk, usually an unreadable directory."""
    if isinstance(error, NotEnoughSharesError):
        return Gone(str(error), kind="UnrecoverableFileError")
    return fault_of(error)


async def check_object(exchange: Exchange, target: Target) -> AnyAnswer:
    """Answer with the health of an object: 200, whether it is good or not. Forbidden for a blacklisted object.

    Gone if an immutable file should be repaired and cannot be; raises the errors of a check.
    """
    arguments = exchange.arguments
    location = when_done(exchange)
    output, options = output_of(arguments), CheckOptions.of(arguments)
    return_to = arguments.text("return_to")
    if return_to:
        check_when_done(return_to, exchange.origin)
    document = nothing_to_check()
    if not isinstance(target, UnknownChild):
        exchange.gateway.require_allowed(target)
        if target.storage_index is not None:
            document = await _check(exchange, target, options)
    if location:
        return redirect(location)
    if output == "json":
        return json_answer(document)
    return check_page(exchange, document, return_to)


async def _check(exchange: Exchange, cap: KnownCap, options: CheckOptions) -> dict[str, object]:
    store, visited = exchange.gateway.store, Visited(path=(), target=cap)
    assert cap.storage_index is not None
    index = encode(cap.storage_index)
    if not options.repair:
        health = await store.check(cap, verify=options.verify, add_lease=options.add_lease)
        return check_document(Checked(visited=visited, health=health), index)
    checked = await check_and_repair(store, visited, cap, options.verify, options.add_lease)
    if checked.error is not None and (checked.health is None or not cap.is_mutable):
        raise _why(cap, checked.error)
    if not cap.is_mutable and checked.health is not None and not checked.health.recoverable:
        good, needed = _shares(checked)
        words = f"{good} good shares were found but {needed} are needed: the file cannot be repaired"
        raise NotEnoughSharesError(words, found=good, needed=needed)
    return repair_document(checked, index, in_tree=False)


def _why(cap: KnownCap, error: GridError) -> GridError:
    return unrecoverable(error) if cap.is_mutable and isinstance(error, NotEnoughSharesError) else error


def _shares(checked: Checked) -> tuple[int, int]:
    """The numbers of good and of needed shares."""
    assert checked.health is not None
    results = checked.health.to_json()["results"]
    assert isinstance(results, Mapping)
    return int(results["count-shares-good"]), int(results["count-shares-needed"])
