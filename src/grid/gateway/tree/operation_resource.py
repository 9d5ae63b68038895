"""`/operations/H`: starts tree operations, shows their state, and cancels them. [spec webapi 7.1, 7.2]"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from urllib.parse import quote

from grid.caps import DirectoryCap
from grid.codec.base32 import encode
from grid.errors import CancelledError
from grid.gateway.faults import BadRequest, MethodNotAllowed, NotFound
from grid.gateway.http.answers import Answer, AnyAnswer, encode_text, json_answer, redirect, text_answer
from grid.gateway.http.exchange import Exchange, own_path
from grid.gateway.http.routing import Handler, allow
from grid.gateway.pages.tree_check import State, TreeCheck, UnhealthyObject
from grid.gateway.tree.checks import CheckOptions, Json, output_of, walk_fault
from grid.gateway.tree.directory_views import operation_page, tree_check_page
from grid.gateway.tree.operations import Operations, TreeKind, TreeWork
from grid.gateway.tree.replacing import asks
from grid.limits import MAX_HANDLE_LENGTH
from grid.runtime import run_sized


def state_document(work: TreeWork) -> Json:
    """The document of `output=JSON`. If the operation ended early, `error` says why, beside the results so far."""
    match work.kind:
        case "deep-stats":
            return {**work.stats.to_json(), "finished": work.finished}
        case "deep-size":
            return {"finished": work.finished, "size": work.stats.to_json()}
        case "manifest":
            return _manifest(work)
        case "deep-check":
            return _health(work)


def state_json(work: TreeWork, document: Json) -> bytes:
    """The document in 1.20's layout, which differs by kind."""
    if work.kind == "deep-size":
        return (json.dumps(document) + "\n").encode("ascii")
    end = "\n" if work.kind == "deep-check" else ""
    return encode_text(json.dumps(document, indent=1) + end)


def size_text(work: TreeWork) -> str:
    """The short form of `start-deep-size`."""
    return f"{_finished_line(work)}size: {work.stats.deep_size}\n" if work.finished else _finished_line(work)


def manifest_text(work: TreeWork) -> str:
    """One line per object: path and capability."""
    if not work.finished:
        return _finished_line(work)
    entries = (f"{'/'.join(path)} {cap or ''}\n" for path, cap in work.manifest.entries)
    return _finished_line(work) + "".join(entries)


def _finished_line(work: TreeWork) -> str:
    return f"finished: {'yes' if work.finished else 'no'}\n"


def _manifest(work: TreeWork) -> Json:
    document: Json = {"stats": work.stats.to_json(), "finished": work.finished, "origin": _root_index(work)}
    if work.finished:
        document |= {key: value for key, value in work.manifest.to_json().items() if key != "stats"}
    return document


def _health(work: TreeWork) -> Json:
    report, repair = work.report, work.options.repair
    counts = report.counters.to_json(repair=repair)
    document: Json = {key: value for key, value in counts.items() if "unrecoverable" not in key}
    document["finished"] = work.finished
    document["root-storage-index"] = _root_index(work)
    document["list-corrupt-shares"] = report.corrupt
    if repair:
        document["list-remaining-corrupt-shares"] = report.remaining
    document["list-unhealthy-files"] = report.unhealthy
    document["stats"] = work.stats.to_json() if work.finished else {}
    return document


def _root_index(work: TreeWork) -> str:
    index = work.root.storage_index
    return "" if index is None else encode(index)


_HANDLE_SIZE = 16
"""Random bytes in a handle that the gateway chooses."""

STARTS: Mapping[str, TreeKind] = {
    "start-manifest": "manifest",
    "start-deep-check": "deep-check",
    "start-deep-size": "deep-size",
    "start-deep-stats": "deep-stats",
}
"""The operations that POST starts with a handle, by `t`."""


def routes(running: Operations) -> Mapping[str, Handler]:
    """Handlers by first segment."""
    return {"operations": partial(operations, running)}


def start_operation(operations: Operations, exchange: Exchange, root: DirectoryCap) -> AnyAnswer:
    """Start the operation of `t` and answer with the address of its state; BadRequest, TooManyRequests.

    The form of a page gives no handle. The gateway chooses one that nobody can guess, since the page that it leads to
    contains links with the directory's capability.
    """
    arguments, gateway = exchange.arguments, exchange.gateway
    kind, handle, home = STARTS[arguments.t], arguments.text("ophandle"), ""
    if kind == "deep-check" and not handle and asks(exchange):
        home, handle = own_path(exchange), encode(gateway.store.runtime.entropy.random_bytes(_HANDLE_SIZE))
    if not handle:
        raise BadRequest("ophandle= is missing: choose any text that nobody else uses")
    if len(handle) > MAX_HANDLE_LENGTH:
        raise BadRequest("ophandle= is too long")
    output_of(arguments, "text")
    options, retain_s = CheckOptions.of(arguments), arguments.count("retain-for")
    operations.start(handle, kind, root, options, gateway.store, retain_s, home)
    output = arguments.text("output")
    query = f"?output={quote(output, safe='')}" if output else ""
    return redirect(f"{exchange.origin}/operations/{quote(handle, safe='')}{query}")


async def operations(running: Operations, exchange: Exchange) -> AnyAnswer:
    """`/operations/H[/$SI]`."""
    if len(exchange.segments) == 1:
        raise MethodNotAllowed("the handle of an operation is missing after this path", headers=(("Allow", ""),))
    allow(exchange, "GET", "HEAD", "POST")
    _, handle, *rest = exchange.segments
    if not handle or len(rest) > 1:
        raise NotFound("there is no such page", shape="page")
    if exchange.is_form:
        await exchange.form()
    arguments, table = exchange.arguments, running.table
    work = table.look_at(handle, arguments.count("retain-for"))
    if rest and work.kind != "deep-check":
        raise NotFound("there is no such page", shape="page")
    if rest and rest[0]:
        return _one_object(exchange, work, rest[0])
    is_cancelling = exchange.method == "POST" and arguments.t == "cancel"
    if not is_cancelling and arguments.t not in ("", "status"):
        raise BadRequest("GET an operation with t=status, and POST t=cancel to cancel it")
    output = output_of(arguments, "text")
    if is_cancelling:
        if not work.finished:
            work.cancel()
        if asks(exchange):
            return redirect(f"/operations/{quote(handle, safe='')}")
        answer = await _state(exchange, work, output)
        table.release(handle)
        return answer
    release = arguments.flag("release-after-complete", False)
    answer = await _state(exchange, work, output)
    if release and work.finished:
        table.release(handle)
    return answer


async def _state(exchange: Exchange, work: TreeWork, output: str) -> Answer:
    """The state. A failed operation is answered with the failure's status and the results so far."""
    status, error = 200, None
    if work.failure is not None and not isinstance(work.failure, CancelledError):
        fault = walk_fault(work.failure)
        status, error = fault.status, str(fault)
    cpu = exchange.gateway.store.runtime.cpu
    if work.home and output != "json":
        return await run_sized(cpu, work.records, tree_check_page, _tree_check(work, error), status)
    return await run_sized(cpu, work.records, _rendered, work, output, status, error)


def _rendered(work: TreeWork, output: str, status: int, error: str | None) -> Answer:
    """Render the state; parts that grow with the tree are rendered on the pool while the operation may continue."""
    document = state_document(work)
    if error is not None:
        document["error"] = error
    if output == "json" or work.kind == "deep-stats":
        return Answer(status, "text/plain", state_json(work, document))
    if work.kind == "deep-size":
        return text_answer(size_text(work), status)
    if work.kind == "manifest" and output == "text":
        return Answer(status, "text/plain;charset=utf-8", encode_text(manifest_text(work), "replace"))
    return operation_page(work.kind, document, finished=work.finished, error=error, status=status)


def _tree_check(work: TreeWork, error: str | None) -> TreeCheck:
    """The view of a check that was started from a page."""
    report, stats = work.report, work.stats
    state: State = "finished" if work.finished else "running"
    if work.failure is not None:
        state = "stopped" if error is None else "failed"
    return TreeCheck(
        home=work.home,
        state=state,
        problem=error or "",
        verify=work.options.verify,
        repair=work.options.repair,
        done=stats.count_directories + stats.count_files + stats.count_unknown,
        found=report.found,
        shares=report.shares,
        size=stats.deep_size + stats.size_literal_files,
        counts=report.counters.to_json(repair=True),
        under_way=list(report.under_way),
        unhealthy=[_unhealthy_object(work, *entry) for entry in report.unhealthy],
    )


def _unhealthy_object(work: TreeWork, path: object, before: object) -> UnhealthyObject:
    assert isinstance(path, list) and isinstance(before, dict)
    document = work.report.results.get(before["storage-index"], before)
    after = document.get("post-repair-results", before)
    return UnhealthyObject(path=path, now=after if isinstance(after, dict) else before)


def _one_object(exchange: Exchange, work: TreeWork, index: str) -> AnyAnswer:
    document = work.report.results.get(index)
    if document is None:
        raise NotFound("the operation has not checked an object with this storage index", shape="page")
    if output_of(exchange.arguments) == "json":
        return json_answer(document)
    return operation_page(work.kind, document, finished=True, error=None)
