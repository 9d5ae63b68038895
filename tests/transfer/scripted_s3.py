"""A small in-memory S3 server whose answers a test can spoil: statuses, lost connections, short bodies, wrong tags.

It knows what the client of a transfer asks for: listing, HEAD, GET with ranges, PUT whole and in parts, and deleting.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from attrs import define, field

BUCKET = "bucket"
UNSIGNED = "UNSIGNED-PAYLOAD"
TIME = "2026-11-22T12:00:00.000Z"
PAGE = 1000
"""Keys of a page of a long listing."""


@define
class Fault:
    """What happens to a request in place of its answer. status: 0 to hang up, 1 to send half of the body."""

    method: str
    status: int
    code: str = ""
    is_for: Callable[[str], bool] = lambda path: True


@define
class ScriptedS3:
    """The objects and the faults: each fault happens once, in order. asked: every request. deleted: keys, in order."""

    objects: dict[str, bytes] = field(factory=dict)
    faults: list[Fault] = field(factory=list)
    asked: list[str] = field(factory=list)
    uploads: dict[str, dict[int, bytes]] = field(factory=dict)
    deleted: list[str] = field(factory=list)
    tag_of: Callable[[bytes], str] = lambda data: f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
    ignores_conditions: bool = False
    ignores_ranges: bool = False
    heads: Literal["right", "empty", "untagged"] = "right"
    """What answers to HEAD say: some servers answer with a length of 0, or leave out what they send with a body."""
    page_of: Callable[[str, str], bytes] | None = None
    """The page of a long listing of a prefix that follows a token."""
    checksums: Literal["ignored", "kept", "refused"] = "ignored"
    """What an upload with checksums of its parts meets. kept: then each part needs one."""
    lock: Lock = field(factory=Lock)

    def count(self, method: str) -> int:
        """How many requests of a method there were."""
        return sum(asked.startswith(method) for asked in self.asked)

    def fault_of(self, method: str, path: str) -> Fault | None:
        """Take the next fault if it is meant for this request."""
        with self.lock:
            self.asked.append(f"{method} {path}")
            for fault in self.faults:
                if fault.method == method and fault.is_for(path):
                    self.faults.remove(fault)
                    return fault
        return None


class _Request(BaseHTTPRequestHandler):
    """One connection to the server."""

    protocol_version = "HTTP/1.1"
    server_state: ScriptedS3

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name not in ("do_HEAD", "do_PUT", "do_POST", "do_DELETE"):
            raise AttributeError(name)
        return self._serve

    def _serve(self) -> None:
        state, parts = self.server_state, urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").lstrip("/")
        data = self._body()
        fault = state.fault_of(self.command, self.path)
        if fault is not None and fault.status != 1:
            self._spoil(fault)
        elif (wrong := self._wrong_with(query, data)) is not None:
            self._answer(400, _xml("Error", Code=wrong, Message="scripted"))
        elif self.command in ("GET", "HEAD") and not key:
            token = query.get("continuation-token", [""])[0]
            after, most = query.get("start-after", [""])[0], int(query.get("max-keys", ["1000"])[0])
            self._list(query.get("prefix", [""])[0], token, after, most, is_half=fault is not None)
        elif self.command in ("GET", "HEAD"):
            self._get(key, is_half=fault is not None)
        elif self.command == "DELETE":
            if "uploadId" in query:
                state.uploads.pop(query["uploadId"][0], None)
            else:
                state.objects.pop(key, None)
            self._answer(204)
        elif self.command in ("PUT", "POST") and query.get("uploadId", [""])[0] not in {"", *state.uploads}:
            self._answer(404, _xml("Error", Code="NoSuchUpload", Message="scripted"))
        elif self.command == "PUT" and "uploadId" in query:
            state.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = data
            self._answer(200, ETag=state.tag_of(data))
        elif self.command == "PUT":
            state.objects[key] = data
            self._answer(200, ETag=state.tag_of(data))
        elif "delete" in query:
            deleted = [unescape(key) for key in re.findall("<Key>([^<]*)</Key>", data.decode())]
            state.deleted += deleted
            for each in deleted:
                state.objects.pop(each, None)
            listed = "".join(f"<Deleted><Key>{escape(each)}</Key></Deleted>" for each in deleted)
            self._answer(200, f"<DeleteResult>{listed}</DeleteResult>".encode())
        elif "uploads" in query:
            upload = f"upload-{len(state.asked)}"
            state.uploads[upload] = {}
            begun = _xml("InitiateMultipartUploadResult", Bucket=BUCKET, Key=key, UploadId=upload)
            algorithm = "CRC32" if state.checksums == "kept" and self._names_checksums() else ""
            self._answer(200, begun, {"x-amz-checksum-algorithm": algorithm})
        else:
            pieces = state.uploads.pop(query["uploadId"][0])
            state.objects[key] = b"".join(pieces[number] for number in sorted(pieces))
            tag = state.tag_of(state.objects[key])
            self._answer(200, _xml("CompleteMultipartUploadResult", Bucket=BUCKET, Key=key, ETag=tag))

    def _wrong_with(self, query: dict[str, list[str]], data: bytes) -> str | None:
        """What is wrong with the hash of the body or the checksums."""
        if self.headers.get("x-amz-content-sha256", UNSIGNED) not in (UNSIGNED, hashlib.sha256(data).hexdigest()):
            return "XAmzContentSHA256Mismatch"
        is_there = query.get("uploadId", [""])[0] in {"", *self.server_state.uploads}
        return "InvalidRequest" if is_there and not self._has_right_checksums(query, data) else None

    def _names_checksums(self) -> bool:
        return any(name.lower().startswith("x-amz-checksum-") for name in self.headers)

    def _has_right_checksums(self, query: dict[str, list[str]], data: bytes) -> bool:
        """Whether the request has the checksums that it needs, and no others."""
        state = self.server_state
        if not {"uploads", "uploadId"} & query.keys():
            return True
        if state.checksums == "refused" or (state.checksums == "ignored" and "uploads" not in query):
            return not self._names_checksums()
        if "partNumber" in query:
            return state.checksums != "kept" or self.headers.get("x-amz-checksum-crc32") == _crc32(data)
        if "uploadId" in query and self.command == "POST" and state.checksums == "kept":
            pieces = state.uploads[query["uploadId"][0]]
            listed = re.findall("<ChecksumCRC32>([^<]*)</ChecksumCRC32>", data.decode())
            return listed == [_crc32(pieces[number]) for number in sorted(pieces)]
        return True

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _spoil(self, fault: Fault) -> None:
        self.close_connection = True
        if fault.status:
            body = _xml("Error", Code=fault.code or "InternalError", Message="scripted")
            self._answer(
                fault.status, body, Connection="close"
            )  # Otherwise a client may use it once more, and say so instead.

    def _get(self, key: str, *, is_half: bool) -> None:
        state = self.server_state
        data = state.objects.get(key)
        if data is None:
            self._answer(404, _xml("Error", Code="NoSuchKey", Message="scripted"))
            return
        tag, wanted = state.tag_of(data), self.headers.get("If-Match")
        if wanted not in (None, tag) and not state.ignores_conditions:
            self._answer(412, _xml("Error", Code="PreconditionFailed", Message="scripted"))
            return
        about = {"ETag": tag, "Last-Modified": "Sun, 22 Nov 2026 12:00:00 GMT"}
        if self.command == "HEAD" and state.heads == "untagged":
            del about["ETag"]
        if self.command == "HEAD" and state.heads == "empty":
            data = b""
        asked = self.headers.get("Range")
        if asked is None or state.ignores_ranges:
            self._answer(200, data, is_half=is_half, **about)
            return
        begin, end = asked.removeprefix("bytes=").split("-")
        part = data[int(begin) : int(end) + 1]
        about["Content-Range"] = f"bytes {begin}-{int(begin) + len(part) - 1}/{len(data)}"
        self._answer(206, part, is_half=is_half, **about)

    def _list(self, prefix: str, token: str, after: str, most: int, *, is_half: bool) -> None:
        state = self.server_state
        if state.page_of is not None:
            self._answer(200, state.page_of(prefix, token), is_half=is_half)
            return
        keys = [key for key in sorted(state.objects) if key.startswith(prefix) and key > after]
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{TIME}</LastModified>"
            f"<ETag>{escape(state.tag_of(data))}</ETag><Size>{len(data)}</Size></Contents>"
            for key, data in ((key, state.objects[key]) for key in keys[:most])
        )
        body = f"<ListBucketResult><Name>{BUCKET}</Name><IsTruncated>{str(len(keys) > most).lower()}</IsTruncated>{found}</ListBucketResult>"
        self._answer(200, body.encode(), is_half=is_half)

    def _answer(
        self, status: int, body: bytes = b"", about: Mapping[str, str] = {}, /, *, is_half: bool = False, **headers: str
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in {**about, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if is_half else body)
        if is_half:
            self.close_connection = True


def _crc32(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def _xml(name: str, **children: str) -> bytes:
    inside = "".join(f"<{child}>{escape(text)}</{child}>" for child, text in children.items())
    return f"<{name}>{inside}</{name}>".encode()


class NumberedNames(Sequence[str]):
    """Names of very many files, made as they are asked for."""

    def __init__(self, numbers: range, start: str = "file-") -> None:
        self._numbers, self._start = numbers, start

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        found = self._numbers[index]
        return [self._name(number) for number in found] if isinstance(index, slice) else self._name(found)

    def _name(self, number: int) -> str:
        return f"{self._start}{number:07}"


def long_page(names: Sequence[str], prefix: str, token: str) -> bytes:
    """The page of a listing of these names below a prefix that follows a token. Each has one byte."""
    begin = int(token or 0)
    end = min(begin + PAGE, len(names))
    keys = "".join(
        f"<Contents><Key>{prefix}{name}</Key><LastModified>{TIME}</LastModified><ETag>x</ETag><Size>1</Size></Contents>"
        for name in names[begin:end]
    )
    more = "" if end == len(names) else f"<NextContinuationToken>{end}</NextContinuationToken>"
    return (
        f"<ListBucketResult><Name>{BUCKET}</Name><IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        f"{more}{keys}</ListBucketResult>"
    ).encode()


@contextmanager
def scripted_s3(state: ScriptedS3) -> Iterator[dict[str, str]]:
    """The environment of a client of a server with these objects."""
    handler = type("Scripted", (_Request,), {"server_state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        }
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
