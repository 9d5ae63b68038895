"""JSON Schemas, by name, of the JSON that the gateway sends. Pure. [spec webapi 6-9]

Owns what programs may rely on: required keys are always present; others may come and go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grid.placement.health import HEALTH_COUNTS

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"type": "number"}
_BOOLEAN: Schema = {"type": "boolean"}
_NAMES: Schema = {"type": "array", "items": _STRING}


def ref(name: str) -> Schema:
    """A reference to the schema of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _pair(kind: str, about: Schema) -> Schema:
    return {"type": "array", "prefixItems": [{"const": kind}, about], "minItems": 2, "maxItems": 2}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_CAPS = {"ro_uri": _STRING, "rw_uri": _STRING, "verify_uri": _STRING, "metadata": {"type": "object"}}
_FILE = _pair(
    "filenode",
    {
        "type": "object",
        "required": ["mutable"],
        "properties": {
            **_CAPS,
            "mutable": _BOOLEAN,
            "format": {"enum": ["CHK", "SDMF", "MDMF"]},
            "size": _or_null(_COUNT),
            # Only for files stored inside other files. [spec extents 5]
            "slice": _object({"offset": _COUNT, "pack-size": _COUNT}),
            "sequence": _object({"table-size": _COUNT}),
        },
    },
)
_UNKNOWN = _pair("unknown", {"type": "object", "properties": {**_CAPS, "mutable": _BOOLEAN}})
_CORRUPT = _list({"type": "array", "prefixItems": [_STRING, _STRING, _COUNT], "minItems": 3, "maxItems": 3})
_STATS_COUNTS = (
    "api-version",
    "count-immutable-files",
    "count-mutable-files",
    "count-literal-files",
    "count-files",
    "count-directories",
    "count-unknown",
    "size-immutable-files",
    "size-literal-files",
    "size-directories",
    "largest-directory",
    "largest-directory-children",
    "largest-immutable-file",
)
_OPERATION: Schema = _object(
    {
        "type": {"enum": ["upload", "download", "mapupdate", "publish", "retrieve"]},
        "storage-index-string": _or_null(_STRING),
        "total-size": {"anyOf": [_COUNT, {"const": "-NA-"}]},
        "status": _STRING,
        "id": _STRING,
        "outcome": {"enum": ["active", "done", "failed", "cancelled"]},
        "started": _NUMBER,
        "seconds": _or_null(_NUMBER),
        "bytes": _COUNT,
    },
    received=_COUNT,
    label=_STRING,
)
_VALUES = _map(_or_null(_NUMBER))
_UNIT = {
    "path": _NAMES,
    "cap": {"type": ["string", "null"]},
    "type": {"enum": ["directory", "file", "unknown"]},
    "verifycap": _STRING,
    "repaircap": _STRING,
    "storage-index": _STRING,
}

SCHEMAS: Mapping[str, Schema] = {
    "Node": {"anyOf": [_FILE, _UNKNOWN, _pair("dirnode", ref("Directory"))]},
    "Directory": _object(
        {
            "children": _map(
                {"anyOf": [_FILE, _UNKNOWN, _pair("dirnode", {"type": "object", "required": ["mutable"]})]}
            ),
            "mutable": _BOOLEAN,
        },
        ro_uri=_STRING,
        rw_uri=_STRING,
        verify_uri=_STRING,
    ),
    "Check": _object(
        {"storage-index": _STRING, "results": {"anyOf": [ref("Health"), _object({"healthy": {"const": True}})]}},
        summary=_STRING,
    ),
    "Health": _object(
        {
            "healthy": _BOOLEAN,
            "recoverable": _BOOLEAN,
            **dict.fromkeys(HEALTH_COUNTS, _COUNT),
            "list-corrupt-shares": _CORRUPT,
            "servers-responding": _NAMES,
            "sharemap": _map(_NAMES),
        }
    ),
    "CheckAndRepair": _object(
        {"storage-index": _STRING, "repair-attempted": _BOOLEAN},
        **{"repair-successful": _BOOLEAN, "pre-repair-results": ref("Check"), "post-repair-results": ref("Check")},
    ),
    "CheckAnswer": {"anyOf": [ref("Check"), ref("CheckAndRepair")]},
    "Stats": _object({**dict.fromkeys(_STATS_COUNTS, _COUNT), "size-files-histogram": _list(_list(_COUNT))}),
    "StatsLine": _object({"type": {"const": "stats"}, "stats": ref("Stats")}),
    "ManifestLine": {"anyOf": [_object(_UNIT), ref("StatsLine")]},
    "CheckLine": {
        "anyOf": [
            _object({**_UNIT, "check-results": ref("Check")}),
            _object({**_UNIT, "check-and-repair-results": ref("CheckAndRepair")}),
            ref("StatsLine"),
        ]
    },
    "OperationState": {
        "allOf": [
            _object({"finished": _BOOLEAN}, error=_STRING),
            {
                "anyOf": [
                    ref("Stats"),
                    _object({"size": ref("Stats")}),
                    _object({"origin": _STRING, "stats": ref("Stats")}, manifest=_list({"type": "array"})),
                    _object(
                        {
                            "root-storage-index": _STRING,
                            "count-objects-checked": _COUNT,
                            "list-corrupt-shares": _CORRUPT,
                            "list-unhealthy-files": _list({"type": "array", "prefixItems": [_NAMES, ref("Check")]}),
                            "stats": {"anyOf": [ref("Stats"), {"type": "object", "maxProperties": 0}]},
                        }
                    ),
                ]
            },
        ]
    },
    "NodeState": _object(
        {
            "introducers": _object({"statuses": _NAMES}),
            "servers": _list(
                _object(
                    {
                        "nodeid": _STRING,
                        "nickname": _STRING,
                        "connection_status": _STRING,
                        "available_space": _or_null(_COUNT),
                        "version": _or_null(_STRING),
                        "last_received_data": _or_null(_NUMBER),
                    },
                    transport=_STRING,
                    round_trip=_NUMBER,
                    clock_ahead={"type": "integer"},
                    no_room={"type": "string", "enum": ["full", "read-only", "no space or read-only"]},
                )
            ),
        }
    ),
    "StatusList": _object({"active": _list(_OPERATION), "recent": _list(_OPERATION)}),
    "OperationStatus": {
        "allOf": [_OPERATION, _object({"events": _list({"type": "object"}), "events-dropped": _COUNT})]
    },
    "DownloadEvents": _object(
        {name: {"type": "array"} for name in ("misc", "read", "segment", "dyhb", "block", "block_rownums", "serverids")}
        | {
            "server_info": {"type": "object"},
            "num_serverids": _COUNT,
            "bounds": _object({"min": _NUMBER, "max": _NUMBER}),
        }
    ),
    "Statistics": _object({"counters": _VALUES, "stats": _VALUES}),
    "StorageState": _object({"stats": {"type": "object"}, "bucket-counter": {"type": "object"}}),
    "HelperState": {"type": "object"},
    "ShareLinks": _object(
        {
            "links": _list(
                _object(
                    {
                        "id": _STRING,
                        "name": _STRING,
                        "type": {"enum": ["file", "directory"]},
                        "state": {"enum": ["open", "expired", "used-up"]},
                        "created": _COUNT,
                        "expires": _or_null(_COUNT),
                        "uses": _COUNT,
                        "downloads": _COUNT,
                        "most_downloads": _or_null(_COUNT),
                        "password": _BOOLEAN,
                    }
                )
            )
        },
        link=_STRING,
        id=_STRING,
    ),
    "Alive": _object({"status": {"const": "ok"}}),
    "Ready": _object({"ready": _BOOLEAN}, connected=_COUNT, with_room=_COUNT, known=_COUNT, needed=_COUNT),
    "Document": _object({"openapi": _STRING, "info": {"type": "object"}, "paths": {"type": "object"}}),
}
