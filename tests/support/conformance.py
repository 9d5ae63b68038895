"""Checks a gateway's answers against its OpenAPI document: whatever a test requests, the answer must be documented.

The document is not asked of the gateway: it is that of this tree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import jsonschema_rs

from grid.gateway.api.openapi import document

REST = frozenset({"{path}", "{name}"})
"""What stands for several segments at the end of a path."""

_ASSETS = re.compile(r"[a-z0-9.:-]+/assets/[0-9a-f]{16}/")
_STYLES = re.compile(r"'sha256-[A-Za-z0-9+/]{43}='")

UNDOCUMENTED = frozenset({400, 401, 403, 404, 405, 408, 421, 501, 503})
"""What is said to a method that a path does not have, and of a path that there is not."""


def require_documented(
    method: str, target: str, status: int, headers: Mapping[str, str], body: bytes, host: str = ""
) -> None:
    """AssertionError unless the document has this answer: its status, its type, and its contents if that is JSON.

    headers: by names in lower case. host: the Host that was asked, if not an ordinary one. Paths with a first segment that the document does not have are a test's own.
    """
    require_guarded(target, status, headers, host)
    path, _, query = target.partition("?")
    path = "/" + path.lstrip("/")
    if status == 302 and ("//" in path or path in ("/uri/", "/cap/")):
        return  # The way to the same address without the empty segment.
    if status == 100 or (path.split("/")[1:2] and path.split("/")[1] not in _first_segments()):
        return
    operation = find_operation(method, path)
    if operation is None:
        assert status in UNDOCUMENTED, f"{method} {_blunt(path)}: {status} is not documented"
        return
    label = f"{operation['operationId']}?t={_t_of(query)}"
    found = _action(operation, query)
    responses = (operation if found is None else found)["responses"]
    assert str(status) in responses, f"{label}: {status} is not documented, {sorted(responses)} are: {body[:300]!r}"
    if method == "HEAD" or not body:
        return
    kind = headers.get("content-type", "").partition(";")[0].strip()
    kinds = responses[str(status)].get("content", {})
    assert status in (302, 304) or fits(kind, kinds), f"{label}: {status} as {kind!r}, documented is {sorted(kinds)}"
    if found is not None and status == 200:
        require_schema(found, kind, body, label)


def require_guarded(target: str, status: int, headers: Mapping[str, str], host: str = "") -> None:
    """AssertionError unless the answer limits what it may do in a browser: nothing, except for pages and the operator's own files.

    A policy that lets scripts run names the address of the assets: no file of a user is below it.
    """
    label = f"{_blunt(target)}: {status}"
    assert headers.get("x-content-type-options") == "nosniff", label
    policy = headers.get("content-security-policy", "")
    # Contents of files may be embedded by stored pages, which are sandboxed: decision 0194.
    is_contents = policy == "sandbox" and headers.get("accept-ranges") == "bytes"
    may_be = {"cross-origin"} if is_contents else {"same-origin"}
    if status == 304 and target.startswith(("/uri/", "/file/", "/named/", "/s/")):
        may_be |= {"cross-origin"}  # Of contents, or of a directory that never changes.
    assert headers.get("cross-origin-resource-policy") in may_be, label
    if policy == "sandbox" or target.startswith("/static/"):
        return
    directives = {name: value for name, _, value in (each.strip().partition(" ") for each in policy.split(";"))}
    assert headers["content-type"].startswith("text/html"), label
    assert directives["default-src"] == "'none'" and directives["base-uri"] == "'none'", label
    linked, _, inside = directives["style-src"].partition(" ")
    assert linked == directives["script-src"] and _STYLES.fullmatch(inside), label
    if status != 421 and not host.startswith("[") and ".:" not in host:
        assert _ASSETS.fullmatch(directives["script-src"]), directives["script-src"]


def require_schema(action: Mapping[str, Any], kind: str, body: bytes, label: str) -> None:
    """AssertionError unless the body matches the action's description of its JSON."""
    if "json" in action and kind in ("text/plain", "application/json") and body[:1] in (b"{", b"["):
        _validate(action["json"]["$ref"], json.loads(body), label)
    for line in body.splitlines() if "lines" in action else ():
        if line.startswith(b"{"):
            _validate(action["lines"]["$ref"], json.loads(line), label)


def find_operation(method: str, path: str) -> dict[str, Any] | None:
    """What the document says of the method at the path; None for nothing."""
    segments = path.split("/")[1:]
    if len(segments) > 1 and segments[-1] == "":
        segments.pop()
    fitting = [template for template in document_paths() if _fits_path(template.split("/")[1:], segments)]
    if not fitting:
        return None
    # A path with more of its own words is meant before one with a placeholder there.
    best = max(fitting, key=lambda template: [not part.startswith("{") for part in template.split("/")[1:]])
    found: dict[str, Any] | None = document_paths()[best].get(method.lower())
    return found


def document_paths() -> dict[str, Any]:
    """The paths of the document."""
    paths: Any = document()["paths"]
    return dict(paths)


def fits(kind: str, kinds: Mapping[str, object]) -> bool:
    """Whether a type is one of these; */* matches all."""
    return kind in kinds or ("*/*" in kinds and "/" in kind)


def _fits_path(template: Sequence[str], segments: Sequence[str]) -> bool:
    if template[-1] in REST and len(segments) >= len(template):
        segments = segments[: len(template)]
    return len(template) == len(segments) and all(
        part == segment or (part.startswith("{") and segment != "")
        for part, segment in zip(template, segments, strict=True)
    )


def _t_of(query: str) -> str | None:
    return next((value.strip() for name, value in parse_qsl(query, keep_blank_values=True) if name == "t"), None)


def _action(operation: Mapping[str, Any], query: str) -> dict[str, Any] | None:
    """The refusal of this `t` in a form; None if forms may have it, or it means nothing there."""
    actions: dict[str, dict[str, Any]] = operation["x-grid-actions"]
    t = _t_of(query)
    if t is None:
        return actions.get("") if not operation.get("requestBody") else None
    return actions.get(t) or actions.get(t.lower())


@cache
def _first_segments() -> frozenset[str]:
    return frozenset(path.split("/")[1] for path in document_paths())


@cache
def _validator(ref: str) -> Any:
    return jsonschema_rs.Draft202012Validator({"$ref": ref, "components": document()["components"]})


def _validate(ref: str, value: object, label: str) -> None:
    try:
        _validator(ref).validate(value)
    except jsonschema_rs.ValidationError as error:
        raise AssertionError(f"{label}: not a {ref.rpartition('/')[2]}: {error.message[:400]}") from None


def _blunt(path: str) -> str:
    return "/".join(path.split("/")[:2])
