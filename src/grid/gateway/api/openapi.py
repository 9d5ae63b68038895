"""The OpenAPI document of the gateway: every endpoint with its methods, arguments and answers. Pure.

Generated from the table of endpoints; tests compare every row of it with the handlers. `x-grid-actions` holds what
OpenAPI cannot express: an operation of the web API is a method together with a `t`, and each has its own answers. [spec
webapi 2]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from grid.gateway.api.endpoint import JSON, Action, Endpoint
from grid.gateway.api.parameters import PARAMETERS
from grid.gateway.api.schemas import SCHEMAS, ref
from grid.gateway.api.table import ENDPOINTS
from grid.values import frozen
from grid.version import __version__

VERSION = "3.1.0"

_FAULTS = {
    "400": "The request cannot be understood.",
    "401": "The node's token is required.",
    "403": "Refused: no authority to write, a blacklisted object, or a page from another site.",
    "404": "No such child, operation or page.",
    "405": "The resource does not support this method.",
    "408": "The request arrived too slowly.",
    "409": "It conflicts with what exists.",
    "410": "Too few shares were found.",
    "412": "This version of the protocol is not supported.",
    "413": "Larger than the limit.",
    "415": "The body has a type that is not accepted here.",
    "416": "The range starts after the end.",
    "421": "The Host is not a name of this gateway.",
    "429": "Too many operations are in progress, or too many passwords were tried.",
    "501": "The method is not known for this resource.",
    "503": "Too few servers, or too many requests.",
    "507": "A disk is full.",
}

_SUCCESSES = {
    "101": "The connection becomes a WebSocket.",
    "200": "Done.",
    "201": "Done; the object is new.",
    "204": "Done; the headers say more.",
    "206": "The requested part.",
    "302": "The Location header says where.",
    "303": "The Location header says where the result is.",
    "304": "The client already has this version.",
}


_COMMON = ("400", "403", "408", "421", "503")
"""Statuses that any request may get."""

_FAULT_TYPES = ("text/plain", "text/html")


@frozen
class _Group:
    name: str
    text: str


_TAGS = (
    _Group("objects", "Files and directories by their capabilities"),
    _Group("uploads", "Uploads that continue where they broke off: the tus protocol 1.0.0"),
    _Group("operations", "Operations on whole trees"),
    _Group("shares", "Share links, which need no capability and end"),
    _Group("node", "The state of the node"),
    _Group("pages", "Pages and their assets"),
)


@cache
def document() -> dict[str, object]:
    """Return the whole document. Callers must not change it."""
    paths: dict[str, dict[str, object]] = {}
    for endpoint in ENDPOINTS:
        entry = paths.setdefault(endpoint.path, {})
        named = _named(endpoint.path)
        if named:
            entry["parameters"] = [_path_parameter(name) for name in named]
        for method in endpoint.methods:
            entry[method.lower()] = _operation(endpoint, method)
    return {
        "openapi": VERSION,
        "info": {
            "title": "Grid web gateway",
            "version": __version__,
            "description": "A secure, erasure-coded storage grid over HTTP. A capability in a path is all the authority that "
            "a request needs; its holder may do what it allows.",
            "license": {"name": "GPL-2.0-or-later", "identifier": "GPL-2.0-or-later"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag.name, "description": tag.text} for tag in _TAGS],
        "paths": paths,
        "components": {
            "schemas": dict(SCHEMAS),
            "securitySchemes": {
                "token": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "tahoe-lafs TOKEN, with the contents of private/api_auth_token",
                }
            },
        },
    }


def _operation(endpoint: Endpoint, method: str) -> dict[str, object]:
    found: dict[str, object] = {
        "operationId": f"{method.lower()} {endpoint.path}",
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "parameters": [_t_parameter(endpoint.actions), *_parameters(endpoint.arguments)],
        "responses": _responses(endpoint.actions, method),
        "x-grid-actions": {action.t: _describe(action, method) for action in endpoint.actions},
    }
    if endpoint.bodies and method in ("PUT", "POST"):
        found["requestBody"] = {"content": {kind: {"schema": _body_schema(kind)} for kind in endpoint.bodies}}
    if endpoint.needs_token:
        found["security"] = [{"token": []}]
    return found


def _describe(action: Action, method: str) -> dict[str, object]:
    """Describe one `t` of an operation.

    `json` and `lines` name the schema of JSON answers, whatever their media type.
    """
    found: dict[str, object] = {"summary": action.summary, "responses": _responses([action], method)}
    if action.json and method != "HEAD":
        found["json"] = ref(action.json)
    if action.lines:
        found["lines"] = ref(action.lines)
    return found


def _responses(actions: Sequence[Action], method: str) -> dict[str, object]:
    statuses = {*_COMMON}.union(*(action.statuses.split() for action in actions))
    found: dict[str, object] = {}
    for status in sorted(statuses):
        content = {} if method == "HEAD" else _content(actions, status)
        text = _SUCCESSES.get(status) or _FAULTS[status]
        found[status] = {"description": text, "content": content} if content else {"description": text}
    return found


def _content(actions: Sequence[Action], status: str) -> dict[str, object]:
    """Media types of the answers with this status, with a schema for each JSON type."""
    if status in ("101", "204", "302", "303", "304"):
        return {}
    able = [action for action in actions if status in action.statuses.split()]
    kinds = dict.fromkeys(kind for action in able for kind in action.answers)
    if status not in ("200", "201", "206"):
        kinds |= dict.fromkeys(_FAULT_TYPES)
    return {kind: _media(kind, able) for kind in kinds}


def _media(kind: str, actions: Iterable[Action]) -> dict[str, object]:
    names = dict.fromkeys(action.json for action in actions if action.json and kind in action.answers)
    if kind != JSON or not names:
        return {}
    schemas = [ref(name) for name in names]
    return {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}


def _t_parameter(actions: Sequence[Action]) -> dict[str, object]:
    words = "; ".join(f"{action.t or 'none'}: {action.summary}" for action in actions)
    return {
        "name": "t",
        "in": "query",
        "required": all(action.t for action in actions),
        "description": f"What to do or show. {words}",
        "schema": {"type": "string", "enum": [action.t for action in actions]},
    }


def _parameters(names: Sequence[str]) -> list[object]:
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": PARAMETERS[name][0],
            "schema": PARAMETERS[name][1],
        }
        for name in names
    ]


def _named(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _path_parameter(name: str) -> dict[str, object]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _body_schema(kind: str) -> dict[str, object]:
    if kind == "multipart/form-data":
        return {
            "type": "object",
            "properties": {"file": {"type": "string", "contentMediaType": "application/octet-stream"}},
        }
    return {"type": "object"} if kind == "application/json" else {}
