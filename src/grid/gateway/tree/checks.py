"""POST `t=check`: the health of one object of any kind, and its repair. [spec webapi 6]"""

from __future__ import annotations

from collections.abc import Mapping

from grid.caps import KnownCap, UnknownChild
from grid.codec.base32 import encode
from grid.directory.deep_check import Checked, check_and_repair
from grid.directory.pack import Target
from grid.directory.walk import Visited
from grid.errors import GridError, NotEnoughSharesError
from grid.gateway.files.downloads import unrecoverable
from grid.gateway.files.files import when_done
from grid.gateway.http.answers import AnyAnswer, json_answer, redirect
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.when_done import check_when_done
from grid.gateway.tree.check_documents import check_document, nothing_to_check, repair_document
from grid.gateway.tree.check_options import CheckOptions, output_of
from grid.gateway.tree.directory_pages import check_page


async def check_object(exchange: Exchange, target: Target) -> AnyAnswer:
    """The health of an object; 200 whether it is good or not. Forbidden for one that may not be shown.

    Gone if an immutable file was to be repaired and cannot be; the errors of a check.
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
        words = f"{good} good shares were found, and {needed} are needed: the file cannot be repaired"
        raise NotEnoughSharesError(words, found=good, needed=needed)
    return repair_document(checked, index, in_tree=False)


def _why(cap: KnownCap, error: GridError) -> GridError:
    return unrecoverable(error) if cap.is_mutable and isinstance(error, NotEnoughSharesError) else error


def _shares(checked: Checked) -> tuple[int, int]:
    """Good shares, and how many are needed, of what was found."""
    assert checked.health is not None
    results = checked.health.to_json()["results"]
    assert isinstance(results, Mapping)
    return int(results["count-shares-good"]), int(results["count-shares-needed"])
