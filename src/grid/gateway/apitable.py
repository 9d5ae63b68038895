"""The endpoints of the gateway as a table: a row for each path and group of methods. Pure. [spec webapi 2]"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

_FORM = "multipart/form-data"
_URLENCODED = "application/x-www-form-urlencoded"
_OCTETS = "application/octet-stream"
_JSON = "application/json"
_TEXT = "text/plain"
_HTML = "text/html"


@frozen(kw_only=True)
class Endpoint:
    """methods: space-separated in the table. arguments: names of PARAMETERS. bodies, answers: media types.

    statuses: besides those that every request may have. always: its arguments also count for HEAD and DELETE.
    """

    path: str
    methods: tuple[str, ...]
    summary: str
    tag: str = "objects"
    arguments: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    statuses: str = "200"
    always: bool = False
    needs_token: bool = False


_BOOLEAN = {"type": "string", "enum": ["true", "false", "t", "f", "1", "0", "on", "off"]}
_STRING = {"type": "string"}

PARAMETERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "t": ("What is to be done, or shown.", _STRING),
    "uri": ("A capability.", _STRING),
    "format": (
        "How a new object is stored.",
        {"type": "string", "enum": ["", "chk", "sdmf", "mdmf", "CHK", "SDMF", "MDMF"]},
    ),
    "mutable": ("Without format=: whether a new file can be changed.", _BOOLEAN),
    "private-key": ("The private key of a new mutable object: DER in urlsafe base64.", _STRING),
    "replace": (
        "Whether what is there may be replaced.",
        {"type": "string", "enum": [*_BOOLEAN["enum"], "only-files"]},
    ),
    "offset": ("Where new octets of a mutable file go.", {"type": "integer", "minimum": 0}),
    "filename": ("The name that decides the type.", _STRING),
    "save": ("Whether a browser keeps the file.", _BOOLEAN),
    "when_done": ("Where to send the browser afterwards.", _STRING),
    "redirect_to_result": ("Whether to send the browser to the new directory.", _BOOLEAN),
    "name": ("A child's name.", _STRING),
    "from_name": ("The child's name now.", _STRING),
    "to_name": ("The child's name afterwards.", _STRING),
    "to_dir": ("The directory that the child goes to.", _STRING),
    "verify": ("Whether every octet is looked at.", _BOOLEAN),
    "repair": ("Whether what is lacking is made anew.", _BOOLEAN),
    "add-lease": ("Whether leases are renewed.", _BOOLEAN),
    "output": ("How the result is shown.", _STRING),
    "ophandle": ("The handle that an operation is asked by.", _STRING),
    "retain-for": ("Seconds for which a result is kept.", {"type": "integer", "minimum": 0}),
    "release-after-complete": ("Whether a result is forgotten once it was shown.", _BOOLEAN),
}

_NEW = ("format", "mutable", "private-key")
_CHECK = ("verify", "repair", "add-lease", "output", "ophandle")
_OBJECT_POST = ("t", "name", "from_name", "to_name", "to_dir", "uri", "replace", "when_done", *_NEW, *_CHECK)
_READ = "200 206 302 304 404 409 410 416"
_WRITE = "200 201 302 404 409 410 413 501 507"


def _object(path: str, what: str) -> list[Endpoint]:
    get = Endpoint(
        path=path,
        methods=("GET", "HEAD"),
        summary=f"Read or describe {what}",
        arguments=("t", "filename", "save", "output"),
        answers=(_OCTETS, _TEXT, _HTML),
        statuses=_READ + " 501",
    )
    put = Endpoint(
        path=path,
        methods=("PUT",),
        summary=f"Store contents at {what}, link a capability (t=uri), or make a directory (t=mkdir)",
        arguments=("t", "replace", "offset", *_NEW),
        bodies=(_OCTETS, _TEXT),
        answers=(_HTML, _TEXT),
        statuses=_WRITE,
    )
    post = Endpoint(
        path=path,
        methods=("POST",),
        summary=f"Change, check or walk {what}, as t= says",
        arguments=_OBJECT_POST,
        bodies=(_FORM, _URLENCODED, _JSON),
        answers=(_HTML, _TEXT),
        statuses=_WRITE + " 303",
    )
    delete = Endpoint(
        path=path, methods=("DELETE",), summary=f"Unlink {what}", answers=(_HTML,), statuses="200 404 409 410 501"
    )
    return [get, put, post, delete]


def _unlinked(path: str) -> list[Endpoint]:
    put = Endpoint(
        path=path,
        methods=("PUT",),
        summary="Store a file that is in no directory, or make a directory (t=mkdir)",
        arguments=("t", *_NEW),
        bodies=(_OCTETS,),
        answers=(_HTML,),
        statuses="200 413 507",
    )
    post = Endpoint(
        path=path,
        methods=("POST",),
        summary="Store a form's file, or make a directory with or without children",
        arguments=("t", "when_done", "redirect_to_result", *_NEW),
        bodies=(_FORM, _JSON),
        answers=(_HTML,),
        statuses="200 302 303 413 507",
    )
    get = Endpoint(
        path=path,
        methods=("GET",),
        summary="Go to a capability",
        arguments=("uri", "t", "filename", "save"),
        statuses="302",
    )
    return [get, put, post]


def _named(path: str) -> Endpoint:
    return Endpoint(
        path=path,
        methods=("GET", "HEAD"),
        summary="Read a file whose type the last segment decides",
        arguments=("t", "filename", "save"),
        answers=(_OCTETS,),
        statuses=_READ,
    )


def _shown(path: str, summary: str, *answers: str, statuses: str = "200", **more: Any) -> Endpoint:
    found: dict[str, Any] = {"methods": ("GET", "HEAD"), "tag": "node", **more}
    return Endpoint(path=path, summary=summary, answers=answers, statuses=f"{statuses} 405", **found)


ENDPOINTS: tuple[Endpoint, ...] = (
    _shown("/", "The node, its introducers and servers", _HTML, _JSON, arguments=("t",), always=True),
    *_unlinked("/uri"),
    *_unlinked("/cap"),
    *_object("/uri/{cap}", "an object"),
    *_object("/uri/{cap}/{path}", "what a path leads to"),
    *_object("/cap/{cap}", "an object"),
    *_object("/cap/{cap}/{path}", "what a path leads to"),
    _named("/file/{cap}"),
    _named("/file/{cap}/{name}"),
    _named("/named/{cap}"),
    _named("/named/{cap}/{name}"),
    Endpoint(
        path="/operations/{handle}",
        methods=("GET",),
        summary="How an operation stands, and what it found",
        tag="operations",
        arguments=("output", "retain-for", "release-after-complete"),
        answers=(_TEXT, _HTML),
        statuses="200 404",
    ),
    Endpoint(
        path="/operations/{handle}",
        methods=("POST",),
        summary="End an operation (t=cancel)",
        tag="operations",
        arguments=("t",),
        bodies=(_FORM,),
        answers=(_TEXT, _HTML),
        statuses="200 404",
    ),
    Endpoint(
        path="/operations/{handle}/{index}",
        methods=("GET",),
        summary="What an operation found of one object",
        tag="operations",
        arguments=("output",),
        answers=(_TEXT, _HTML),
        statuses="200 404",
    ),
    _shown("/status", "Operations under way and recent", _JSON, _HTML, arguments=("t",), always=True),
    Endpoint(
        path="/status",
        methods=("POST",),
        summary="The same",
        tag="node",
        arguments=("t",),
        answers=(_JSON,),
        bodies=(_FORM,),
    ),
    _shown("/status/events", "Operations as they come on: server-sent events", "text/event-stream"),
    _shown("/status/{operation}", "One operation", _JSON, _HTML, statuses="200 404", arguments=("t",)),
    _shown("/status/{operation}/event_json", "What happened inside a download", _TEXT, statuses="200 404"),
    _shown(
        "/statistics",
        "Counters and statistics",
        _TEXT,
        "application/openmetrics-text",
        _HTML,
        arguments=("t",),
        always=True,
    ),
    _shown("/metrics", "For Prometheus", _TEXT),
    _shown(
        "/storage", "The storage server of this node", _TEXT, _HTML, statuses="200 404", arguments=("t",), always=True
    ),
    _shown("/helper_status", "The upload helper of this node", _TEXT, _HTML, arguments=("t",), always=True),
    _shown("/healthz", "Whether the gateway answers", _JSON),
    _shown("/readyz", "Whether enough servers are connected to store files", _JSON, statuses="200 503"),
    _shown("/openapi.json", "This document", _JSON),
    _shown("/private/logs/v1", "The log: a WebSocket", statuses="101 401", methods=("GET",), needs_token=True),
    Endpoint(
        path="/report_incident",
        methods=("POST",),
        summary="Keep a report beside the log",
        tag="node",
        bodies=(_FORM, _URLENCODED),
        answers=(_HTML,),
        statuses="200 413 507",
    ),
    _shown("/storage-plugins/{name}", "A storage plugin's resource", statuses="404"),
    _shown("/static/{name}", "The operator's own files", _OCTETS, statuses="200 404", tag="pages"),
    _shown("/servers", "The storage servers", _HTML, tag="pages"),
    _shown("/assets/{version}/{name}", "What pages are drawn with", _OCTETS, statuses="200 304 404", tag="pages"),
)
