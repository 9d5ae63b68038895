"""Exchanges about checks, trees and the state of the node, by name: [spec webapi 6], [spec webapi 7], [spec webapi 9]."""

from __future__ import annotations

from tests.interop.exchanges_files import get, head, post
from tests.support.exchanges import Exchange

_OBJECTS = (
    "chk",
    "lit",
    "hurt",
    "lost",
    "short",
    "sdmf",
    "mdmf_ro",
    "hurt_sdmf",
    "lost_sdmf",
    "tree",
    "frozen",
    "small",
)

CHECKS = [
    *(post(f"check-{kind}", f"/uri/${kind}?t=check&output=JSON", shape="json") for kind in _OBJECTS),
    *(
        post(f"verify-{kind}", f"/uri/${kind}?t=check&verify=true&output=json", shape="json")
        for kind in ("chk", "lit", "hurt", "sdmf", "frozen")
    ),
    *(
        post(f"repair-{kind}", f"/uri/${kind}?t=check&repair=true&output=json", shape="json")
        for kind in ("chk", "lit", "sdmf", "lost", "lost_sdmf", "small", "own_sdmf")
    ),
    *(post(f"check-{kind}-page", f"/uri/${kind}?t=check", shape="page") for kind in ("chk", "lit", "hurt", "sdmf")),
    post("repair-page", "/uri/$chk?t=check&repair=true", shape="page"),
    post("check-lease", "/uri/$chk?t=check&add-lease=true&output=json", shape="json"),
    post("check-path", "/uri/$tree/sub/m?t=check&output=json", shape="json"),
    post("check-path-missing", "/uri/$tree/none?t=check&output=json"),
    post("check-unknown-child", "/uri/$tree/%C3%BC%20nknown?t=check&output=json", shape="json"),
    post("check-unknown", "/uri/$unknown?t=check&output=json", shape="json"),
    post("check-verifier", "/uri/$chk_verify?t=check&output=json", shape="json"),
    post("check-verify-bad", "/uri/$chk?t=check&verify=perhaps&output=json"),
    post("check-return-to", "/uri/$chk?t=check&return_to=/here", shape="page"),
    Exchange(name="check-output-bad", method="POST", target="/uri/$chk?t=check&output=other", hangs=True),
]

STREAMS = [
    *(
        post(f"manifest-{kind}", f"/uri/${kind}?t=stream-manifest", shape="lines")
        for kind in ("tree", "frozen", "small")
    ),
    *(
        post(f"deep-check-{kind}", f"/uri/${kind}?t=stream-deep-check", shape="lines")
        for kind in ("tree", "tree_ro", "ailing", "small")
    ),
    post("deep-verify-tree", "/uri/$tree?t=stream-deep-check&verify=true", shape="lines"),
    post("deep-repair-grove", "/uri/$grove?t=stream-deep-check&repair=true", shape="lines"),
    post("deep-lease-tree", "/uri/$frozen?t=stream-deep-check&add-lease=true", shape="lines"),
    post("manifest-broken", "/uri/$broken?t=stream-manifest", shape="lines"),
    post("deep-check-broken", "/uri/$broken?t=stream-deep-check", shape="lines"),
    post("deep-repair-ailing", "/uri/$ailing?t=stream-deep-check&repair=true", shape="lines"),
    post("manifest-lost", "/uri/$lost_box?t=stream-manifest", shape="lines"),
    post("manifest-file", "/uri/$chk?t=stream-manifest"),
    post("deep-check-file", "/uri/$chk?t=stream-deep-check"),
    post("manifest-path", "/uri/$tree/sub?t=stream-manifest", shape="lines"),
    get("manifest-get", "/uri/$tree?t=stream-manifest"),
]

_STARTED = [
    post("start-stats", "/uri/$tree?t=start-deep-stats&ophandle=stats", shape="page"),
    post("start-size", "/uri/$tree?t=start-deep-size&ophandle=size", shape="page"),
    post("start-manifest", "/uri/$tree?t=start-manifest&ophandle=manifest&output=json", shape="page"),
    post("start-check", "/uri/$tree?t=start-deep-check&ophandle=check", shape="page"),
    post("start-repair", "/uri/$grove?t=start-deep-check&repair=true&ophandle=repair", shape="page"),
    post("start-ailing", "/uri/$ailing?t=start-deep-check&ophandle=ailing", shape="page"),
    post("start-lost", "/uri/$lost_box?t=start-manifest&ophandle=lost", shape="page"),
    post("start-cancelled", "/uri/$tree?t=start-manifest&ophandle=cancelled", shape="page"),
    post("start-freed", "/uri/$tree?t=start-deep-stats&ophandle=freed&retain-for=100", shape="page"),
]
"""Each is polled until it is finished before what follows in OPERATIONS."""

STARTED = {"stats": "stats", "size": "size", "manifest": "manifest", "check": "check", "repair": "repair"}

OPERATIONS = [
    *_STARTED,
    *(get(f"state-{name}", f"/operations/{name}?output=JSON", "json") for name in (*STARTED, "ailing", "freed")),
    *(get(f"state-{name}-page", f"/operations/{name}", "page") for name in ("manifest", "check", "repair")),
    get("state-stats-other", "/operations/stats", "json"),
    get("state-size-text", "/operations/size"),
    get("state-manifest-text", "/operations/manifest?output=text"),
    get("state-lost", "/operations/lost?output=JSON", "json"),
    get("state-one", "/operations/check/$chk_index?output=JSON", "json"),
    get("state-one-page", "/operations/check/$chk_index", "page"),
    get("state-one-repair", "/operations/repair/$chk_index?output=JSON", "json"),
    get("state-one-missing", "/operations/check/aaaaaaaaaaaaaaaaaaaaaaaaaa?output=JSON"),
    get("state-one-of-manifest", "/operations/manifest/$chk_index?output=JSON"),
    get("state-slash", "/operations/check/", "page"),
    get("state-t-status", "/operations/stats?t=status&output=JSON", "json"),
    get("state-t-bad", "/operations/stats?t=nothing&output=JSON", "json"),
    Exchange(name="state-retain-bad", method="GET", target="/operations/stats?output=JSON&retain-for=x", hangs=True),
    get("state-output-case", "/operations/manifest?output=json", "json"),
    post("cancel", "/operations/cancelled?t=cancel&output=JSON", shape="headers"),
    get("cancelled", "/operations/cancelled?output=JSON"),
    get("free", "/operations/freed?output=JSON&release-after-complete=true", "json"),
    get("freed", "/operations/freed?output=JSON"),
    get("state-unknown", "/operations/none?output=JSON"),
    get("operations", "/operations"),
    get("operations-slash", "/operations/"),
    post("operation-post-t-bad", "/operations/stats?t=nothing", shape="json"),
    post("start-no-handle", "/uri/$tree?t=start-manifest"),
    post("start-on-file", "/uri/$chk?t=start-manifest&ophandle=file"),
    post("start-bad", "/uri/$tree?t=start-nothing&ophandle=x"),
]

STATUS = [
    get("welcome", "/", "page"),
    get("welcome-t-bad", "/?t=nothing"),
    head("welcome-head", "/", "page"),
    get("status", "/status", "page"),
    get("status-slash", "/status/", "page"),
    get("status-json", "/status?t=json", "headers"),
    get("status-slash-json", "/status/?t=json", "headers"),
    post("status-post-json", "/status?t=json", shape="headers"),
    get("status-up-page", "/status/up-0", "page"),
    get("status-missing", "/status/up-99999"),
    get("status-no-hyphen", "/status/up"),
    get("status-kind-unknown", "/status/other-1"),
    Exchange(name="status-not-a-number", method="GET", target="/status/up-x", hangs=True),
    get("statistics", "/statistics", "page"),
    get("statistics-json", "/statistics?t=json", "headers"),
    get("statistics-openmetrics", "/statistics?t=openmetrics", "headers"),
    get("statistics-t-bad", "/statistics?t=nothing", "page"),
    get("storage", "/storage", "page"),
    get("storage-json", "/storage?t=json"),
    get("helper-status", "/helper_status", "page"),
    get("helper-status-json", "/helper_status?t=json", "json"),
    get("private", "/private"),
    get("private-logs", "/private/logs/v1"),
    get("private-wrong-token", "/private/logs/v1", Authorization="tahoe-lafs nonsense"),
    get("private-other-scheme", "/private/logs/v1", Authorization="Bearer nonsense"),
    post("incident", "/report_incident", "details=what+happened", "application/x-www-form-urlencoded"),
    get("incident-get", "/report_incident"),
    get("plugin-none", "/storage-plugins/none"),
    get("static-none", "/static/none"),
    get("nowhere", "/nowhere"),
    get("nowhere-below", "/nowhere/below"),
    Exchange(name="welcome-put", method="PUT", target="/", shape="page"),
    post("welcome-post", "/", "body", shape="page"),
    get("favicon", "/icon.png", "headers"),
    get("css", "/tahoe.css", "headers"),
    Exchange(name="method-patch", method="PATCH", target="/uri/$chk"),
    Exchange(name="method-trace", method="TRACE", target="/", shape="page"),
    Exchange(name="options-chk", method="OPTIONS", target="/uri/$chk"),
    Exchange(name="options-directory", method="OPTIONS", target="/uri/$tree"),
]

EXCHANGES = [*CHECKS, *STREAMS, *OPERATIONS, *STATUS]
