"""One file of a web server, http:// or https://, as the source of a transfer.

Requests run on threads. The entity tag, the date and the size in each further answer must be those of the first, which reveals
changes of the file. If the server gives neither a tag nor a date, the file is read as one answer. It must report the file's size.
"""

from __future__ import annotations

import asyncio
import http.client
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from string import punctuation
from urllib.parse import quote, unquote, urlsplit

from grid.ports import Buffer
from grid.transfer.ends import (
    PIECE_SIZE,
    EndError,
    Entry,
    LeftOut,
    NotThereError,
    OpenedSource,
    PassingError,
    SourceChangedError,
)
from grid.transfer.traits import hidden

SILENCE_S = 60.0
MOST_DIGITS = 19
"""Digits of a length that can be one."""
_PASSING = (408, 425, 429, 500, 502, 503, 504)


class HttpEnd:
    """A file at a URL."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
        except ValueError:
            raise EndError("this is no URL of a file, such as https://HOST/PATH") from None
        if not parts.hostname:
            raise EndError("name a host, as in https://HOST/PATH")
        if "@" in parts.netloc:  # urllib would take it for a part of the host's name, and ask the name servers.
            raise EndError(f"{parts.hostname}: names and passwords in URLs are not supported")
        self._url = quote(parts._replace(netloc=host).geturl(), safe=punctuation, errors="surrogateescape")
        self.label = f"{parts.scheme}://{parts.hostname}{parts.path}"
        self.identity = f"{parts.scheme}:{hidden(url)}"
        self._name = unquote(parts.path.rstrip("/").rpartition("/")[2]).replace("/", "_") or "index.html"

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        """Yield the file. NotThereError, PassingError, EndError."""
        opened = await self.open(Entry(name=self._name))
        await opened.close()
        yield opened.entry

    async def open(self, entry: Entry) -> OpenedSource:
        """Request the file, but do not read its body yet."""
        with _as_end_errors(self.label):
            answer = await asyncio.to_thread(_ask, self._url, {})
        size = answer.headers.get("Content-Length", "")
        if not size.isascii() or not size.isdigit() or len(size) > MOST_DIGITS:
            answer.close()
            raise EndError(f"{self.label}: the server does not say how long the file is")
        found = Entry(
            name=entry.name,
            size=int(size),
            mtime_ns=_time(answer.headers.get("Last-Modified")),
            tag=answer.headers.get("ETag", ""),
            attributes={"Content-Type": answer.headers["Content-Type"]} if "Content-Type" in answer.headers else {},
        )
        kind = _OpenedPage if found.tag or found.mtime_ns is not None else _OpenedAnswer
        return kind(self._url, answer, found, self.label)

    async def close(self) -> None:
        """Do nothing: nothing stays open."""


class _OpenedPage:
    """A requested file: the first read uses the open answer, others request ranges."""

    shortcut: object = None

    def __init__(self, url: str, answer: http.client.HTTPResponse, entry: Entry, shown: str) -> None:
        self._url, self.entry, self._shown = url, entry, shown
        self._first: http.client.HTTPResponse | None = answer
        is_strong = entry.tag and not entry.tag.startswith("W/")
        self._condition = entry.tag if is_strong else answer.headers.get("Last-Modified", "")

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        first, self._first = self._first, None
        if first is not None and (offset or length < (self.entry.size or 0)):
            first.close()
            first = None
        if length <= 0:
            return
        with _as_end_errors(self._shown):
            answer = first if first is not None else await asyncio.to_thread(self._ask_range, offset, length)
            try:
                while length > 0:
                    data = await asyncio.to_thread(answer.read, min(length, PIECE_SIZE))
                    if not data:
                        return
                    yield data
                    length -= len(data)
            finally:
                answer.close()

    def _ask_range(self, offset: int, length: int) -> http.client.HTTPResponse:
        headers = {"Range": f"bytes={offset}-{offset + length - 1}"}
        if self._condition:
            headers["If-Range"] = self._condition
        answer = _ask(self._url, headers)
        try:
            is_known = self._is_of_version(answer) or (answer.status == 206 and bool(self._condition))
            if answer.status == 206 and not answer.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
                raise EndError(f"{self._shown}: the server sent a different range than requested")
            if answer.status != 206 and offset:
                raise EndError(f"{self._shown}: the server does not support ranges; use --mode stream")
            if not is_known and length < (self.entry.size or 0):
                raise EndError(f"{self._shown}: the server does not tell the version of a range; use --mode stream")
        except BaseException:
            answer.close()
            raise
        return answer

    def _is_of_version(self, answer: http.client.HTTPResponse) -> bool:
        """Whether the answer says that it is of the version that was opened. SourceChangedError if it says another one."""
        total = answer.headers.get("Content-Range" if answer.status == 206 else "Content-Length", "").rpartition("/")[2]
        size = int(total) if total.isascii() and total.isdigit() else self.entry.size
        tag, modified = answer.headers.get("ETag", ""), _time(answer.headers.get("Last-Modified"))
        agree = [tag == self.entry.tag] if tag and self.entry.tag else []
        if modified is not None and self.entry.mtime_ns is not None:
            agree.append(modified == self.entry.mtime_ns)
        if size != self.entry.size or not all(agree):
            raise SourceChangedError(f"{self._shown} changed while it was read")
        return bool(agree)

    async def require_unchanged(self) -> None:
        """Do nothing: one answer is one file, and each further one was compared with it."""

    async def close(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            first.close()


class _OpenedAnswer(_OpenedPage):
    """A file of which nothing tells the version: only its first answer is known to be one file."""

    is_one_stream = True

    def stream(self, offset: int) -> AsyncIterator[Buffer]:
        return self.read(offset, (self.entry.size or 0) - offset)


def _ask(url: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    request = urllib.request.Request(  # noqa: S310 - the opener has no other schemes
        url, headers={"Accept-Encoding": "identity", "User-Agent": "grid", **headers}
    )
    answer = _opener().open(request, timeout=SILENCE_S)
    if not isinstance(answer, http.client.HTTPResponse):
        raise http.client.HTTPException
    return answer


def _opener() -> urllib.request.OpenerDirector:
    """An opener that follows redirects and supports only HTTP's schemes."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _time(text: str | None) -> int | None:
    try:
        return None if text is None else int(parsedate_to_datetime(text).timestamp()) * 10**9
    except (ValueError, OverflowError):
        return None


@contextmanager
def _as_end_errors(shown: str) -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (404, 410):
            raise NotThereError(f"{shown}: there is no such file") from None
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise SourceChangedError(f"{shown} is shorter than it was") from None
        kind = PassingError if error.code in _PASSING else EndError
        raise kind(f"{shown}: the server answers {error.code}") from None
    except http.client.IncompleteRead:
        raise PassingError(f"{shown}: the server ended the answer early") from None
    except http.client.HTTPException as error:
        raise PassingError(f"{shown}: {type(error).__name__}") from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise PassingError(f"{shown}: {reason}") from None
