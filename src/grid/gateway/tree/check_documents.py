"""CHECK and CHECK-AND-REPAIR, the documents about one object's health. Pure. [spec webapi 6.2, 6.3]"""

from __future__ import annotations

from collections.abc import Mapping

from grid.directory.deep_check import Checked
from grid.gateway.faults import fault_of
from grid.placement.health import HEALTH_COUNTS

Json = dict[str, object]


def nothing_to_check() -> Json:
    """CHECK of an object without shares, or of an unknown kind."""
    return {"storage-index": "", "results": {"healthy": True}}


def check_document(checked: Checked, storage_index: str) -> Json:
    """CHECK. storage_index: base32, for an object whose health is not known."""
    if checked.health is not None:
        return dict(checked.health.to_json())
    return nothing_to_check() if checked.error is None else unknown_health(storage_index, checked)


def repair_document(checked: Checked, storage_index: str, *, in_tree: bool) -> Json:
    """CHECK-AND-REPAIR. in_tree: of many objects, where one without shares has a document of its own."""
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
    """CHECK of an object whose check failed: nothing good is known of it."""
    why = str(fault_of(checked.error)) if checked.error is not None else "it was not looked at"
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
