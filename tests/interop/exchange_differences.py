"""Deliberate differences between our gateway's answers and 1.20's: the exchange, our answer, and the row with the reason.

`ours` has the fields that differ, and only these; `...` stands for any value that differs. Sections and rows are of
[spec webapi]; a row of its section 14 is of what 1.20 was found to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

PLAIN = "text/plain;charset=utf-8"
PAGE = "text/html;charset=utf-8"


@frozen
class Difference:
    """row: why. ours: the value of each differing field in our answer."""

    row: str
    ours: Mapping[str, Any]


def fault(status: int, row: str, **more: object) -> Difference:
    """An error in one plain line where 1.20 has a traceback, a page, no answer or none of the errors."""
    return Difference(row, {"status": status, "type": PLAIN, **more})


def unanswered(status: int, row: str) -> Difference:
    """An answer where 1.20 gives none."""
    return Difference(row, {"status": status})


HUH = Difference("14: 501 in any shape", {"type": PLAIN})
FORMER = Difference(
    "14: 1.20's pictures and styles have those of our pages",
    {"ETag": ..., "Accept-Ranges": None},
)
NO_RANGE = {"ETag": None, "Accept-Ranges": None}
LOST = Difference("14: the headers of an error are not those of the file", NO_RANGE)

_FILES = {
    "put-private-key-bad": fault(400, "1.3: private-key= that is none"),
    "post-upload-without-file": fault(400, "1.6: missing form field `file`"),
    "post-t-missing": fault(400, "14: POST /uri without t and without a form"),
    "post-mkdir-children-malformed": fault(400, "1.6: malformed JSON body"),
    "post-mkdir-form": Difference(
        "14: a urlencoded body", {"status": 200, "type": "text/html", "body": "<new DIR2-MDMF>"}
    ),
    "delete-uri": HUH,
    "options-uri": HUH,
    "get-chk-verifier-json": Difference(
        "8.1: verify caps", {"status": 200, "type": "text/plain", "ETag": ..., "body": ...}
    ),
    "get-sdmf-verifier-json": Difference("8.1: verify caps", {"body": ...}),
    "get-lost": LOST,
    "get-short": LOST,
    "named-lost": LOST,
    "get-lost-part": Difference(LOST.row, {**NO_RANGE, "Content-Range": None}),
    "name-saved-not-ascii": Difference("4.2: NAME also as RFC 6266 has it", {"Content-Disposition": ...}),
    "name-saved-quote": Difference("4.2: quotes are neutralised", {"Content-Disposition": ...}),
    "name-saved-newline": Difference("4.2: CR and LF are neutralised", {"Content-Disposition": ...}),
    "name-saved-none": Difference(
        "4.2: save=true without a name",
        {"status": 200, "Accept-Ranges": "bytes", "Content-Disposition": 'attachment; filename="unknown"', "body": ...},
    ),
    "name-save-bad": Difference(LOST.row, {"ETag": None}),
    "range-11": fault(
        416, "4.3: an open range at the end", **NO_RANGE, **{"Content-Range": "bytes */2000", "body": ""}
    ),
    "range-12": fault(
        416, "4.3: an open range past the end", **NO_RANGE, **{"Content-Range": "bytes */2000", "body": ""}
    ),
    "range-13": Difference(LOST.row, {**NO_RANGE, "Content-Range": "bytes */2000"}),
    "range-14": Difference(LOST.row, {**NO_RANGE, "Content-Range": "bytes */2000"}),
    "range-16": Difference("14: BYTES=0-1", {"status": 206, "Content-Range": "bytes 0-1/2000", "body": ...}),
    "range-17": Difference("14: bytes = 0-1", {"status": 206, "Content-Range": "bytes 0-1/2000", "body": ...}),
    "range-of-empty": Difference(LOST.row, {"Accept-Ranges": None, "Content-Range": "bytes */0"}),
    "range-of-empty-suffix": Difference("14: range of an empty file", {"status": 200, "Content-Range": None}),
    "etag-quoted": Difference(
        "4.4: quoted values match too", {"status": 304, "type": None, "Accept-Ranges": None, "body": ...}
    ),
    "etag-weak": Difference(
        "4.4: quoted values match too", {"status": 304, "type": None, "Accept-Ranges": None, "body": ...}
    ),
}

READ_ONLY = fault(403, "1.6: write through a read-only or immutable directory", body="NotWriteableError")
NO_PARENT = fault(400, "1.6: DELETE and PUT on a bare cap; 14: nothing above it")
NOT_CHILDREN = fault(400, "1.6: malformed JSON body; 14: no pair, no object, no string")
NO_FORM = fault(400, "1.6: missing form field `file`")
AS_A_PAGE = Difference("14: an error in either shape", {"type": PAGE})
AS_A_LINE = Difference("14: an error in either shape", {"type": PLAIN})
REFUSED_RANGE = fault(501, "4.7: Content-Range on an existing child", body="")
LEFT = Difference("the exchanges above, see LEFT_DIFFERENTLY", {"body": ...})

_WRITES = {
    "put-new-child-same-names": Difference(
        "5.1 (a): the last name is known by its place", {"status": 201, "type": "text/html", "body": ...}
    ),
    "put-new-child-read-only": READ_ONLY,
    "put-new-child-frozen": READ_ONLY,
    "put-new-child-slash": AS_A_PAGE,
    "put-new-child-not-utf-8": unanswered(400, "1.2: non-UTF-8 segment"),
    "put-over-chk-range": REFUSED_RANGE,
    "put-chk-itself": fault(400, "4.7: an immutable file without a parent"),
    "put-lit-itself": fault(400, "4.7: an immutable file without a parent"),
    "put-unknown": HUH,
    "put-t-bad": fault(400, "14: t= that is none at a new name", body=""),
    "sdmf-beyond": fault(400, "4.7: SDMF, offset beyond the size", body=""),
    "mdmf-beyond": fault(400, "4.7: MDMF, offset beyond the size"),
    "sdmf-not-a-number": fault(400, "1.3: offset= that is no number"),
    "mdmf-not-a-number": fault(400, "1.3: offset= that is no number"),
    "sdmf-filled": Difference("14: offset=0 into an empty file", {"status": 200, "body": "<own_sdmf>"}),
    "mdmf-filled": Difference("14: offset=0 into an empty file", {"status": 200, "body": "<own_mdmf>"}),
    "sdmf-full": Difference("14: offset=0 into an empty file", {"body": ...}),
    "mdmf-full": Difference("14: offset=0 into an empty file", {"body": ...}),
    "link-empty": fault(400, "4.7: t=uri with an empty body"),
    "link-read-only": READ_ONLY,
    "link-itself": NO_PARENT,
    "post-upload-chk": NO_PARENT,
    "delete-chk": NO_PARENT,
    "delete-sdmf": NO_PARENT,
    "delete-root": NO_PARENT,
    "delete-read-only": READ_ONLY,
    "delete-frozen": READ_ONLY,
}

_DIRECTORIES = {
    "list-lost_frozen": Difference(LOST.row, {"ETag": None}),
    "list-verifier": Difference("8.1: verify caps", {"body": ...}),
    "child-json": Difference("4.4: no tag of t=json on a path", {"ETag": None}),
    "child-json-etag": Difference(
        "4.4: no tag of t=json on a path", {"status": 200, "type": "text/plain", "ETag": None, "body": ...}
    ),
    "child-not-utf-8": unanswered(400, "1.2: non-UTF-8 segment"),
    "mkdir-post-format-bad": AS_A_LINE,
    "mkdir-post-read-only": unanswered(403, "1.6: write through a read-only directory"),
    "mkdir-children-malformed": unanswered(400, "1.6: malformed JSON body"),
    "mkdir-children-list": unanswered(400, "1.6: malformed JSON body"),
    "mkdir-immutable-mutable": AS_A_LINE,
    "upload-over-directory": fault(400, "5.3: t=upload&name=N where N is a directory", body=""),
    "upload-no-file": NO_FORM,
    "upload-no-form": NO_FORM,
    "upload-read-only": READ_ONLY,
    "upload-charset": fault(400, "14: _charset= other than UTF-8", body=""),
    "unlink-again": AS_A_PAGE,
    "unlink-no-name": AS_A_PAGE,
    "unlink-read-only": READ_ONLY,
    "unlink-frozen": READ_ONLY,
    "rename-missing": AS_A_PAGE,
    "rename-read-only": READ_ONLY,
    "relink-missing": AS_A_PAGE,
    "relink-to-missing": AS_A_PAGE,
    "relink-to-read-only": READ_ONLY,
    "relink-moved": LEFT,
    "set-not-a-child": NOT_CHILDREN,
    "set-not-an-object": NOT_CHILDREN,
    "set-not-text": NOT_CHILDREN,
    "set-malformed": NOT_CHILDREN,
    "set-read-only": READ_ONLY,
    "set-frozen": READ_ONLY,
    "everything-after-all": LEFT,
    "everything-read-only": LEFT,
}

LEFT_DIFFERENTLY = {
    "below1": "5.1 (b): directories made on the way of a request that fails",
    "new9": "5.1 (b): directories made on the way of a request that fails",
    "x": "5.1 (a): the last name is known by its place",
    "f4": "4.7: Content-Range on an existing child",
    "link6": "4.7: t=uri with an empty body",
    "s17": "5.4: a known write cap in ro_uri",
}
"""Children of the box that exchanges with differences have left otherwise than 1.20 does."""

CHECKED_TOO = Difference("6: verify caps, and 6.2: unknown objects", {"status": 200, "type": "text/plain", "body": ...})
LOST_IN_TREE = Difference("7.3: one lost object does not stop the walk", {"body": ...})
NO_TOKEN = AS_A_LINE

_OPERATIONS = {
    "check-lost_sdmf": Difference("14: k and N of a mutable file without shares", {"body": ...}),
    "repair-lost_sdmf": Difference("14: k and N of a mutable file without shares", {"body": ...}),
    "check-unknown-child": CHECKED_TOO,
    "check-unknown": CHECKED_TOO,
    "check-verifier": CHECKED_TOO,
    "check-output-bad": unanswered(400, "6.1: other values of output="),
    "manifest-broken": LOST_IN_TREE,
    "deep-check-broken": LOST_IN_TREE,
    "deep-repair-ailing": Difference("7.3: repair failure of one object does not stop the walk", {"body": ...}),
    "manifest-lost": Difference("7.3: the words behind ERROR: are free", {"body": ...}),
    "state-manifest-text": AS_A_LINE,
    "state-lost": Difference("7.1: partial results", {"type": "text/plain", "body": ...}),
    "state-one-of-manifest": Difference("14: H/$SI where H is no deep-check", {"status": 404, "type": PAGE}),
    "state-t-bad": fault(400, "14: t= that is none on /operations/H", body=""),
    "operation-post-t-bad": fault(400, "14: t= that is none on /operations/H", body=""),
    "state-retain-bad": unanswered(400, "14: retain-for= that is no number"),
    "operations": AS_A_LINE,
    "status-not-a-number": unanswered(400, "9.2: non-numeric N"),
    "storage-json": fault(404, "9.4: without a storage server"),
    "private": NO_TOKEN,
    "private-logs": NO_TOKEN,
    "private-wrong-token": NO_TOKEN,
    "private-other-scheme": NO_TOKEN,
    "incident": Difference("9.7: 200 text of either type", {"type": "text/html"}),
    "plugin-none": AS_A_LINE,
    "favicon": FORMER,
    "css": FORMER,
    "welcome-put": fault(405, "14: PUT, POST, TRACE of /", body=""),
    "method-trace": fault(501, "14: PUT, POST, TRACE of /", body=""),
    "method-patch": HUH,
    "options-chk": HUH,
    "options-directory": HUH,
}

MOVED = Difference("14: the words of a redirect are free", {"Content-Length": ...})

_PROGRAMS = {
    "slashes-logs": NO_TOKEN,
    "slashes-inside-and-leading": Difference("14: 1.20 leads to another host, named uri", {"Location": ...}),
    "slashes-inside-head": MOVED,
    "head-argument": MOVED,
    "empty-list-frozen": Difference("4.4: no tag of t=json on a path", {"ETag": None}),
    "json-form-instead": fault(400, "1.6: malformed JSON body"),
    "argument-used-not-utf-8": fault(400, "14: an argument that is used and not UTF-8"),
}

DIFFERENCES: dict[str, Difference] = {
    f"{group}-{name}": difference
    for group, differences in (
        ("files", _FILES),
        ("writes", _WRITES),
        ("directories", _DIRECTORIES),
        ("operations", _OPERATIONS),
        ("programs", _PROGRAMS),
    )
    for name, difference in differences.items()
}


def is_expected(difference: Difference, found: Mapping[str, Any]) -> bool:
    """Whether the differences are those listed. found: our value of each differing field."""
    return found.keys() == difference.ours.keys() and all(
        wanted is ... or wanted == found[name] for name, wanted in difference.ours.items()
    )
