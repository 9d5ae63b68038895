"""The state of an operation over a tree, as its document says it. Pure. [spec webapi 7.2]"""

from __future__ import annotations

import json

from grid.codec.base32 import encode
from grid.gateway.tree.check_documents import Json
from grid.gateway.tree.operations import TreeWork


def state_document(work: TreeWork) -> Json:
    """The document that `output=JSON` gives. What ended an operation early is in `error`, beside what it had come to."""
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
    """The document as 1.20 lays it out: each kind in its own way."""
    if work.kind == "deep-size":
        return (json.dumps(document) + "\n").encode("ascii")
    end = "\n" if work.kind == "deep-check" else ""
    return (json.dumps(document, indent=1) + end).encode("ascii")


def size_text(work: TreeWork) -> str:
    """The short form of `start-deep-size`."""
    return f"{_finished_line(work)}size: {work.stats.deep_size}\n" if work.finished else _finished_line(work)


def manifest_text(work: TreeWork) -> str:
    """A line for each object: path and capability."""
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
