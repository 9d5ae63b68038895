"""Malformed requests of every kind over a real socket: no 5xx, no traceback, no leaked secret or memory."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.running import RunningGateway, running_process, uri
from tests.support.depth import examples
from tests.support.exchanges import MULTIPART, Reply

EXAMPLES = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SILENCE_S = 0.2
"""After this bytes that are no request get no answer."""

GROWTH = 24 * 2**20
"""Bytes that the process may hold more after all of this; what a thousand requests leak is more, or too little to see."""

TOLERATED = {501, 503, 505}
"""Not our failure: a method or version that is unknown, no server for the shares."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """One gateway for all, in which afterwards nothing is left."""
    with running_process(tmp_path_factory.mktemp("fuzz")) as gateway:
        for _ in range(50):
            gateway.ask("GET", "/healthz")
        held, files = gateway.resident(), gateway.descriptors()
        yield gateway
        gateway.ask("GET", "/healthz")
        logged = gateway.logged()
        found = logged.find("Traceback")
        assert found < 0, logged[max(0, found - 500) : found + 4000]
        assert "URI:" not in logged and "URI%3A" not in logged
        assert gateway.resident() < held + GROWTH
        assert gateway.descriptors() <= files + 2
        assert not [path for path in gateway.log.parent.iterdir() if path != gateway.log]


@pytest.fixture(scope="module")
def caps(gateway: RunningGateway) -> list[str]:
    """Objects that requests are about."""
    file, mutable = gateway.put(b"contents" * 500), gateway.put(b"contents" * 10, "sdmf")
    folder = gateway.folder({"a": ["filenode", {"ro_uri": file}], "b": ["filenode", {"rw_uri": mutable}]})
    return [file, mutable, folder, "URI:LIT:onwwc3dm", "URI:DIR2-LIT:", "nonsense", ""]


def require_decent(reply: Reply, secrets: list[str] | None = None) -> None:
    """No failure of ours, no words about our insides, no capability in an error."""
    assert reply.status < 500 or reply.status in TOLERATED, reply
    assert b"Traceback" not in reply.body and b'File "' not in reply.body
    if reply.status >= 400:
        for secret in secrets or []:
            assert len(secret) < 30 or secret.encode() not in reply.body


METHODS = st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", "G\xcbT", "QQ"])
SEGMENTS = st.one_of(
    st.binary(max_size=12).map(lambda raw: quote_from_bytes(raw, safe="")),
    st.sampled_from(
        ["a", "b", "", ".", "..", "%", "%zz", "%00", "%2F", "%FF", "a;b", "@@named=", "\xfc", "~", "%C3%BC"]
    ),
)
NAMES = st.sampled_from(
    [
        "t",
        "format",
        "mutable",
        "replace",
        "offset",
        "output",
        "filename",
        "save",
        "name",
        "uri",
        "from_name",
        "to_name",
        "to_dir",
        "ophandle",
        "when_done",
        "return_to",
        "verify",
        "repair",
        "add-lease",
        "retain-for",
        "release-after-complete",
        "redirect_to_result",
        "_charset",
        "private-key",
        "x",
    ]
)
VALUES = st.one_of(
    st.sampled_from(
        [
            "json",
            "uri",
            "readonly-uri",
            "info",
            "upload",
            "mkdir",
            "mkdir-with-children",
            "mkdir-immutable",
            "set_children",
            "unlink",
            "undo",
            "unlink-many",
            "move-many",
            "zip",
            "rename",
            "relink",
            "check",
            "stream-manifest",
            "stream-deep-check",
            "start-manifest",
            "start-deep-check",
            "start-deep-size",
            "start-deep-stats",
            "cancel",
            "status",
            "true",
            "false",
            "only-files",
            "chk",
            "sdmf",
            "mdmf",
            "-1",
            "0",
            "1",
            "1e9",
            "99999999999999999999",
            "JSON",
            "html",
            "text",
            "utf-8",
            "latin-1",
            "none",
            "a",
            "b",
        ]
    ),
    st.binary(max_size=8).map(lambda raw: quote_from_bytes(raw, safe="")),
)
QUERIES = st.lists(st.tuples(NAMES, VALUES), max_size=4).map(lambda pairs: "&".join("=".join(pair) for pair in pairs))
PLACES = st.sampled_from(
    ["uri", "cap", "file", "named", "operations", "status", "statistics", "storage", "private", "x"]
)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "Range",
            "If-None-Match",
            "If-Range",
            "Content-Type",
            "Content-Range",
            "Accept",
            "Accept-Encoding",
            "Expect",
            "Origin",
            "Authorization",
            "Cookie",
            "Upgrade",
            "Connection",
            "Referer",
            "X-Forwarded-Host",
            "Transfer-Encoding",
            "Content-Length",
            "Content-Encoding",
        ]
    ),
    st.one_of(
        st.sampled_from(
            [
                "bytes=0-1,2-3",
                "bytes=-1",
                "bytes=9-",
                "bytes=" + "1-2," * 400,
                "*",
                '"x"',
                "a, b",
                MULTIPART,
                "multipart/form-data",
                "multipart/form-data; boundary=",
                "application/x-www-form-urlencoded",
                "chunked",
                "gzip, chunked",
                "identity",
                "0",
                "-1",
                "+3",
                "3, 3",
                "1" * 400,
                "100-continue",
                "websocket",
                "close",
            ]
        ),
        st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=40),
    ),
    max_size=4,
)
BODIES = st.one_of(
    st.just(b""),
    st.binary(max_size=300),
    st.sampled_from([b"{", b"[]", b'{"a": 1}', b'{"a": ["x", {"ro_uri": 1}]}', b"[" * 300]),
)


@EXAMPLES
@given(st.data(), METHODS, PLACES, st.integers(0, 6), st.lists(SEGMENTS, max_size=3), QUERIES, HEADERS, BODIES)
def test_request_when_it_is_wrong_in_any_way_is_answered_and_no_5xx(
    gateway: RunningGateway,
    caps: list[str],
    data: st.DataObject,
    method: str,
    place: str,
    number: int,
    segments: list[str],
    query: str,
    headers: dict[str, str],
    body: bytes,
) -> None:
    target = (
        "/" + "/".join([place, uri(caps[number]).removeprefix("/uri/"), *segments]) + (f"?{query}" if query else "")
    )
    own_length = {name.lower() for name in headers} & {"content-length", "transfer-encoding"}
    fields = {**({} if own_length else {"Content-Length": str(len(body))}), **headers}
    lines = [f"{method} {target} HTTP/1.1", f"Host: {gateway.host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    raw = "\r\n".join([*lines, "", ""]).encode("latin-1") + body
    require_decent(answer_of(gateway, raw) if own_length else gateway.send(raw), caps)


@EXAMPLES
@given(st.binary(max_size=400))
def test_bytes_when_they_are_no_request_do_no_harm(gateway: RunningGateway, raw: bytes) -> None:
    require_decent(answer_of(gateway, raw + b"\r\n\r\n"))


@EXAMPLES
@given(
    st.sampled_from(["GET / HTTP/1.1", "GET /healthz HTTP/1.0", "PUT /uri HTTP/1.1", "POST /uri?t=mkdir HTTP/1.1"]),
    st.lists(st.binary(max_size=60), max_size=8),
)
def test_headers_when_they_are_any_bytes_do_no_harm(gateway: RunningGateway, first: str, lines: list[bytes]) -> None:
    head = b"\r\n".join([first.encode(), b"Host: " + gateway.host.encode(), *lines])
    require_decent(answer_of(gateway, head + b"\r\n\r\n"))


@EXAMPLES
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from(
                [
                    b"--b",
                    b"--b--",
                    b"\r\n",
                    b"\r\n\r\n",
                    b'name="file"',
                    b'Content-Disposition: form-data; name="file"; filename="x"\r\n\r\n',
                ]
            ),
        ),
        max_size=12,
    )
)
def test_form_when_it_is_any_bytes_is_refused_or_taken(
    gateway: RunningGateway, caps: list[str], parts: list[bytes]
) -> None:
    for target in (uri(caps[2], "?t=upload&name=fuzzed"), "/uri?t=upload", "/uri"):
        headers: dict[str, str | None] = {"Content-Type": "multipart/form-data; boundary=b"}
        require_decent(gateway.ask("POST", target, b"".join(parts), headers), caps)


@EXAMPLES
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8) | st.sampled_from(["filenode", "URI:LIT:"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["a", "rw_uri", "ro_uri", "metadata", ""]), inner, max_size=3)
        ),
        max_leaves=10,
    )
)
def test_children_when_they_are_any_json_are_refused_or_taken(
    gateway: RunningGateway, caps: list[str], children: object
) -> None:
    import json

    body = json.dumps(children).encode()
    require_decent(gateway.ask("POST", "/uri?t=mkdir-immutable", body), caps)
    require_decent(gateway.ask("POST", uri(caps[2], "/made?t=mkdir-immutable"), body), caps)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"y" * 2**20 + b"\r\n\r\n",
        b"GET /" + b"y" * 2**20 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /" + b"a/" * 20_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
        b"PUT /uri HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"PUT /uri HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"PUT /uri HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n",
        b"PUT /uri HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        b"PUT /uri HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 2**18 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n folded: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nHost: attacker.example\r\n\r\n",
    ],
    ids=range(15),
)
def test_request_when_it_is_ambiguous_or_huge_is_refused(gateway: RunningGateway, raw: bytes) -> None:
    reply = answer_of(gateway, raw.replace(b"Host: h", b"Host: " + gateway.host.encode()))
    assert reply.status == 0 or 400 <= reply.status < 500 or reply.status == 505


def answer_of(gateway: RunningGateway, raw: bytes) -> Reply:
    """The immediate answer to bytes that may be an incomplete request; status 0 if there is none."""
    with gateway.connect() as connection:
        connection.settimeout(SILENCE_S)
        received = b""
        try:
            connection.sendall(raw)
            while piece := connection.recv(65536):
                received += piece
        except (TimeoutError, ConnectionError):
            pass
    line = received.partition(b"\r\n")[0].split(b" ")
    status = int(line[1]) if len(line) > 1 and line[0].startswith(b"HTTP/") else 0
    return Reply(status=status, body=received)
