"""Every operation of the OpenAPI document, by path, method and `t`, is requested once and answered as documented.

What an answer has to be is in `tests.support.conformance`, which every request goes through.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from urllib.parse import quote

import pytest
from attrs import frozen

from grid.caps import UnknownCap, parse_cap
from grid.gateway.shared.share_links import add_link, make_link
from grid.node.share_file import ShareFile
from tests.gateway.rig import TOKEN
from tests.gateway.running import RunningGateway, running_process, uri
from tests.support.conformance import UNDOCUMENTED, document_paths
from tests.support.exchanges import MULTIPART, form

FORM = form({}, ("name", "contents")).encode()
CHILDREN = b'{"c": ["filenode", {"ro_uri": "URI:LIT:krugkidfnzsa"}]}'


@frozen
class Question:
    """How to request an operation. more: arguments besides `t`. place: values for the placeholders of the path."""

    status: int = 200
    more: str = ""
    body: bytes = b""
    type: str = ""
    place: str = ""


GET_FILE = {t: Question(place="$file") for t in ("", "json", "uri", "readonly-uri", "info", "share")} | {
    "preview": Question(more="filename=a.md", place="$file")
}
GET = {
    **GET_FILE,
    "rename-form": Question(more="name=child", place="$folder"),
    "save": Question(302, more="name=child", place="$folder"),
    "zip": Question(place="$folder"),
}
POST = {
    "mkdir": Question(more="name=m"),
    "mkdir-with-children": Question(more="name=$new", body=CHILDREN),
    "mkdir-immutable": Question(more="name=$new", body=CHILDREN),
    "upload": Question(more="name=$new", body=FORM, type=MULTIPART),
    "uri": Question(more="name=l&uri=URI:LIT:krugkidfnzsa"),
    "unlink": Question(more="name=l"),
    "delete": Question(more="name=gone$number"),
    "unlink-many": Question(more="name=x&name=y"),
    "move-many": Question(more="name=x&name=y"),
    "zip": Question(more="name=child"),
    "undo": Question(404, "change=0"),
    "rename": Question(more="from_name=m&to_name=n"),
    "relink": Question(more="from_name=n&to_name=o"),
    "set_children": Question(body=CHILDREN),
    "set-children": Question(body=CHILDREN),
    "check": Question(more="output=json"),
    "stream-manifest": Question(),
    "stream-deep-check": Question(more="verify=true"),
    "start-manifest": Question(302, "ophandle=h1"),
    "start-deep-check": Question(302, "ophandle=h2"),
    "start-deep-size": Question(302, "ophandle=h3"),
    "start-deep-stats": Question(302, "ophandle=h4"),
}
OBJECT = {
    "GET": GET,
    "HEAD": {
        t: Question(400 if t == "preview" else 200, question.more, place="$folder") for t, question in GET.items()
    },
    "PUT": {"": Question(body=b"other", place="$mutable"), "mkdir": Question()},
    "POST": POST,
}
CHILD = {
    "GET": {
        t: question if t in ("rename-form", "save", "zip") else Question(more=question.more, place="$folder/child")
        for t, question in GET.items()
    },
    "HEAD": {
        t: Question(400 if t == "preview" else 200, question.more, place="$folder/sub") for t, question in GET.items()
    },
    "PUT": {
        "": Question(201, body=b"new", place="$folder/$new"),
        "uri": Question(body=b"URI:LIT:krugkidfnzsa", place="$folder/$newer"),
        "mkdir": Question(place="$folder/sub/x"),
    },
    "POST": POST,
    "DELETE": {"": Question(place="$folder/$new")},
}
UNLINKED = {
    "GET": {"": Question(302, "uri=$bare")},
    "HEAD": {"": Question(302, "uri=$bare")},
    "PUT": {"": Question(body=b"contents"), "mkdir": Question()},
    "POST": {
        "": Question(body=FORM, type=MULTIPART),
        "upload": Question(body=FORM, type=MULTIPART),
        "mkdir": Question(),
        "mkdir-with-children": Question(body=CHILDREN),
        "mkdir-immutable": Question(body=CHILDREN),
    },
}
NAMED = {"GET": GET_FILE, "HEAD": {"": Question(place="$file")}}


def shown(*ts: str, **options: object) -> Mapping[str, Mapping[str, Question]]:
    """GET and HEAD of a page."""
    question = Question(**options)  # type: ignore[arg-type]
    return {method: dict.fromkeys(ts or ("",), question) for method in ("GET", "HEAD")}


def asked(*ts: str) -> Mapping[str, Mapping[str, Question]]:
    """GET and HEAD of a page, and POST as GET."""
    return {**shown(*ts), "POST": dict.fromkeys(ts, Question())}


LINK = {t: Question(302, place="$link") for t in ("", "info", "preview", "zip")}
BELOW_LINK = {
    "": Question(place="$link/child"),
    "info": Question(place="$link/child"),
    "preview": Question(400, place="$link/child"),
    "zip": Question(place="$link/sub/"),
}

QUESTIONS: Mapping[str, Mapping[str, Mapping[str, Question]]] = {
    "/": {**asked("", "json"), "OPTIONS": dict.fromkeys(("", "json"), Question())},
    "/uri": UNLINKED,
    "/cap": UNLINKED,
    "/uri/{cap}": OBJECT,
    "/cap/{cap}": OBJECT,
    "/uri/{cap}/{path}": CHILD,
    "/cap/{cap}/{path}": CHILD,
    "/file/{cap}": NAMED,
    "/named/{cap}": NAMED,
    "/file/{cap}/{name}": NAMED,
    "/named/{cap}/{name}": NAMED,
    "/uploads": {"OPTIONS": {"": Question(204)}, "POST": {"": Question(201)}},
    "/uploads/{upload}": {
        "HEAD": {"": Question(place="$upload")},
        "PATCH": {"": Question(204, body=b"abc", type="application/offset+octet-stream", place="$upload")},
        "POST": {"": Question(405, place="$upload")},
        "DELETE": {"": Question(204, place="$upload")},
    },
    "/operations/{handle}": {
        **shown("", "status", more="output=json", place="check"),
        "POST": {
            **dict.fromkeys(("", "status"), Question(more="output=json", place="check")),
            "cancel": Question(more="output=json", place="size"),
        },
    },
    "/operations/{handle}/{index}": {
        method: {"": Question(more="output=json", place="check/$index")} for method in ("GET", "HEAD", "POST")
    },
    "/s/{token}": {"GET": LINK, "HEAD": LINK, "POST": {"": Question(303, place="$link")}},
    "/s/{token}/{path}": {"GET": BELOW_LINK, "HEAD": BELOW_LINK, "POST": {"": Question(303, place="$link/child")}},
    "/shares": {
        **shown("", "json", status=403),
        "POST": {"create": Question(403), "revoke": Question(403)},
    },
    "/status": asked("", "json"),
    "/status/events": shown(),
    "/status/{operation}": shown("", "json", place="up-0"),
    "/status/{operation}/event_json": shown(place="down-15"),
    "/statistics": asked("", "json", "openmetrics"),
    "/metrics": shown(),
    "/storage": {method: {"": Question(), "json": Question(404)} for method in ("GET", "HEAD", "POST")},
    "/helper_status": asked("", "json"),
    "/healthz": shown(),
    "/readyz": shown(status=503),
    "/openapi.json": shown(),
    "/private/logs/v1": {"GET": {"": Question(101)}},
    "/report_incident": {"POST": {"": Question(404, body=b"details=x", type="application/x-www-form-urlencoded")}},
    "/storage-plugins/{name}": shown(status=404, place="x"),
    "/static/{path}": shown(place="hello.txt"),
    "/servers": shown(),
    "/home": {
        **{method: {"": Question(403), "enter": Question()} for method in ("GET", "HEAD")},
        "POST": {"enter": Question(403), "leave": Question()},
    },
    "/assets/{version}/{name}": shown(place="any/grid.css"),
}

OPERATIONS = [
    (path, method.upper(), t)
    for path, methods in document_paths().items()
    for method, operation in methods.items()
    if method != "parameters"
    for t in operation["x-grid-actions"]
]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """One gateway for all."""
    folder = tmp_path_factory.mktemp("operations")
    (folder / "public_html").mkdir()
    (folder / "public_html" / "hello.txt").write_text("hello")
    with running_process(folder) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def places(gateway: RunningGateway) -> dict[str, str]:
    """What the questions are about: an immutable file, a mutable one, a directory, operations."""
    file, mutable = gateway.put(b"contents " * 20000), gateway.put(b"first", "sdmf")
    gone = {f"gone{number}": ["filenode", {"ro_uri": "URI:LIT:krugkidfnzsa"}] for number in range(len(OPERATIONS))}
    sub = gateway.folder(gone)
    children = {**gone, "child": ["filenode", {"ro_uri": file}], "sub": ["dirnode", {"rw_uri": sub}]}
    folder = gateway.folder(children)
    gateway.ask("GET", uri(file))
    for kind, handle in (("deep-check", "check"), ("deep-size", "size")):
        gateway.ask("POST", uri(folder, f"?t=start-{kind}&ophandle={handle}"))
    while not json.loads(gateway.ask("GET", "/operations/check?output=json").body)["finished"]:
        pass
    begun = gateway.ask("POST", "/uploads", headers=TUS)
    checked = json.loads(gateway.ask("POST", uri(file, "?t=check&output=json")).body)
    cap = parse_cap(folder)
    assert not isinstance(cap, UnknownCap)
    with ShareFile(gateway.log.parent / "private").changing() as links:
        add_link(links, make_link("a-token", cap, "shared", 0, expires=None), 0)
    return {
        "$link": "a-token",
        "$file": quote(file, safe=""),
        "$bare": quote(file, safe=""),
        "$mutable": quote(mutable, safe=""),
        "$folder": quote(folder, safe=""),
        "$index": checked["storage-index"],
        "$upload": begun.headers["Location"].rpartition("/")[2],
    }


def test_questions_when_counted_then_cover_all_documented_operations_and_nothing_else() -> None:
    asked = [(path, method, t) for path, methods in QUESTIONS.items() for method in methods for t in methods[method]]
    assert sorted(asked) == sorted(OPERATIONS)


def test_operation_when_asked_for_is_answered_as_documented(gateway: RunningGateway, places: dict[str, str]) -> None:
    asked = 0
    for number, (path, method, t) in enumerate(OPERATIONS):
        question = QUESTIONS[path][method][t]
        target = f"{target_of(path, question)}?{question.more}" + (f"&t={t}" if t else "")
        # What is made by one question is not there yet for the next that makes it, but for a DELETE.
        names = {
            "$number": str(number),
            "$newer": f"newer{number}",
            "$new": "victim" if method == "DELETE" else f"new{number}",
        }
        for name, value in {**names, **places}.items():
            target = target.replace(name, value)
        if method == "DELETE" and "{upload}" not in path:
            assert gateway.ask("PUT", target.partition("?")[0], b"x").status in (200, 201)
        headers = {
            "Content-Type": question.type or None,
            **(SOCKET if question.status == 101 else {}),
            **(TUS if path.startswith("/uploads") else {}),
        }
        if path == "/status/events" and method == "GET":
            assert first_line(gateway, target) == b"HTTP/1.1 200 OK\r\n"
            continue
        reply = gateway.ask(method, target, question.body, headers) if question.status != 101 else None
        if reply is None:
            assert first_line(gateway, target, headers) == b"HTTP/1.1 101 Switching Protocols\r\n"
        else:
            assert reply.status == question.status, (method, path, t, reply.status, reply.body[:300])
        asked += 1
    assert asked == len(OPERATIONS) - 1


def test_method_when_not_documented_is_refused(gateway: RunningGateway, places: dict[str, str]) -> None:
    refused = 0
    for path in QUESTIONS:
        for method in {"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE"} - set(QUESTIONS[path]):
            question = next(iter(QUESTIONS[path].values()))[""]
            target = target_of(path, question)
            for name, value in {"$newer": "a", "$new": "b", **places}.items():
                target = target.replace(name, value)
            assert gateway.ask(method, target).status in UNDOCUMENTED, (method, path)
            refused += 1
    assert refused > 100


TUS = {"Tus-Resumable": "1.0.0", "Upload-Length": "3", "Upload-Offset": "0"}

SOCKET: dict[str, str | None] = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Authorization": f"tahoe-lafs {TOKEN.decode()}",
}


def target_of(path: str, question: Question) -> str:
    """The path with its placeholders filled."""
    if "{" not in path:
        return path
    own = path.partition("/{")[0]
    place = question.place or ("$folder" if "{path}" not in path else "$folder/sub")
    if "{name}" in path and "{cap}" in path:
        place += "/name.txt"
    tail = path.rpartition("}")[2]
    return f"{own}/{place}{tail}"


def first_line(gateway: RunningGateway, target: str, headers: Mapping[str, str | None] | None = None) -> bytes:
    """How an answer without an end begins."""
    fields = {"Host": gateway.host, **(headers or {})}
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items() if value), "", ""]
    with gateway.connect() as connection:
        connection.sendall("\r\n".join(lines).encode())
        return connection.makefile("rb").readline()
