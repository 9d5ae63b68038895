"""Exchanges about unlinked objects and files, by name: [spec webapi 3] and [spec webapi 4]."""

from __future__ import annotations

import json

from tests.support.exchanges import MULTIPART, URLENCODED, Exchange, Shape, form


def get(name: str, target: str, shape: Shape = "text", **headers: str) -> Exchange:
    """A GET; underscores in header names are hyphens."""
    made = {key.replace("_", "-"): value for key, value in headers.items()}
    return Exchange(name=name, method="GET", target=target, shape=shape, headers=made)


def head(name: str, target: str, shape: Shape = "text", **headers: str) -> Exchange:
    """A HEAD."""
    made = {key.replace("_", "-"): value for key, value in headers.items()}
    return Exchange(name=name, method="HEAD", target=target, shape=shape, headers=made)


def put(name: str, target: str, body: str = "", **headers: str) -> Exchange:
    """A PUT."""
    made = {key.replace("_", "-"): value for key, value in headers.items()}
    return Exchange(name=name, method="PUT", target=target, body=body, headers=made)


def post(name: str, target: str, body: str = "", type: str = "", shape: Shape = "text") -> Exchange:
    """A POST."""
    return Exchange(name=name, method="POST", target=target, body=body, type=type, shape=shape)


def delete(name: str, target: str) -> Exchange:
    """A DELETE."""
    return Exchange(name=name, method="DELETE", target=target)


LONG = "a file that is too long to be held in its own capability, as it has more than 55 bytes"

CHILDREN = json.dumps(
    {
        "file": ["filenode", {"ro_uri": "$chk", "metadata": {"kept": "yes"}}],
        "folder": ["dirnode", {"ro_uri": "$frozen"}],
        "writer": ["filenode", {"rw_uri": "$sdmf"}],
    }
)
FROZEN_CHILDREN = json.dumps({"file": ["filenode", {"ro_uri": "$chk"}], "small": ["filenode", {"ro_uri": "$lit"}]})

UNLINKED = [
    put("put-lit", "/uri", "small"),
    put("put-empty", "/uri"),
    put("put-chk", "/uri", LONG),
    put("put-chk-by-other-name", "/cap", LONG),
    put("put-format-chk", "/uri?format=CHK", LONG),
    put("put-format-empty", "/uri?format=", LONG),
    put("put-sdmf", "/uri?format=sdmf", LONG),
    put("put-mdmf", "/uri?format=MDMF", LONG),
    put("put-mutable", "/uri?mutable=true", LONG),
    put("put-mutable-on", "/uri?mutable=on", LONG),
    put("put-format-before-mutable", "/uri?mutable=true&format=chk", LONG),
    put("put-format-bad", "/uri?format=other", LONG),
    put("put-mutable-bad", "/uri?mutable=maybe", LONG),
    put("put-t-bad", "/uri?t=nothing", LONG),
    put("put-t-with-spaces", "/uri?t=%20mkdir%20"),
    put("put-private-key-bad", "/uri?format=sdmf&private-key=AAAA", LONG),
    put("put-mkdir", "/uri?t=mkdir"),
    put("put-mkdir-mdmf", "/uri?t=mkdir&format=mdmf"),
    put("put-mkdir-chk", "/uri?t=mkdir&format=chk"),
    post("post-upload", "/uri?t=upload", form({}, ("n", LONG)), MULTIPART, "page"),
    post("post-upload-t-in-form", "/uri", form({"t": "upload"}, ("n", LONG)), MULTIPART, "page"),
    post("post-upload-sdmf", "/uri?t=upload&format=sdmf", form({}, ("n", LONG)), MULTIPART),
    post("post-upload-mdmf-in-form", "/uri?t=upload", form({"format": "mdmf"}, ("n", LONG)), MULTIPART),
    post("post-upload-without-file", "/uri?t=upload", form({"other": "1"}), MULTIPART),
    post("post-upload-when-done", "/uri?t=upload&when_done=/uri/%25(uri)s", form({}, ("n", LONG)), MULTIPART, "page"),
    post("post-upload-when-done-plain", "/uri?t=upload&when_done=/here", form({}, ("n", LONG)), MULTIPART, "page"),
    post("post-upload-mutable-when-done", "/uri?t=upload&format=sdmf&when_done=/h", form({}, ("n", LONG)), MULTIPART),
    post("post-mkdir", "/uri?t=mkdir"),
    post("post-mkdir-form", "/uri", "t=mkdir&format=mdmf", URLENCODED),
    post("post-mkdir-redirect", "/uri?t=mkdir&redirect_to_result=true", shape="headers"),
    post("post-mkdir-chk", "/uri?t=mkdir&format=chk"),
    post("post-mkdir-with-body", "/uri?t=mkdir", "body"),
    post("post-mkdir-children", "/uri?t=mkdir-with-children", CHILDREN),
    post("post-mkdir-children-empty", "/uri?t=mkdir-with-children"),
    post("post-mkdir-children-mdmf", "/uri?t=mkdir-with-children&format=mdmf", CHILDREN),
    post("post-mkdir-children-malformed", "/uri?t=mkdir-with-children", "{"),
    post("post-mkdir-immutable", "/uri?t=mkdir-immutable", FROZEN_CHILDREN),
    post("post-mkdir-immutable-empty", "/uri?t=mkdir-immutable"),
    post("post-mkdir-immutable-mutable", "/uri?t=mkdir-immutable", CHILDREN),
    post("post-t-missing", "/uri"),
    post("post-t-bad", "/uri?t=nothing"),
    get("get-uri-argument", "/uri?uri=$chk&filename=x.txt", "headers"),
    get("get-uri-slash-argument", "/uri/?uri=$chk", "headers"),
    get("get-uri-argument-missing", "/uri"),
    get("get-uri-argument-bad", "/uri?uri=nothing"),
    delete("delete-uri", "/uri"),
    Exchange(name="options-uri", method="OPTIONS", target="/uri"),
]

READS = [
    *(get(f"get-{kind}", f"/uri/${kind}") for kind in ("chk", "lit", "empty", "sdmf", "mdmf", "sdmf_ro", "mdmf_ro")),
    *(get(f"get-{kind}-json", f"/uri/${kind}?t=json", "json") for kind in ("chk", "lit", "sdmf", "mdmf", "sdmf_ro")),
    *(get(f"get-{kind}-uri", f"/uri/${kind}?t=uri") for kind in ("chk", "lit", "sdmf", "mdmf_ro")),
    *(get(f"get-{kind}-readonly-uri", f"/uri/${kind}?t=readonly-uri") for kind in ("chk", "lit", "sdmf", "mdmf_ro")),
    *(get(f"get-{kind}-info", f"/uri/${kind}?t=info", "page") for kind in ("chk", "lit", "sdmf", "mdmf_ro")),
    *(head(f"head-{kind}", f"/uri/${kind}") for kind in ("chk", "lit", "sdmf", "mdmf", "lost")),
    *(get(f"get-{kind}-part", f"/uri/${kind}", Range="bytes=2-4") for kind in ("chk", "lit", "sdmf", "mdmf")),
    *(get(f"get-{kind}-verifier", f"/uri/${kind}_verify") for kind in ("chk", "sdmf")),
    *(get(f"get-{kind}-verifier-json", f"/uri/${kind}_verify?t=json", "json") for kind in ("chk", "sdmf")),
    get("get-by-other-name", "/cap/$chk"),
    get("get-cap-raw", "/uri/URI:LIT:ORSXG5A"),
    get("get-cap-raw-lower", "/uri/URI:LIT:orsxg5a"),
    get("get-cap-with-newline", "/uri/URI:LIT:orsxg5a%0A"),
    get("get-cap-with-space", "/uri/URI:LIT:orsxg5a%20"),
    get("get-cap-only-slash", "/uri/"),
    get("get-t-bad", "/uri/$chk?t=nothing"),
    get("get-t-case", "/uri/$chk?t=JSON"),
    get("get-below-file", "/uri/$chk/child"),
    get("get-slash-after-file", "/uri/$chk/"),
    get("get-json-slash-after-file", "/uri/$chk/?t=json"),
    get("get-unknown", "/uri/$unknown"),
    get("get-unknown-json", "/uri/$unknown?t=json", "json"),
    get("get-unknown-info", "/uri/$unknown?t=info", "page"),
    get("get-unknown-uri", "/uri/$unknown?t=uri"),
    head("head-part", "/uri/$chk", Range="bytes=10-19"),
    head("head-t", "/uri/$chk?t=json"),
    get("get-lost", "/uri/$lost"),
    get("get-lost-part", "/uri/$lost", Range="bytes=0-9"),
    get("get-lost-json", "/uri/$lost?t=json", "json"),
    get("get-short", "/uri/$short"),
    get("get-hurt", "/uri/$hurt"),
    get("get-lost-sdmf", "/uri/$lost_sdmf"),
    get("get-lost-sdmf-json", "/uri/$lost_sdmf?t=json", "json"),
    head("head-lost-sdmf", "/uri/$lost_sdmf"),
    get("get-hurt-sdmf", "/uri/$hurt_sdmf"),
]

NAMES = [
    get("name-html", "/uri/$chk?filename=x.html"),
    get("name-gz", "/uri/$chk?filename=x.tar.gz"),
    get("name-bz2", "/uri/$chk?filename=x.bz2"),
    get("name-upper", "/uri/$chk?filename=X.PNG"),
    get("name-svg", "/uri/$chk?filename=x.svg"),
    get("name-unknown", "/uri/$chk?filename=x.zzz"),
    get("name-saved", "/uri/$chk?filename=x.txt&save=true"),
    get("name-saved-not-ascii", "/uri/$chk?filename=%C3%BC.txt&save=true"),
    get("name-saved-quote", "/uri/$chk?filename=a%22b&save=true"),
    get("name-saved-newline", "/uri/$chk?filename=a%0D%0Ab&save=true"),
    get("name-saved-none", "/uri/$chk?save=true"),
    get("name-save-false", "/uri/$chk?filename=x.txt&save=false"),
    get("name-save-bad", "/uri/$chk?filename=x.txt&save=maybe"),
    get("named", "/named/$chk/x.html"),
    get("named-file", "/file/$chk/x.html"),
    get("named-deep", "/named/$chk/a/b/x.png"),
    get("named-marker", "/file/$chk/@@named=/x.html"),
    get("named-nothing", "/named/$chk"),
    get("named-argument", "/named/$chk/x.html?filename=y.png"),
    get("named-saved", "/named/$chk/x.html?save=true"),
    get("named-json", "/named/$chk/x.html?t=json", "json"),
    get("named-part", "/named/$lit/x.html", Range="bytes=1-2"),
    get("named-mutable", "/named/$sdmf/x.html"),
    get("named-directory", "/named/$tree/x"),
    get("named-unknown", "/named/$unknown/x"),
    get("named-alone", "/named"),
    get("named-slash", "/named/"),
    get("named-lost", "/named/$lost/x"),
    head("named-head", "/named/$chk/x.html"),
    put("named-put", "/named/$chk/x.html", "body"),
    post("named-post", "/named/$chk/x.html?t=check"),
]

RANGES = [
    get(f"range-{number}", "/uri/$chk", Range=value)
    for number, value in enumerate(
        [
            "bytes=0-0",
            "bytes=0-",
            "bytes=1990-5000",
            "bytes=-10",
            "bytes=-5000",
            "bytes=1-2,4-5",
            "bytes=5-2",
            "bytes=-0",
            "bytes=x-y",
            "bytes=0-1",
            "bytes 0-1",
            "bytes=2000-",
            "bytes=3000-",
            "bytes=2000-2001",
            "bytes=3000-3001",
            "bytes=0-1999",
            "BYTES=0-1",
            "bytes = 0-1",
            "bytes=",
            "bytes=-",
            "bytes=0-99999999999999999999999999",
        ]
    )
] + [
    get("range-of-empty", "/uri/$empty", Range="bytes=0-0"),
    get("range-of-empty-suffix", "/uri/$empty", Range="bytes=-1"),
    get("range-of-json", "/uri/$chk?t=json", "json", Range="bytes=0-1"),
    get("range-if", "/uri/$chk", Range="bytes=0-1", If_Range='"other"'),
]

_TAG = "$chk_index-"
ETAGS = [
    get("etag-same", "/uri/$chk", If_None_Match=_TAG),
    get("etag-any", "/uri/$chk", If_None_Match="*"),
    get("etag-list", "/uri/$chk", If_None_Match=f"other, {_TAG}"),
    get("etag-other", "/uri/$chk", If_None_Match="other"),
    get("etag-quoted", "/uri/$chk", If_None_Match=f'"{_TAG}"'),
    get("etag-weak", "/uri/$chk", If_None_Match=f'W/"{_TAG}"'),
    get("etag-part", "/uri/$chk", If_None_Match=_TAG, Range="bytes=0-1"),
    get("etag-json", "/uri/$chk?t=json", "json", If_None_Match=f"{_TAG}json"),
    get("etag-json-other", "/uri/$chk?t=json", "json", If_None_Match=_TAG),
    get("etag-uri", "/uri/$chk?t=uri", If_None_Match=f"{_TAG}uri"),
    get("etag-mutable", "/uri/$sdmf", If_None_Match="*"),
    get("etag-literal", "/uri/$lit", If_None_Match="*"),
    head("etag-head", "/uri/$chk", If_None_Match=_TAG),
    get("etag-if-match", "/uri/$chk", If_Match='"other"'),
    get("etag-if-modified-since", "/uri/$chk", If_Modified_Since="Fri, 20 Nov 2026 00:00:00 GMT"),
    get("etag-lost", "/uri/$lost", If_None_Match="*"),
]

EXCHANGES = [*UNLINKED, *READS, *NAMES, *RANGES, *ETAGS]
