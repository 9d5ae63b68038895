"""Exchanges that change files in place, by name: [spec webapi 4.7] and [spec webapi 4.8]."""

from __future__ import annotations

from tests.interop.exchanges_files import LONG, delete, get, post, put
from tests.support.exchanges import MULTIPART, Exchange, form

PUTS = [
    put("put-new-child", "/uri/$box/new1", LONG),
    put("put-new-child-lit", "/uri/$box/new2", "small"),
    put("put-new-child-sdmf", "/uri/$box/new3?format=sdmf", LONG),
    put("put-new-child-mutable", "/uri/$box/new4?mutable=true", LONG),
    put("put-new-child-below", "/uri/$box/way/down/new", LONG),
    put("put-new-child-same-names", "/uri/$box/x/y/x", LONG),
    put("put-new-child-no-replace", "/uri/$box/new5?replace=false", LONG),
    put("put-new-child-range", "/uri/$box/new6", LONG, Content_Range="bytes 0-9/100"),
    put("put-new-child-offset", "/uri/$box/new7?offset=0", LONG),
    put("put-new-child-read-only", "/uri/$box_ro/new", LONG),
    put("put-new-child-frozen", "/uri/$frozen/new", LONG),
    put("put-new-child-format-bad", "/uri/$box/new8?format=other", LONG),
    put("put-new-child-slash", "/uri/$box/new9/", LONG),
    put("put-new-child-escaped-slash", "/uri/$box/with%2Fslash", LONG),
    put("put-new-child-dots", "/uri/$box/..", LONG),
    Exchange(name="put-new-child-not-utf-8", method="PUT", target="/uri/$box/%FF", body=LONG, hangs=True),
    put("put-new-child-not-composed", "/uri/$box/u%CC%88", LONG),
    get("get-new-child-composed", "/uri/$box/%C3%BC"),
    put("put-empty-segment", "/uri/$box//new", LONG),
    put("put-over-chk", "/uri/$box/f0", LONG),
    put("put-over-chk-sdmf", "/uri/$box/f1?format=sdmf", LONG),
    put("put-over-chk-no-replace", "/uri/$box/f2?replace=false", LONG),
    put("put-over-chk-only-files", "/uri/$box/f3?replace=only-files", LONG),
    put("put-over-chk-replace-bad", "/uri/$box/f3?replace=perhaps", LONG),
    put("put-over-chk-offset", "/uri/$box/f3?offset=0", LONG),
    put("put-over-chk-range", "/uri/$box/f4", LONG, Content_Range="bytes 0-9/100"),
    put("put-over-mutable", "/uri/$box/mutable", "other contents"),
    get("get-after-put-over-mutable", "/uri/$box/mutable"),
    put("put-over-mutable-format", "/uri/$box/mutable?format=chk", "yet others"),
    put("put-over-mutable-no-replace", "/uri/$box/mutable?replace=false", "yet others"),
    put("put-over-reader", "/uri/$box/reader", "other contents"),
    put("put-over-directory", "/uri/$box/d0", LONG),
    put("put-over-directory-no-replace", "/uri/$box/d0?replace=false", LONG),
    put("put-through-file", "/uri/$box/f5/below", LONG),
    put("put-directory", "/uri/$box", LONG),
    put("put-chk-itself", "/uri/$chk", LONG),
    put("put-lit-itself", "/uri/$lit", LONG),
    put("put-unknown", "/uri/$unknown", LONG),
    put("put-t-bad", "/uri/$box/new10?t=nothing", LONG),
]

IN_PLACE = [
    step
    for kind in ("sdmf", "mdmf")
    for step in (
        put(f"{kind}-replace", f"/uri/$own_{kind}", "0123456789" * 8),
        get(f"{kind}-replaced", f"/uri/$own_{kind}"),
        put(f"{kind}-at-0", f"/uri/$own_{kind}?offset=0", "ab"),
        put(f"{kind}-inside", f"/uri/$own_{kind}?offset=40", "cd"),
        put(f"{kind}-at-end", f"/uri/$own_{kind}?offset=80", "ef"),
        put(f"{kind}-across-end", f"/uri/$own_{kind}?offset=81", "ghij"),
        get(f"{kind}-changed", f"/uri/$own_{kind}"),
        put(f"{kind}-beyond", f"/uri/$own_{kind}?offset=100", "kl"),
        put(f"{kind}-negative", f"/uri/$own_{kind}?offset=-1", "kl"),
        put(f"{kind}-not-a-number", f"/uri/$own_{kind}?offset=x", "kl"),
        put(f"{kind}-nothing", f"/uri/$own_{kind}?offset=3", ""),
        put(f"{kind}-emptied", f"/uri/$own_{kind}", ""),
        get(f"{kind}-empty", f"/uri/$own_{kind}"),
        put(f"{kind}-filled", f"/uri/$own_{kind}?offset=0", "again"),
        get(f"{kind}-full", f"/uri/$own_{kind}?t=json", "json"),
        post(f"{kind}-upload", f"/uri/$own_{kind}?t=upload", form({}, ("n", "uploaded")), MULTIPART),
        get(f"{kind}-uploaded", f"/uri/$own_{kind}"),
    )
] + [
    put("read-only-replace", "/uri/$sdmf_ro", LONG),
    put("read-only-offset", "/uri/$mdmf_ro?offset=0", LONG),
    put("chk-offset", "/uri/$chk?offset=0", LONG),
    put("lost-replace", "/uri/$lost_sdmf", LONG),
]

LINKS = [
    put("link-new", "/uri/$box/link1?t=uri", "$chk"),
    put("link-newline", "/uri/$box/link2?t=uri", "$chk\n"),
    put("link-directory", "/uri/$box/link3?t=uri", "$frozen"),
    put("link-mutable", "/uri/$box/link4?t=uri", "$sdmf"),
    put("link-below", "/uri/$box/deep/link?t=uri", "$chk"),
    put("link-over-file", "/uri/$box/f6?t=uri", "$lit"),
    put("link-over-file-no-replace", "/uri/$box/f7?t=uri&replace=false", "$lit"),
    put("link-over-file-only-files", "/uri/$box/f7?t=uri&replace=only-files", "$lit"),
    put("link-over-directory", "/uri/$box/d1?t=uri", "$lit"),
    put("link-over-directory-only-files", "/uri/$box/d2?t=uri&replace=only-files", "$lit"),
    put("link-over-directory-no-replace", "/uri/$box/d2?t=uri&replace=false", "$lit"),
    put("link-nonsense", "/uri/$box/link5?t=uri", "nonsense"),
    put("link-empty", "/uri/$box/link6?t=uri", ""),
    put("link-unknown-ro", "/uri/$box/link7?t=uri", "ro.$unknown"),
    put("link-unknown-imm", "/uri/$box/link8?t=uri", "imm.$unknown"),
    put("link-ro-writer", "/uri/$box/link9?t=uri", "ro.$sdmf"),
    put("link-imm-writer", "/uri/$box/link9?t=uri", "imm.$sdmf"),
    put("link-ro-reader", "/uri/$box/link10?t=uri", "ro.$sdmf_ro"),
    put("link-read-only", "/uri/$box_ro/link?t=uri", "$chk"),
    put("link-itself", "/uri/$box?t=uri", "$chk"),
    post("post-upload-over-chk", "/uri/$box/f8?t=upload", form({}, ("n", LONG)), MULTIPART),
    post("post-upload-over-no-replace", "/uri/$box/f9?t=upload&replace=false", form({}, ("n", LONG)), MULTIPART),
    post("post-upload-missing", "/uri/$box/none?t=upload", form({}, ("n", LONG)), MULTIPART),
    post("post-upload-mutable", "/uri/$box/mutable?t=upload", form({}, ("n", "uploaded")), MULTIPART),
    post("post-upload-chk", "/uri/$chk?t=upload", form({}, ("n", LONG)), MULTIPART),
    post("post-file-nothing", "/uri/$chk"),
    post("post-file-t-bad", "/uri/$chk?t=nothing"),
    post("post-file-when-done", "/uri/$own_sdmf?t=upload&when_done=/here", form({}, ("n", "x")), MULTIPART, "page"),
]

DELETES = [
    delete("delete-file", "/uri/$box/f10"),
    delete("delete-again", "/uri/$box/f10"),
    delete("delete-mutable", "/uri/$box/reader"),
    delete("delete-directory", "/uri/$box/d3"),
    delete("delete-missing", "/uri/$box/none"),
    delete("delete-below-missing", "/uri/$box/none/below"),
    delete("delete-below-file", "/uri/$box/f11/below"),
    delete("delete-chk", "/uri/$chk"),
    delete("delete-sdmf", "/uri/$own_sdmf"),
    delete("delete-root", "/uri/$box"),
    delete("delete-read-only", "/uri/$box_ro/f11"),
    delete("delete-frozen", "/uri/$frozen/a"),
]

EXCHANGES = [*PUTS, *IN_PLACE, *LINKS, *DELETES]
