"""One request to a web gateway as bytes, its answer, and a field-by-field comparison of two answers.

Two gateways on one grid are sent the same bytes, but for the capabilities of objects that each has of its own. What
may differ between equal answers (capabilities of those, times, storage indexes, server ids' order) is made alike first.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import urllib.parse
from collections.abc import Mapping, Sequence
from string import Template
from typing import Any, Literal

from attrs import field, frozen

Shape = Literal["text", "json", "lines", "page", "headers"]
"""How a good answer's body is compared: byte for byte, as one JSON value, as one JSON value a line, only that it is
HTML, not at all."""

ANSWER_S = 60.0
HANG_S = 1.5
"""After this a request that 1.20 never answers counts as one."""

BOUNDARY = "-gateway-exchange-"
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"
URLENCODED = "application/x-www-form-urlencoded"

COMPARED_HEADERS = (
    "ETag",
    "Location",
    "Accept-Ranges",
    "Content-Range",
    "Content-Disposition",
    "Content-Encoding",
    "WWW-Authenticate",
    "X-Frame-Options",
    "Referrer-Policy",
)
"""Beside the content type; framing is free, but the length of what a HEAD promises is compared too."""

_UNORDERED = frozenset({"servers-responding", "verifycaps", "storage-index", "list-corrupt-shares", "serverids"})
_TIMES = frozenset({"linkcrtime", "linkmotime", "ctime", "mtime", "last_received_data", "node.uptime"})
_MUTABLE_CAP = re.compile(
    r"URI(?::|%3A)((?:DIR2(?:-MDMF)?|SSK|MDMF)(?:-RO|-Verifier)?)(?::|%3A)[a-z2-7]{26}(?::|%3A)[a-z2-7]{52}"
)
_INDEX = re.compile(r"(?<!CHK:)(?<!CHK%3A)(?<![a-z0-9])[a-z2-7]{26}(?![a-z0-9])")
_HERE = re.compile(r"http://127\.0\.0\.1(:\d+)?(?=/)")
_VERSION = re.compile(r"seq(\d+)-[a-z2-7]{4}-sh(\d+)")
_ERROR_NAME = re.compile(r"[A-Za-z]+Error(?=: )|No such child|Access Prohibited")


@frozen(kw_only=True)
class Exchange:
    """A request with `$name` where a capability goes: percent-encoded in the target, as it is in the body."""

    name: str
    method: str
    target: str
    body: str | bytes = b""
    type: str = ""
    headers: Mapping[str, str] = field(factory=dict)
    shape: Shape = "text"
    hangs: bool = False
    """Whether 1.20 never answers."""
    version: str = "HTTP/1.1"
    """HTTP/1.0 comes without a Host."""

    def request_bytes(self, caps: Mapping[str, str]) -> bytes:
        """The request on the wire."""
        quoted = {name: urllib.parse.quote(cap, safe="") for name, cap in caps.items()}
        target = Template(self.target).substitute(quoted)
        body = self.body if isinstance(self.body, bytes) else Template(self.body).substitute(caps).encode()
        lines = [f"{self.method} {target} {self.version}", "Connection: close"]
        lines += ["Host: 127.0.0.1"] if self.version == "HTTP/1.1" else []
        lines += [f"{name}: {Template(value).substitute(caps)}" for name, value in self.headers.items()]
        if self.type:
            lines.append(f"Content-Type: {self.type}")
        if body or self.method in ("PUT", "POST"):
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@frozen(kw_only=True)
class Reply:
    """An answer; status 0 if none came in time. whole: whether the body came to its announced end."""

    status: int
    headers: Mapping[str, str] = field(factory=dict)
    body: bytes = b""
    whole: bool = True

    def header(self, name: str) -> str | None:
        """Of any case; None if absent."""
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), None)


def send(url: str, request_bytes: bytes, timeout_s: float = ANSWER_S) -> Reply:
    """What the gateway at that URL answers to these bytes."""
    base = urllib.parse.urlsplit(url)
    with socket.create_connection((base.hostname or "", base.port or 0), timeout=timeout_s) as connection:
        connection.sendall(request_bytes)
        answer = http.client.HTTPResponse(connection, method=request_bytes.split(b" ", 1)[0].decode("latin-1"))
        try:
            answer.begin()
            body, whole = answer.read(), True
        except (TimeoutError, http.client.BadStatusLine):
            return Reply(status=0)  # 1.20 leaves some requests open after a body that has no head.
        except http.client.IncompleteRead as error:
            body, whole = error.partial, False
        finally:
            answer.close()
    return Reply(status=answer.status, headers=dict(answer.getheaders()), body=body, whole=whole)


def form(fields: Mapping[str, str], file: tuple[str, str] | None = None) -> str:
    """A body of type MULTIPART. file: its name ("" for none) and contents."""
    parts = [f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()]
    if file is not None:
        name = f'; filename="{file[0]}"' if file[0] else ""
        disposition = f'Content-Disposition: form-data; name="file"{name}\r\n'
        parts.append(f"{disposition}Content-Type: application/octet-stream\r\n\r\n{file[1]}\r\n")
    return "".join(f"--{BOUNDARY}\r\n{part}" for part in parts) + f"--{BOUNDARY}--\r\n"


@frozen
class Alike:
    """Makes answers of one gateway comparable. caps: of its own objects by name; known: the caps and indexes of both."""

    caps: Mapping[str, str]
    known: frozenset[str]

    def text(self, text: str) -> str:
        """With the gateway's own capabilities by their names, new ones by their kind."""
        for name, cap in self.caps.items():
            text = text.replace(cap, f"<{name}>").replace(urllib.parse.quote(cap, safe=""), f"<{name}>")
        text = _HERE.sub("<here>", _MUTABLE_CAP.sub(self._mutable, text))
        text = _VERSION.sub(r"seq\1-<root>-sh\2", text)
        return _INDEX.sub(lambda match: match[0] if match[0] in self.known else "<index>", text)

    def value(self, value: Any, key: str = "") -> Any:
        """The same of a JSON value."""
        if key in _TIMES and isinstance(value, int | float):
            return "<time>"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            made = [self.value(item, key if key == "sharemap" else "") for item in value]
            return sorted(made, key=json.dumps) if key in _UNORDERED or key == "sharemap" else made
        if isinstance(value, dict):
            inner = "sharemap" if key == "sharemap" else None
            alike = {self.text(name): self.value(item, inner or name) for name, item in value.items()}
            return alike if value.get("storage-index") in ("", *self.known) else _without_places(alike)
        return value

    def _mutable(self, match: re.Match[str]) -> str:
        cap = urllib.parse.unquote(match[0])
        return cap if cap in self.known else f"<new {match[1]}>"


def _without_places(check: dict[str, Any]) -> dict[str, Any]:
    """How many servers have each share, and not which: that follows from a storage index, and each side has its own."""
    results = check.get("results")
    if not isinstance(results, dict) or "sharemap" not in results:
        return check
    counts = {share: len(servers) for share, servers in results["sharemap"].items()}
    return {**check, "results": {**results, "sharemap": counts}}


def fields(exchange: Exchange, reply: Reply, alike: Alike) -> dict[str, Any]:
    """What is compared of an answer, by the name of the field."""
    if reply.status == 0:
        return {"status": "no answer"}
    found: dict[str, Any] = {"status": reply.status}
    is_free = exchange.shape in ("page", "headers") and reply.status < 400
    found["type"] = _media_type(reply.header("Content-Type"), parameters=not is_free)
    for name in COMPARED_HEADERS:
        value = reply.header(name)
        found[name] = alike.text(value) if value is not None else None
    if exchange.method == "HEAD" and reply.status < 400 and exchange.shape != "page":
        found["Content-Length"] = reply.header("Content-Length")
    found["body"] = _body(exchange, reply, alike)
    return found


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The fields that differ; of an unanswered request only that."""
    if "type" not in theirs or "type" not in ours:
        names: Sequence[str] = ["status"]
    else:
        names = list(theirs)
    return {name: (theirs[name], ours.get(name)) for name in names if theirs[name] != ours.get(name)}


def _media_type(value: str | None, *, parameters: bool) -> str | None:
    if value is None:
        return None
    kind, *rest = [part.strip().lower() for part in value.split(";")]
    return ";".join([kind, *rest]) if parameters else kind


def _without_remembered_sizes(value: Any) -> Any:
    """A listing without the sizes of mutable files in it, which 1.20 gives as long as it happens to have the file in memory."""
    if isinstance(value, list) and len(value) == 2 and value[0] == "dirnode" and isinstance(value[1], dict):
        for _, properties in value[1].get("children", {}).values():
            if properties.get("mutable"):
                properties.pop("size", None)
    return value


def _body(exchange: Exchange, reply: Reply, alike: Alike) -> Any:
    if not reply.whole:
        return "cut off"
    text = reply.body.decode("utf-8", errors="backslashreplace")
    if reply.status >= 400:
        return _error(text)
    if reply.status in (302, 303, 304):
        return None
    match exchange.shape:
        case "json":
            return _without_remembered_sizes(alike.value(json.loads(text)))
        case "lines":
            return [alike.value(json.loads(line)) if line[:1] == "{" else "not JSON" for line in text.splitlines()]
        case "page":
            return "a page" if "<html" in text.lower() else text
        case "headers":
            return None
        case "text":
            return alike.text(text)


def _error(text: str) -> str:
    """Only the part of an error that the specification promises: a name at its beginning, or JSON with a message."""
    if text.startswith("{"):
        return f"JSON with {', '.join(json.loads(text))}"
    found = None if "<title>Exception" in text else _ERROR_NAME.search(text)
    return found[0] if found else ""
