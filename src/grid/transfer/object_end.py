"""Object stores, s3://, gs:// and az://, as ends of a transfer, through obstore.

Names are keys below a prefix that ends with a slash. Time, mode and content type are stored as metadata of the object,
the time in rclone's format. An object appears complete or not at all. Reads require the entity tag of the first answer,
which reveals changes in between.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from grid.directory.metadata import seconds_in
from grid.errors import GridError
from grid.ports import Buffer
from grid.transfer.choices import LEAST_CHUNK
from grid.transfer.ends import (
    PIECE_SIZE,
    Body,
    EndError,
    Entry,
    LeftOut,
    MissingExtraError,
    NoFileError,
    NoParts,
    NotThereError,
    OpenedSource,
    SourceChangedError,
)
from grid.transfer.object_accounts import account_place, store_arguments
from grid.transfer.object_errors import OddKeyError, as_end_errors, as_settings_errors, of_generic
from grid.transfer.s3_listing import Listed, has_control, is_path, list_after
from grid.transfer.s3_uploads import (
    PART_SIZE,
    PARTS_AT_ONCE,
    S3Uploads,
    abort_outdated,
    open_uploads,
    part_size_of,
    upload_in_parts,
)
from grid.transfer.traits import hidden

if TYPE_CHECKING:
    from obstore.store import ObjectStore

LISTED_AT_ONCE = 1000
MAX_KEY_BYTES = 1024
MOST_PART = 5 * 2**30
"""Bytes of a part of an S3 upload."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
"""Azure takes no other names of metadata."""
_HEADERS = ("Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control")


def open_object_end(url: str, *, is_target: bool = False) -> ObjectEnd:
    """The end for `scheme://bucket/prefix`; MissingExtraError, ConfigError.

    is_target: the URL names no single object.
    """
    try:
        from obstore import store as stores
    except ImportError:
        raise MissingExtraError(f"{url.partition('/')[0]}//", "obstore") from None
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    url = f"{scheme}://{rest}"
    bucket, _, prefix = rest.partition("/")
    if not bucket:
        raise EndError(f"{url}: name a bucket, as in {scheme}://BUCKET/PREFIX")
    make: Any = {"s3": stores.S3Store, "gs": stores.GCSStore, "az": stores.AzureStore}[scheme]
    arguments = store_arguments(scheme)
    uploads = open_uploads(bucket, arguments) if scheme == "s3" else None
    if uploads is not None and is_target:
        uploads.prepare()
    with as_settings_errors(url):
        store = make(bucket, **arguments)
    names = _IDENTIFIER if scheme == "az" else _HEADER_NAME
    place = account_place(scheme, arguments, os.environ)
    identity = url + (f" at {hidden(*place)}" if place else "")
    return ObjectEnd(
        store, prefix.strip("/"), url, is_target=is_target, uploads=uploads, names=names, identity=identity
    )  # fmt: skip


class ObjectEnd:
    """The objects below a prefix of a bucket, or a single object."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        label: str,
        *,
        is_target: bool = False,
        uploads: S3Uploads | None = None,
        names: re.Pattern[str] = _HEADER_NAME,
        identity: str = "",
    ) -> None:
        """uploads: sends large objects so that a later process can resume; None if this store cannot.

        names: of metadata that the store takes.
        """
        self._uploads, self._names = uploads, names
        self._store, self._prefix, self.label, self._is_target = store, prefix, label, is_target
        self._is_single = False
        self.identity = identity or label

    @property
    def location(self) -> Sequence[str]:
        """Scheme, bucket and prefix."""
        scheme, _, path = self.label.partition("://")
        return scheme, *filter(None, path.split("/"))

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        """Yield every object below the prefix, or the object of exactly that name; NotThereError, PassingError,
        EndError.
        """
        import obstore

        count, last, odd = 0, "", False
        try:
            with as_end_errors(self.label):
                stream = obstore.list(self._store, self._prefix or None, chunk_size=LISTED_AT_ONCE)
                async for batch in stream:
                    for meta in batch:
                        count += 1
                        last = str(meta["path"])
                        yield self._listed(meta)
        except OddKeyError:
            if self._uploads is None:
                raise
            odd = True
        if odd and self._uploads is not None:
            async for found in list_after(self._uploads, f"{self._prefix}/" if self._prefix else "", last):
                count += 1
                yield self._listed_ourselves(found)
        if not count and self._prefix and not self._is_target:
            with as_end_errors(self.label):
                meta = await obstore.head_async(self._store, self._prefix)
            self._is_single = True
            yield _entry(self._prefix.rpartition("/")[2], meta)

    async def open(self, entry: Entry) -> OpenedSource:
        """Request the object, but do not read its body yet; a large one is only asked for."""
        import obstore

        key, shown = self._key(entry.name), f"{self.label.rstrip('/')}/{entry.name}"
        try:
            asked = await self._ask(key, entry)
            with as_end_errors(shown):
                # If it changed since it was listed, send its current version; further ranges require this answer's tag.
                result = await obstore.get_async(self._store, key) if asked is None else asked
                found = _entry(entry.name, result.meta)
        except NotThereError:
            if entry.size == 0:  # obstore lists `folder/` as `folder`.
                raise NoFileError("a marker of a directory, or gone") from None
            raise
        first = result if asked is None else None
        return _OpenedObject(self._store, key, _with_attributes(found, result.attributes), shown, first)

    async def _ask(self, key: str, entry: Entry) -> Any:  # noqa: ANN401 - obstore's result
        """Facts of a large object, which is read in ranges as a rule: its server need not begin to send all of it.

        None for a small one; and if it is not as it was listed, has no tag, or there is no answer: a HEAD has no body to say why.
        """
        import obstore

        if (entry.size or 0) < 2 * LEAST_CHUNK:
            return None
        with suppress(EndError), as_end_errors(entry.name):
            asked = await obstore.get_async(self._store, key, options={"head": True})
            if asked.meta["e_tag"] and asked.meta["size"] == entry.size:
                return asked
        return None

    async def close(self) -> None:
        """Close idle connections; those of obstore end with the store."""
        if self._uploads is not None:
            self._uploads.close()

    def spare(self, tokens: Set[str], mark: str) -> None:
        """Do nothing: uploads go on or are aborted with their files."""

    def refuse(self, name: str) -> str | None:
        """Keys are UTF-8 of limited length, and tools interpret '..' and empty names as paths."""
        try:
            size = len(self._key(name).encode("utf-8"))
        except UnicodeEncodeError:
            return "it is not UTF-8 text"
        if size > MAX_KEY_BYTES:
            return f"its key is longer than {MAX_KEY_BYTES} bytes"
        if has_control(name):
            return "its name has control characters; rename it"
        if any(part in ("", ".", "..") for part in name.split("/")):
            return "it has an empty name, '.' or '..' in its path"
        return None

    def place_of(self, name: str) -> str:
        """The name itself."""
        return name

    def memory_of(self, size: int) -> int:
        """A part that is being filled, and one in transit: S3Uploads limits those for all objects together."""
        parts = 2 if self._uploads is not None else 2 + PARTS_AT_ONCE
        return min(size, parts * part_size_of(size))

    async def adopt(self, opened: OpenedSource) -> str | None:
        """None: the bytes must be sent."""
        return None

    async def store(self, entry: Entry, body: Body) -> str:
        """Store the object, in one request if it is small, otherwise in parts."""
        import obstore

        key, attributes = self._key(entry.name), _attributes(entry, self._names)
        shown = f"{self.label.rstrip('/')}/{entry.name}"
        if part_size_of(body.size) > MOST_PART:
            raise EndError(f"{shown}: no store takes an object of {body.size} bytes")
        if self._uploads is not None and not isinstance(body.parts, NoParts):
            if body.size > part_size_of(body.size):
                await upload_in_parts(self._uploads, key, _headers(attributes), body)
                return ""
            await abort_outdated(self._uploads, key, body)
        with as_end_errors(shown):
            if body.size > PART_SIZE:
                await self._write(key, attributes, body, shown)
                return ""
            data = b"".join([bytes(piece) async for piece in body.stream()])
            await body.require_unchanged()
            await obstore.put_async(self._store, key, data, attributes=attributes, use_multipart=False)
        return ""

    async def _write(self, key: str, attributes: Any, body: Body, shown: str) -> None:  # noqa: ANN401
        """Store a large object in parts, by obstore, whose writer reports most problems as OSError."""
        import obstore

        size, failure = part_size_of(body.size), list[BaseException]()
        try:
            async with obstore.open_writer_async(
                self._store, key, attributes=attributes, buffer_size=size, max_concurrency=PARTS_AT_ONCE
            ) as writer:
                try:
                    async for piece in body.stream():
                        data = bytes(piece)  # The writer may keep it for a later part, and a piece is only lent.
                        try:
                            await writer.write(data)
                        except OSError as error:
                            raise of_generic(shown, str(error)) from None
                    await body.require_unchanged()
                except BaseException as error:
                    failure.append(error)
                    raise
        except OSError as error:
            if failure:  # Of the source; or the writer could not drop what it had sent.
                raise failure[0] from None
            raise of_generic(shown, str(error)) from None

    def is_stored(self, name: str) -> bool:
        """Always true: every stored object is in place."""
        return True

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        """Do nothing: objects are already in place."""
        return {}

    async def remove(self, name: str) -> None:
        """Delete the object."""
        import obstore

        try:
            with as_end_errors(name):
                await obstore.delete_async(self._store, self._key(name))
        except NotThereError:
            return

    def _key(self, name: str) -> str:
        if self._is_single:
            return self._prefix
        return f"{self._prefix}/{name}" if self._prefix else name

    def _listed(self, meta: Any) -> Entry | LeftOut:  # noqa: ANN401 - a TypedDict of obstore
        path = str(meta["path"])
        if path == self._prefix:
            return LeftOut(path, "a marker of a directory")
        return _entry(path.removeprefix(f"{self._prefix}/") if self._prefix else path, meta)

    def _listed_ourselves(self, found: Listed) -> Entry | LeftOut:
        key = found.key.removesuffix("/")
        if has_control(key):
            why = "its key has control characters; rename that object"
            return LeftOut(found.key.removeprefix(f"{self._prefix}/"), why, is_file=True, is_lost=True)
        if not is_path(key):
            return LeftOut(found.key.removeprefix(f"{self._prefix}/"), "its key is no path", is_file=True)
        if key != found.key and not found.size:
            return LeftOut(key.removeprefix(f"{self._prefix}/"), "a marker of a directory")
        return self._listed({"path": key, "last_modified": found.modified, "size": found.size, "e_tag": found.tag})


class _OpenedObject:
    """A requested object: a first read of the whole uses the open answer, if there is one; others request what they read."""

    shortcut: object = None

    def __init__(self, store: ObjectStore, key: str, entry: Entry, shown: str, first: Any) -> None:  # noqa: ANN401
        """first: the open answer to a request of the whole; None if it was only asked for."""
        self._store, self._key, self.entry, self._shown = store, key, entry, shown
        self._first = first

    async def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        import obstore

        first, self._first = self._first, None
        if length <= 0:
            return
        with as_end_errors(self._shown):
            is_whole = offset == 0 and length >= (self.entry.size or 0)
            if is_whole and first is not None:
                result = first
            else:
                del first
                options: Any = {} if is_whole else {"range": (offset, offset + length)}
                if self.entry.tag:
                    options["if_match"] = self.entry.tag
                result = await obstore.get_async(self._store, self._key, options=options)
                # Some servers ignore the condition.
                if self.entry.tag and (result.meta["e_tag"] or "") != self.entry.tag:
                    raise SourceChangedError(f"{self._shown} changed while it was read")
            async for piece in result.stream(min_chunk_size=PIECE_SIZE):
                yield piece

    async def require_unchanged(self) -> None:
        """Compare the object if it has no entity tag; otherwise each request required it."""
        if self.entry.tag:
            return
        import obstore

        with as_end_errors(self._shown):
            meta = await obstore.head_async(self._store, self._key)
        if _entry(self.entry.name, meta).size != self.entry.size:
            raise SourceChangedError(f"{self._shown} changed while it was read")

    async def close(self) -> None:
        self._first = None


def _entry(name: str, meta: Any) -> Entry:  # noqa: ANN401 - a TypedDict of obstore
    modified = meta["last_modified"]
    return Entry(
        name=name, size=int(meta["size"]), mtime_ns=int(modified.timestamp()) * 10**9, tag=str(meta["e_tag"] or "")
    )


def _with_attributes(entry: Entry, attributes: Mapping[str, str]) -> Entry:
    """The entry with the time and mode recorded in its metadata."""
    from attrs import evolve

    kept = {name: value for name, value in attributes.items() if name not in ("mtime", "mode")}
    entry = evolve(entry, attributes=kept)
    try:
        mtime = seconds_in(float(attributes["mtime"])) if "mtime" in attributes else None
        return evolve(
            entry,
            mtime_ns=entry.mtime_ns if mtime is None else round(mtime * 1e9),
            mode=int(attributes["mode"], 8) & 0o777 if "mode" in attributes else None,
        )
    except ValueError:
        return entry


def _attributes(entry: Entry, names: re.Pattern[str]) -> Any:  # noqa: ANN401 - obstore's union of names
    """The metadata of a new object: headers known to S3, and what HTTP and the store can hold of the user's.

    names: that it takes. obstore panics over what is no header.
    """
    kept = {
        name: value.strip()
        for name, value in entry.attributes.items()
        if (name in _HEADERS or names.fullmatch(name)) and value.isascii() and value.isprintable()
    }
    if entry.mtime_ns is not None:
        seconds, rest = divmod(abs(entry.mtime_ns), 10**9)
        kept["mtime"] = f"{'-' if entry.mtime_ns < 0 else ''}{seconds}.{rest:09}"
    if entry.mode is not None:
        kept["mode"] = f"{entry.mode:o}"
    return kept


def _headers(attributes: Mapping[str, str]) -> dict[str, str]:
    """The same as headers of S3."""
    return {
        name.lower() if name in _HEADERS else f"x-amz-meta-{name.lower()}": value for name, value in attributes.items()
    }
