"""Where our gateway answers otherwise than 1.20's, on purpose: by exchange, what we say, and the row that says why.

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
    """row: why. ours: what each field that differs has in our answer."""

    row: str
    ours: Mapping[str, Any]


def fault(status: int, row: str, **more: object) -> Difference:
    """An error in one plain line where 1.20 has a traceback, a page, no answer or none of the errors."""
    return Difference(row, {"status": status, "type": PLAIN, **more})


def unanswered(status: int, row: str) -> Difference:
    """An answer where 1.20 gives none."""
    return Difference(row, {"status": status})


HUH = Difference("14: 501 in any shape", {"type": PLAIN})
NO_RANGE = {"ETag": None, "Accept-Ranges": None}
LOST = Difference("14: the headers of an error are not those of the file", NO_RANGE)

_FILES = {
    "put-private-key-bad": fault(400, "1.3: private-key= that is none"),
    "post-upload-without-file": fault(400, "1.6: missing form field `file`"),
    "post-t-missing": fault(400, "14: POST /uri without t and without a form"),
    "post-mkdir-children-malformed": fault(400, "1.6: malformed JSON body"),
    "get-uri-slash-argument": Difference("3: 302 to /uri?uri=, here absolute", {"Location": ...}),
    "delete-uri": HUH,
    "options-uri": HUH,
    "get-chk-verifier-json": Difference(
        "8.1: verify caps", {"status": 200, "type": "text/plain", "ETag": ..., "body": ...}
    ),
    "get-sdmf-verifier-json": Difference("8.1: verify caps", {"body": ...}),
    "get-cap-only-slash": fault(400, "3: GET /uri/ without uri= is GET /uri without it", Location=None, body=""),
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

_WRITES: dict[str, Difference] = {}
_DIRECTORIES: dict[str, Difference] = {}
_OPERATIONS: dict[str, Difference] = {}

DIFFERENCES: dict[str, Difference] = {
    f"{group}-{name}": difference
    for group, differences in (
        ("files", _FILES),
        ("writes", _WRITES),
        ("directories", _DIRECTORIES),
        ("operations", _OPERATIONS),
    )
    for name, difference in differences.items()
}


def is_expected(difference: Difference, found: Mapping[str, Any]) -> bool:
    """Whether what differs is what is listed. found: our value of each field that differs."""
    return found.keys() == difference.ours.keys() and all(
        wanted is ... or wanted == found[name] for name, wanted in difference.ours.items()
    )
