"""Exchanges of programs written for 1.20 with a gateway, beyond those of the specification's sections, by name.

Doubled slashes, POST where GET would do, children without capabilities, JSON labelled as a form, HTTP/1.0.
"""

from __future__ import annotations

import json

from attrs import evolve

from tests.interop.exchanges_files import LONG, delete, get, head, post, put
from tests.support.exchanges import MULTIPART, URLENCODED, Exchange, form


def _options(name: str, target: str) -> Exchange:
    return Exchange(name=name, method="OPTIONS", target=target, shape="page")


SLASHES = [
    get("slashes-file", "//uri/$chk"),
    get("slashes-three", "///uri/$chk?t=json", "json"),
    get("slashes-directory", "//uri/$tree?t=json", "json"),
    get("slashes-named", "//file/$chk/x.html"),
    get("slashes-statistics", "//statistics?t=json", "headers"),
    get("slashes-status", "//status?t=json", "headers"),
    get("slashes-welcome", "//?t=json", "headers"),
    get("slashes-welcome-page", "//", "page"),
    get("slashes-logs", "//private/logs/v1"),
    get("slashes-nowhere", "//nowhere"),
    head("slashes-head", "//uri/$chk"),
    put("slashes-put", "//uri", LONG),
    post("slashes-mkdir", "//uri?t=mkdir"),
    get("slashes-inside", "/uri//$chk"),
    get("slashes-inside-argument", "/uri//$chk?t=json&a=%20b"),
    get("slashes-inside-many", "/uri///$tree/chk"),
    get("slashes-inside-other-name", "/cap//$chk"),
    get("slashes-inside-and-leading", "//uri//$chk"),
    get("slashes-behind-twice", "/uri//"),
    get("slashes-named-inside", "/file//$chk"),
    head("slashes-inside-head", "/uri//$chk"),
    put("slashes-inside-put", "/uri/", LONG),
    post("slashes-inside-post", "/uri/?t=mkdir"),
    post("slashes-inside-change", "/uri//$box?t=mkdir&name=never"),
    delete("slashes-inside-delete", "/uri//$box/f0"),
]

POSTS = [
    post("post-welcome-json", "/?t=json", shape="headers"),
    post("post-welcome-json-in-form", "/", "t=json", URLENCODED, "headers"),
    post("post-statistics", "/statistics", shape="page"),
    post("post-statistics-json", "/statistics?t=json", shape="headers"),
    post("post-statistics-json-in-form", "/statistics", form({"t": "json"}), MULTIPART, "headers"),
    post("post-statistics-openmetrics", "/statistics?t=openmetrics", shape="headers"),
    post("post-storage", "/storage", shape="page"),
    post("post-helper", "/helper_status", shape="page"),
    post("post-helper-json", "/helper_status?t=json", shape="json"),
    _options("options-welcome", "/"),
    post("post-operation", "/operations/stats?output=json&retain-for=600", shape="headers"),
    post("post-operation-status", "/operations/stats?t=status&output=json", shape="headers"),
]

EMPTY: dict[str, dict[str, object]] = {
    "absent": {},
    "null": {"ro_uri": None, "metadata": {"a": 1}},
    "blank": {"ro_uri": ""},
    "both-blank": {"rw_uri": "", "ro_uri": None},
}
"""How a child without capabilities is written."""

_ALL_EMPTY = json.dumps({name: ["filenode", slots] for name, slots in EMPTY.items()})
_SMALL = json.dumps({"a": ["filenode", {"ro_uri": "URI:LIT:m5xw4zik"}]})

CHILDREN = [
    *(
        post(
            f"empty-{name}", "/uri?t=mkdir-immutable", json.dumps({"content": ["filenode", slots]}), "application/json"
        )
        for name, slots in EMPTY.items()
    ),
    post("empty-new", "/uri?t=mkdir-with-children", _ALL_EMPTY),
    post("empty-named", "/uri/$box?t=mkdir-with-children&name=e1", _ALL_EMPTY),
    post("empty-frozen", "/uri/$box?t=mkdir-immutable&name=e2", _ALL_EMPTY),
    post("empty-set", "/uri/$box?t=set_children", _ALL_EMPTY),
    get("empty-list", "/uri/$box/e1?t=json", "json"),
    get("empty-list-frozen", "/uri/$box/e2?t=json", "json"),
    get("empty-page", "/uri/$box/e1", "page"),
    get("empty-child", "/uri/$box/e1/null"),
    get("empty-child-json", "/uri/$box/e1/null?t=json", "json"),
    get("empty-child-json-frozen", "/uri/$box/e2/null?t=json", "json"),
    get("empty-child-info", "/uri/$box/e1/null?t=info", "page"),
    get("empty-child-uri", "/uri/$box/e1/null?t=uri"),
    post("empty-manifest", "/uri/$box/e1?t=stream-manifest", shape="lines"),
    post("empty-deep-check", "/uri/$box/e2?t=stream-deep-check", shape="lines"),
    post("empty-rename", "/uri/$box/e1?t=rename&from_name=null&to_name=moved"),
    post("empty-relink", "/uri/$box/e1?t=relink&from_name=moved&to_dir=$other"),
    post("empty-unlink", "/uri/$box/e1?t=unlink&name=blank"),
    post("empty-copy", "/uri/$other?t=set_children", '{"copy": ["unknown", {"metadata": {"a": 1}}]}'),
    get("empty-after-all", "/uri/$box/e1?t=json", "json"),
    get("empty-moved", "/uri/$other?t=json", "json"),
    *(
        post(f"json-{name}-{t}", f"/uri?t={t}", _SMALL, type)
        for name, type in (
            ("urlencoded", URLENCODED),
            ("charset", f"{URLENCODED}; charset=utf-8"),
            ("multipart", MULTIPART),
        )
        for t in ("mkdir-immutable", "mkdir-with-children")
    ),
    post("json-urlencoded-set", "/uri/$box?t=set_children", _SMALL.replace('"a"', '"j1"'), URLENCODED),
    post("json-multipart-set", "/uri/$box?t=set-children", _SMALL.replace('"a"', '"j2"'), MULTIPART),
    post("json-urlencoded-named", "/uri/$box?t=mkdir-with-children&name=j3", _SMALL, URLENCODED),
    post("json-urlencoded-at-path", "/uri/$box/j4?t=mkdir-immutable", _SMALL, URLENCODED),
    get("json-made", "/uri/$box/j3?t=json", "json"),
    post("json-form-instead", "/uri?t=mkdir-with-children", "a=b", URLENCODED),
]

UPLOADS = [
    post("upload-name-blank", "/uri/$box?t=upload&name=", form({}, ("its own name", "one")), MULTIPART),
    post("upload-name-blank-in-form", "/uri/$box?t=upload", form({"name": ""}, ("its other name", "two")), MULTIPART),
    post("upload-name-space", "/uri/$box?t=upload&name=+", form({}, ("n", "three")), MULTIPART),
    post("link-name-blank", "/uri/$box?t=uri&name=&uri=$lit"),
]

OTHERS = [
    *(
        head(f"head-directory-{t}", f"/uri/$tree?t={t}", "page")
        for t in ("json", "uri", "readonly-uri", "info", "rename-form", "nothing")
    ),
    head("head-child-directory-json", "/uri/$tree/sub?t=json", "page"),
    head("head-argument", "/uri?uri=$chk"),
    head("head-argument-missing", "/uri"),
    get("argument-not-utf-8", "/uri/$chk?unused=%FF"),
    get("argument-name-not-utf-8", "/uri/$chk?%FF=1"),
    get("argument-filename-not-utf-8", "/uri/$chk?filename=%FF.html"),
    get("argument-used-not-utf-8", "/uri/$tree?t=%FF"),
    *(
        evolve(get(name, target, shape), version="HTTP/1.0")  # type: ignore[arg-type]
        for name, target, shape in (
            ("http-1.0", "/uri/$chk", "text"),
            ("http-1.0-welcome", "/", "page"),
            ("http-1.0-json", "/?t=json", "headers"),
        )
    ),
    evolve(_options("http-1.0-options", "/"), version="HTTP/1.0"),
    evolve(post("http-1.0-put", "/uri?t=mkdir"), version="HTTP/1.0"),
]

EXCHANGES = [*SLASHES, *POSTS, *CHILDREN, *UPLOADS, *OTHERS]
