"""The table of endpoints: what each `t` does and what it answers. Pure. [spec webapi 3-7]"""

from __future__ import annotations

from grid.gateway.api.endpoint import (
    ANYTHING,
    BYTES,
    FORM,
    HTML,
    JSON,
    TEXT,
    URLENCODED,
    Action,
    Endpoint,
    page_and_json,
    shares,
    shown,
)
from grid.gateway.api.parameters import NEW_OBJECT, POSTED

_SEEN = "304 404 410"
_MADE = "200 302 404 409 410 413 507"
_LINKED = "200 302 404 409 410 507"

READ_FILE = Action("", "The bytes of a file", (ANYTHING,), f"200 206 409 416 {_SEEN}")
_READ = Action("", "The bytes of a file, or the page of a directory", (ANYTHING,), f"200 206 409 416 {_SEEN}")
_DESCRIBED = (
    Action("json", "Its description as JSON", (TEXT,), f"200 {_SEEN}", json="Node"),
    Action("uri", "Its capability", (TEXT,), f"200 {_SEEN}"),
    Action("readonly-uri", "The capability that only reads it", (TEXT,), f"200 {_SEEN}"),
    Action("info", "A page about it", (HTML,), f"200 {_SEEN}"),
    Action("preview", "A Markdown file, formatted", (HTML,), f"200 413 {_SEEN}"),
    Action("share", "A page that helps to share it", (HTML,), f"200 {_SEEN}"),
)
GET_FILE = (READ_FILE, *_DESCRIBED)
GET_OBJECT = (
    _READ,
    *_DESCRIBED,
    Action("rename-form", "A page to rename a child (name=)", (HTML,), f"200 {_SEEN}"),
    Action("save", "Go to a child's contents, to save them (name=)", (HTML,), f"200 302 {_SEEN}"),
    Action("zip", "A directory and everything below it as a ZIP archive", ("application/zip",), f"200 413 {_SEEN}"),
)

_PUT_FILE = Action("", "Store the body there", (HTML,), "200 201 404 409 410 413 501 507")
_PUT_DIRECTORY = Action("mkdir", "Make a directory, or find one", (TEXT,), "200 404 409 410 507")
PUT_OBJECT = (_PUT_FILE, _PUT_DIRECTORY)
PUT_CHILD = (
    _PUT_FILE,
    Action("uri", "Link the capability in the body", (HTML,), "200 404 409 410 413 501 507"),
    _PUT_DIRECTORY,
)

POST_OBJECT = (
    Action("mkdir", "Make a directory (name=)", (HTML,), _MADE),
    Action("mkdir-with-children", "Make a directory with the children in the body", (HTML,), _MADE),
    Action("mkdir-immutable", "Make an immutable directory with the children in the body", (HTML,), _MADE),
    Action("upload", "Store the form's file (name=)", (HTML,), "200 302 404 409 410 413 501 507"),
    Action("uri", "Link a capability (name=, uri=)", (HTML,), _LINKED),
    Action("unlink", "Unlink a child (name=)", (HTML,), _LINKED),
    Action("delete", "The same", (HTML,), _LINKED),
    Action("unlink-many", "Unlink children (name=, repeated), once sure= is true; else ask", (HTML,), _LINKED),
    Action("move-many", "Move children (name=, repeated) to to_dir=; else show what is at=", (HTML,), _LINKED),
    Action("zip", "Children (name=, repeated) as a ZIP archive", ("application/zip",), "200 404 410 413"),
    Action("undo", "Revert a recent change of the directory (change=)", (HTML,), _LINKED),
    Action("rename", "Rename a child (from_name=, to_name=)", (HTML,), _LINKED),
    Action("relink", "Move a child, also to another directory (to_dir=)", (HTML,), _LINKED),
    Action("set_children", "Link the children listed in the body", (HTML,), _MADE),
    Action("set-children", "The same", (HTML,), _MADE),
    Action("check", "Its health; repair= repairs it", (TEXT, HTML), "200 302 404 409 410 507", json="CheckAnswer"),
    Action(
        "stream-manifest", "List every object below, one line each", (HTML,), "200 404 409 410", lines="ManifestLine"
    ),
    Action(
        "stream-deep-check", "Check every object below, one line each", (HTML,), "200 404 409 410", lines="CheckLine"
    ),
    *(
        Action(f"start-{kind}", f"Begin {words}, under ophandle=", (), "302 404 409 410 429")
        for kind, words in (
            ("manifest", "a list of all objects below"),
            ("deep-check", "a check of all objects below"),
            ("deep-size", "the total size of everything below"),
            ("deep-stats", "statistics of what is below"),
        )
    ),
)

_MADE_UNLINKED = "200 302 303 413 507"
PUT_UNLINKED = (
    Action("", "Store the body", (HTML,), "200 413 507"),
    Action("mkdir", "Make a directory", (HTML,), "200 507"),
)
POST_UNLINKED = (
    Action("", "Store the form's file", (HTML,), "200 302 413 507"),
    Action("upload", "The same", (HTML,), "200 302 413 507"),
    Action("mkdir", "Make a directory", (HTML,), _MADE_UNLINKED),
    Action("mkdir-with-children", "Make a directory with the children in the body", (HTML,), _MADE_UNLINKED),
    Action("mkdir-immutable", "Make an immutable directory with the children in the body", (HTML,), _MADE_UNLINKED),
)

_STATE = "200 403 404 409 410 413"
GET_OPERATION = (
    Action("", "Its state", (TEXT, HTML), _STATE, json="OperationState"),
    Action("status", "The same", (TEXT, HTML), _STATE, json="OperationState"),
)
END_OPERATION = (Action("cancel", "Cancel it", (TEXT, HTML), f"302 {_STATE}", json="OperationState"),)


def _object(path: str, what: str, *, is_child: bool) -> list[Endpoint]:
    """The rows of an object, found by capability or by path.

    is_child: whether it has a name that can be linked and unlinked.
    """
    put = PUT_CHILD if is_child else PUT_OBJECT
    found = [
        Endpoint(
            path=path,
            methods=("GET",),
            summary=f"Read or describe {what}",
            actions=GET_OBJECT,
            arguments=("filename", "save", "output", "name", "sort", "order", "page", "find"),
        ),
        Endpoint(
            path=path,
            methods=("HEAD",),
            summary=f"The headers of GET of {what}",
            actions=GET_OBJECT,
            arguments=("filename", "save"),
        ),
        Endpoint(
            path=path,
            methods=("PUT",),
            summary=f"Store, link or make {what}",
            actions=put,
            arguments=("replace", "offset", "progress", "upload", *NEW_OBJECT),
            bodies=(BYTES, TEXT),
        ),
        Endpoint(
            path=path,
            methods=("POST",),
            summary=f"Change, check or walk {what}",
            actions=POST_OBJECT,
            arguments=POSTED,
            bodies=(FORM, URLENCODED, JSON),
        ),
    ]
    if is_child:
        unlink = shown("Remove the link", HTML, statuses="200 404 409 410 501")
        found.append(Endpoint(path=path, methods=("DELETE",), summary=f"Unlink {what}", actions=unlink))
    return found


def _unlinked(path: str) -> list[Endpoint]:
    return [
        Endpoint(
            path=path,
            methods=("GET", "HEAD"),
            summary="Go to a capability (uri=)",
            actions=shown("Where it is", statuses="302"),
            arguments=("uri", "filename", "save"),
        ),
        Endpoint(
            path=path,
            methods=("PUT",),
            summary="Create an unlinked object",
            actions=PUT_UNLINKED,
            arguments=("filename", "progress", *NEW_OBJECT),
            bodies=(BYTES,),
        ),
        Endpoint(
            path=path,
            methods=("POST",),
            summary="Create an unlinked object",
            actions=POST_UNLINKED,
            arguments=("when_done", "redirect_to_result", *NEW_OBJECT),
            bodies=(FORM, URLENCODED, JSON),
        ),
    ]


def _named(path: str) -> list[Endpoint]:
    what = "a file whose type the last segment decides"
    return [
        Endpoint(
            path=path,
            methods=("GET",),
            summary=f"Read or describe {what}",
            actions=GET_FILE,
            arguments=("filename", "save"),
        ),
        Endpoint(
            path=path,
            methods=("HEAD",),
            summary=f"The headers of GET of {what}",
            actions=(READ_FILE,),
            arguments=("filename", "save"),
        ),
    ]


def _shown(
    path: str, summary: str, actions: tuple[Action, ...], tag: str = "node", arguments: tuple[str, ...] = ()
) -> Endpoint:
    return Endpoint(path=path, methods=("GET", "HEAD"), summary=summary, actions=actions, tag=tag, arguments=arguments)


def _asked(
    path: str, summary: str, actions: tuple[Action, ...], *more: str, arguments: tuple[str, ...] = ()
) -> list[Endpoint]:
    """The rows of actions that answer POST as well as GET, followed by those of other methods."""
    post = Endpoint(
        path=path, methods=("POST", *more), summary="The same", tag="node", actions=actions, bodies=(FORM, URLENCODED)
    )
    return [_shown(path, summary, actions, arguments=arguments), post]


def _uploads() -> list[Endpoint]:
    path, tag = "/uploads/{upload}", "uploads"
    rows = (
        ("/uploads", "OPTIONS", "The supported versions and extensions", "204"),
        ("/uploads", "POST", "Begin an upload (Upload-Length:)", "201 412 507"),
        (path, "HEAD", "How many bytes have arrived", "200 404 412"),
        (path, "PATCH", "Send bytes (Upload-Offset:)", "204 404 409 412 413 415 507"),
        (path, "POST", "What X-HTTP-Method-Override says", "204 404 405 409 412 413 415 507"),
        (path, "DELETE", "Discard the upload", "204 404 412"),
    )
    return [
        Endpoint(path=at, methods=(method,), summary=words, tag=tag, actions=shown(words, statuses=statuses))
        for at, method, words, statuses in rows
    ]


def _operations() -> list[Endpoint]:
    path, tag = "/operations/{handle}", "operations"
    return [
        Endpoint(
            path=path,
            methods=("GET", "HEAD"),
            summary="The state of an operation, and its results",
            tag=tag,
            actions=GET_OPERATION,
            arguments=("output", "retain-for", "release-after-complete"),
        ),
        Endpoint(
            path=path,
            methods=("POST",),
            summary="Cancel an operation, or ask for its state",
            tag=tag,
            actions=(*GET_OPERATION, *END_OPERATION),
            arguments=("output", "ask"),
            bodies=(FORM,),
        ),
        Endpoint(
            path="/operations/{handle}/{index}",
            methods=("GET", "HEAD", "POST"),
            summary="An operation's result for one object",
            tag=tag,
            actions=shown("Its health", TEXT, HTML, statuses="200 404", json="CheckAnswer"),
            arguments=("output",),
        ),
    ]


ENDPOINTS: tuple[Endpoint, ...] = (
    *_asked("/", "The node, its introducers and servers", page_and_json("NodeState", JSON), "OPTIONS"),
    *_unlinked("/uri"),
    *_unlinked("/cap"),
    *_object("/uri/{cap}", "an object", is_child=False),
    *_object("/uri/{cap}/{path}", "what a path names", is_child=True),
    *_object("/cap/{cap}", "an object", is_child=False),
    *_object("/cap/{cap}/{path}", "what a path names", is_child=True),
    *_named("/file/{cap}"),
    *_named("/file/{cap}/{name}"),
    *_named("/named/{cap}"),
    *_named("/named/{cap}/{name}"),
    *_uploads(),
    *_operations(),
    *_asked(
        "/status",
        "Operations in progress and recent ones",
        page_and_json("StatusList", JSON),
        arguments=("kind", "state", "all", "by", "order"),
    ),
    _shown("/status/events", "Operations as they advance", shown("Server-sent events", "text/event-stream")),
    _shown("/status/{operation}", "One operation", page_and_json("OperationStatus", JSON, statuses="200 404")),
    _shown(
        "/status/{operation}/event_json",
        "What happened inside a download",
        shown("Its events", TEXT, statuses="200 404", json="DownloadEvents"),
    ),
    *_asked(
        "/statistics",
        "Counters and statistics",
        (*page_and_json("Statistics"), Action("openmetrics", "For scrapers", ("application/openmetrics-text",))),
        arguments=("span",),
    ),
    _shown("/metrics", "For Prometheus", shown("Samples", TEXT)),
    *_asked("/storage", "The storage server of this node", page_and_json("StorageState", missing="404")),
    *_asked("/helper_status", "The upload helper of this node", page_and_json("HelperState")),
    _shown("/healthz", "Whether the gateway answers", shown("It answers", JSON, json="Alive")),
    _shown(
        "/readyz",
        "Whether enough servers are connected, and have room, to store files",
        shown("The numbers", JSON, statuses="200 503", json="Ready"),
    ),
    _shown("/openapi.json", "This document", shown("This document", JSON, json="Document")),
    Endpoint(
        path="/private/logs/v1", methods=("GET",), summary="The log: a WebSocket", tag="node", needs_token=True,
        actions=shown("The log from now on", statuses="101 401"),
    ),
    Endpoint(
        path="/report_incident",
        methods=("POST",),
        summary="Save a report beside the log",
        tag="node",
        actions=shown("The report is saved", HTML, statuses="200 404 413 507"),
        arguments=("details",),
        bodies=(FORM, URLENCODED),
    ),
    _shown("/storage-plugins/{name}", "A storage plugin's resource", shown("No such plugin", statuses="404")),
    _shown("/static/{path}", "The operator's own files", shown("A file", ANYTHING, statuses="200 404"), tag="pages"),
    _shown("/servers", "The storage servers", shown("The page", HTML), tag="pages"),
    Endpoint(
        path="/home",
        methods=("GET", "HEAD"),
        summary="The client's own part of the home page",
        tag="pages",
        actions=(
            Action("", "The part, as a page", (HTML,)),
            Action("enter", "The page that takes the token of `grid web` from its address, and goes on", (HTML,)),
        ),
    ),
    Endpoint(
        path="/home",
        methods=("POST",),
        summary="Make a browser known, or forget it",
        tag="pages",
        actions=(
            Action("enter", "Exchange the token that `grid web` handed over (token=)", (JSON,)),
            Action("leave", "Forget this browser", (JSON,)),
        ),
        arguments=("token",),
        bodies=(URLENCODED, FORM),
    ),
    *shares(),
    _shown(
        "/assets/{version}/{name}",
        "Styles, scripts and images of the pages",
        shown("A file", ANYTHING, statuses="200 304 404"),
        tag="pages",
    ),
)  # fmt: skip
