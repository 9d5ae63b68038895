"""Lists an S3 bucket that has keys which are no paths, such as `a//b`: obstore's listing ends at the first of them.

It owns which keys are paths, and how pages of a listing are read. Memory: one page.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import datetime
from urllib.parse import unquote_plus
from xml.sax.saxutils import unescape

from attrs import field, frozen

from grid.transfer.ends import PassingError
from grid.transfer.s3_uploads import S3Uploads

_OBJECT = re.compile("<Contents>(.*?)</Contents>", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_QUOTES = {"&quot;": '"', "&apos;": "'"}


@frozen(kw_only=True)
class Listed:
    """An object of a page."""

    key: str
    size: int
    tag: str
    modified: datetime = field(repr=False)


def is_path(key: str) -> bool:
    """Whether obstore can read the object of this key."""
    return not _CONTROL.search(key) and not any(part in ("", ".", "..") for part in key.split("/"))


async def list_after(uploads: S3Uploads, prefix: str, after: str) -> AsyncIterator[Listed]:
    """Yield the objects whose keys begin with the prefix, from `after` on, in order of their keys. PassingError, EndError."""
    while True:
        text = await uploads.list_page(prefix, after)
        page = [_parse(found, is_encoded="<EncodingType>url" in text) for found in _OBJECT.findall(text)]
        for found in page:
            yield found
        if "<IsTruncated>true" not in text:
            return
        if not page or page[-1].key <= after:
            raise PassingError("the server's listing does not go on")
        after = page[-1].key


def _parse(text: str, *, is_encoded: bool) -> Listed:
    found = {name: unescape(value, _QUOTES) for name, value in re.findall("<(\\w+)>([^<]*)</", text)}
    try:
        key = found["Key"]
        return Listed(
            key=unquote_plus(key) if is_encoded else key,
            size=int(found["Size"]),
            tag=found.get("ETag", ""),
            modified=datetime.fromisoformat(found["LastModified"]),
        )
    except (KeyError, ValueError):
        raise PassingError("the server's listing cannot be read") from None
