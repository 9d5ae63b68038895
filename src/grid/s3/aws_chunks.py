"""Decodes aws-chunked bodies: chunks that may be signed, followed by trailers. Pure.

Owns the bound on buffering: one line at a time. Bytes are passed on before their signature is known, so the caller must
not keep anything before `finish` has returned.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from grid.s3.faults import S3Fault
from grid.s3.signature import ChunkSigner, is_equal

MAX_LINE = 1024
MAX_TRAILERS = 10

FREE_CHUNKS = 1000
"""Chunks of any size; each of those beyond has to bring LEAST_CHUNK bytes on average."""

LEAST_CHUNK = 1024
"""Far below what S3 demands. Each chunk takes the same work, however small it is."""

MAX_BLANK_LINES = 2
"""Behind the end of a body."""

_SIZE = re.compile(rb"([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?")


def _malformed(why: str) -> S3Fault:
    return S3Fault("InvalidRequest", f"The body is not in aws-chunked encoding: {why}.")


WRONG_LENGTH = "You did not provide the number of bytes specified by the Content-Length HTTP header"


class AwsChunks:
    """Decodes one body."""

    def __init__(self, size: int, signer: ChunkSigner | None, seed: str, has_trailer: bool) -> None:
        """size: decoded bytes expected. signer: None for unsigned chunks. seed: the request's signature."""
        self._left = size
        self._signer = signer
        self._previous = seed
        self._has_trailer = has_trailer
        self._line = bytearray()
        self._in_chunk = 0
        self._chunk_count = 0
        self._begun_size = 0
        self._blank_count = 0
        self._hash = hashlib.sha256()
        self._claimed = ""
        self._state = "size"
        self.trailers: dict[str, str] = {}
        self._trailer_lines = bytearray()

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Decode more of the body; S3Fault."""
        start = 0
        while start < len(data):
            if self._state == "data":
                piece = data[start : start + self._in_chunk]
                start += len(piece)
                self._in_chunk -= len(piece)
                if self._signer is not None:
                    self._hash.update(piece)
                yield piece
                if not self._in_chunk:
                    self._state = "end of data"
                continue
            end = data.find(b"\n", start)
            stop = len(data) if end < 0 else end + 1
            self._line += data[start:stop]
            if len(self._line) > MAX_LINE:
                raise _malformed("a line is too long")
            start = stop
            if end >= 0:
                line = bytes(self._line)
                self._line.clear()
                if not line.endswith(b"\r\n"):
                    raise S3Fault("IncompleteBody")
                self._take_line(line[:-2])

    def finish(self) -> None:
        """Check that the body is complete and its signatures are valid; S3Fault."""
        if self._state == "trailer" and not self._has_trailer:
            self._state = "end"
        if self._state == "trailer" and self._signer is None and not self._line:
            self._state = "end"
        if self._state != "end" or self._line:
            raise S3Fault("IncompleteBody")
        if self._left:
            raise S3Fault("IncompleteBody", WRONG_LENGTH)

    def _take_line(self, line: bytes) -> None:
        match self._state:
            case "size":
                self._begin_chunk(line)
            case "end of data":
                if line:
                    raise S3Fault("IncompleteBody")
                self._end_chunk()
                self._state = "size"
            case "trailer":
                self._take_trailer(line)
            case _:
                self._blank_count += 1
                if line or self._blank_count > MAX_BLANK_LINES:
                    raise _malformed("something follows its end")

    def _begin_chunk(self, line: bytes) -> None:
        found = _SIZE.fullmatch(line)
        if found is None or (found[2] is None) != (self._signer is None):
            raise S3Fault("IncompleteBody")
        self._in_chunk = int(found[1], 16)
        self._claimed = (found[2] or b"").decode()
        self._hash = hashlib.sha256()
        self._left -= self._in_chunk
        if self._left < 0:
            raise S3Fault("IncompleteBody", WRONG_LENGTH)
        self._chunk_count += 1
        self._begun_size += self._in_chunk
        if (self._chunk_count - FREE_CHUNKS) * LEAST_CHUNK > self._begun_size:
            raise _malformed("its chunks are too small; send at least 8 KiB in each")
        if self._in_chunk:
            self._state = "data"
            return
        self._end_chunk()
        self._state = "trailer"

    def _end_chunk(self) -> None:
        if self._signer is None:
            return
        right = self._signer.chunk(self._previous, self._hash.hexdigest())
        if not is_equal(right, self._claimed):
            raise S3Fault("SignatureDoesNotMatch", "The signature of a chunk of the body is wrong.")
        self._previous = right

    def _take_trailer(self, line: bytes) -> None:
        if not line:
            if self._has_trailer and self._signer is not None and self._trailer_lines:
                raise S3Fault("SignatureDoesNotMatch", "The fields behind the body are not signed.")
            self._state = "end"
            return
        name, colon, value = line.partition(b":")
        if not self._has_trailer or not colon or len(self.trailers) >= MAX_TRAILERS:
            raise S3Fault("MalformedTrailerError")
        field, text = name.strip().lower().decode("latin-1"), value.strip().decode("latin-1")
        if field != "x-amz-trailer-signature":
            self.trailers[field] = text
            self._trailer_lines += f"{field}:{text}\n".encode("latin-1")
            return
        if self._signer is None:
            raise _malformed("it is not signed, and what follows it is")
        if not is_equal(self._signer.trailer(self._previous, bytes(self._trailer_lines)), text):
            raise S3Fault("SignatureDoesNotMatch", "The signature of the fields behind the body is wrong.")
        self._state = "end"
