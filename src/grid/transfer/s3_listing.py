"""Lists an S3 bucket that has keys which are no paths, such as `a//b`: obstore's listing ends at the first of them.

It owns which keys are paths, and how pages of a listing are read. Memory: one page.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from grid.transfer.ends import PassingError
from grid.transfer.s3_uploads import S3Uploads
from grid.values import field, frozen

if TYPE_CHECKING:
    from grid.s3.documents import Element

MAX_ELEMENTS = 20_000
"""Elements of a page: up to twelve for each of a thousand objects."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@frozen(kw_only=True)
class Listed:
    """An object of a page."""

    key: str
    size: int
    tag: str
    modified: datetime = field(repr=False)


def has_control(key: str) -> bool:
    """Whether the key has control characters, with which obstore neither reads nor stores an object."""
    return _CONTROL.search(key) is not None


def is_path(key: str) -> bool:
    """Whether obstore can read the object of this key."""
    return not has_control(key) and not any(part in ("", ".", "..") for part in key.split("/"))


async def list_after(uploads: S3Uploads, prefix: str, after: str) -> AsyncIterator[Listed]:
    """Yield the objects whose keys begin with the prefix, from `after` on, in order of their keys. PassingError, EndError."""
    while True:
        answer = _read(await uploads.list_page(prefix, after))
        is_encoded = answer.get("EncodingType") == "url"
        page = [_parse(found, is_encoded=is_encoded) for found in answer.all("Contents")]
        for found in page:
            yield found
        if answer.get("IsTruncated") != "true":
            return
        if not page or page[-1].key <= after:
            raise PassingError("the server's listing does not go on")
        after = page[-1].key


def _read(text: str) -> Element:
    from grid.s3.documents import parse_document
    from grid.s3.faults import S3Fault

    try:
        return parse_document(text.encode(), "ListBucketResult", MAX_ELEMENTS)
    except S3Fault:
        raise _unreadable() from None


def _parse(found: Element, *, is_encoded: bool) -> Listed:
    key, size, modified = (found.get(name) or "" for name in ("Key", "Size", "LastModified"))
    try:
        return Listed(
            key=unquote_plus(key) if is_encoded else key,
            size=int(size),
            tag=found.get("ETag") or "",
            modified=datetime.fromisoformat(modified),
        )
    except ValueError:
        raise _unreadable() from None


def _unreadable() -> PassingError:
    return PassingError("the server's listing cannot be read")
