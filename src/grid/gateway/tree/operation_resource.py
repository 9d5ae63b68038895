"""Operations over a tree with a handle: starting, asking, cancelling. [spec webapi 7.1]"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from grid.caps import DirectoryCap
from grid.errors import CancelledError
from grid.gateway.faults import BadRequest, MethodNotAllowed, NotFound
from grid.gateway.http.answers import Answer, AnyAnswer, json_answer, redirect, text_answer
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.routing import Handler, allow
from grid.gateway.tree.check_options import CheckOptions, output_of
from grid.gateway.tree.directory_pages import operation_page
from grid.gateway.tree.operation_documents import manifest_text, size_text, state_document, state_json
from grid.gateway.tree.operations import TreeKind, TreeWork
from grid.gateway.tree.unreadable import told
from grid.limits import MAX_HANDLE_LENGTH
from grid.runtime import run_sized

STARTS: Mapping[str, TreeKind] = {
    "start-manifest": "manifest",
    "start-deep-check": "deep-check",
    "start-deep-size": "deep-size",
    "start-deep-stats": "deep-stats",
}
"""What POST starts with a handle, by `t`."""


def routes() -> Mapping[str, Handler]:
    """Handlers by first segment."""
    return {"operations": operations}


def start_operation(exchange: Exchange, root: DirectoryCap) -> AnyAnswer:
    """Start what `t` names, and say where its state is; BadRequest, TooManyRequests."""
    arguments, gateway = exchange.arguments, exchange.gateway
    kind, handle = STARTS[arguments.t], arguments.text("ophandle")
    if not handle:
        raise BadRequest("ophandle= is missing: any text that is nobody else's")
    if len(handle) > MAX_HANDLE_LENGTH:
        raise BadRequest("ophandle= is too long")
    output_of(arguments, "text")
    options, retain_s = CheckOptions.of(arguments), arguments.count("retain-for")
    gateway.operations.start(handle, kind, root, options, gateway.store, retain_s)
    output = arguments.text("output")
    query = f"?output={quote(output, safe='')}" if output else ""
    return redirect(f"{exchange.origin}/operations/{quote(handle, safe='')}{query}")


async def operations(exchange: Exchange) -> AnyAnswer:
    """`/operations/H[/$SI]`."""
    if len(exchange.segments) == 1:
        raise MethodNotAllowed("an operation's handle belongs behind this", headers=(("Allow", ""),))
    allow(exchange, "GET", "HEAD", "POST")
    _, handle, *rest = exchange.segments
    if not handle or len(rest) > 1:
        raise NotFound("there is no such page", shape="page")
    if exchange.is_form:
        await exchange.form()
    arguments, table = exchange.arguments, exchange.gateway.operations.table
    work = table.look_at(handle, arguments.count("retain-for"))
    if rest and work.kind != "deep-check":
        raise NotFound("there is no such page", shape="page")
    if rest and rest[0]:
        return _one_object(exchange, work, rest[0])
    is_cancelling = exchange.method == "POST" and arguments.t == "cancel"
    if not is_cancelling and arguments.t not in ("", "status"):
        raise BadRequest("operations are asked for t=status, and told t=cancel by POST")
    output = output_of(arguments, "text")
    if is_cancelling:
        if not work.finished:
            work.cancel()
        answer = await _state(exchange, work, output)
        table.release(handle)
        return answer
    release = arguments.flag("release-after-complete", False)
    answer = await _state(exchange, work, output)
    if release and work.finished:
        table.release(handle)
    return answer


async def _state(exchange: Exchange, work: TreeWork, output: str) -> Answer:
    """The state; of an operation that failed with the failure's status, and as much as it had come to."""
    status, error = 200, None
    if work.failure is not None and not isinstance(work.failure, CancelledError):
        fault = told(work.failure)
        status, error = fault.status, str(fault)
    return await run_sized(exchange.gateway.store.runtime.cpu, work.records, _rendered, work, output, status, error)


def _rendered(work: TreeWork, output: str, status: int, error: str | None) -> Answer:
    """What has grown with the tree is looked at on the pool, while the operation may go on."""
    document = state_document(work)
    if error is not None:
        document["error"] = error
    if output == "json" or work.kind == "deep-stats":
        return Answer(status, "text/plain", state_json(work, document))
    if work.kind == "deep-size":
        return text_answer(size_text(work), status)
    if work.kind == "manifest" and output == "text":
        return Answer(status, "text/plain;charset=utf-8", manifest_text(work).encode("utf-8", "replace"))
    return operation_page(work.kind, document, finished=work.finished, error=error, status=status)


def _one_object(exchange: Exchange, work: TreeWork, index: str) -> AnyAnswer:
    document = work.report.results.get(index)
    if document is None:
        raise NotFound("the operation has not checked an object of this storage index", shape="page")
    if output_of(exchange.arguments) == "json":
        return json_answer(document)
    return operation_page(work.kind, document, finished=True, error=None)
