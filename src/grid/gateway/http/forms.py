"""Parses forms in request bodies: small fields become arguments, and the one named `file` is spooled. [spec webapi 1.3]

Owns the bounds on forms. A file streams through the parser; memory holds no more of it than a spool's batch.
"""

from __future__ import annotations

from collections.abc import Callable

from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header

from grid.gateway.faults import BadRequest, PayloadTooLarge
from grid.gateway.http.arguments import MAX_ARGUMENTS, Arguments, parse_query
from grid.gateway.http.body import Body
from grid.gateway.shared.spool import Spool, SpoolFolder
from grid.ports import CpuPool
from grid.values import define, field

FILE_FIELD = "file"
MULTIPART = "multipart/form-data"
URLENCODED = "application/x-www-form-urlencoded"

MAX_FIELD = 2**20
"""Bytes of a field other than a file; a private key or a capability has a few thousand."""

MAX_FORM = 4 * 2**20
"""Bytes of all such fields together."""

POOLED_FORM = 2**16
"""Forms from this many bytes on are parsed on the pool: 10 ms if all bytes are escaped. Longer ones share memory."""


@define(kw_only=True)
class Form:
    """A parsed form. file: None if it had none; the caller closes it. file_name: as sent."""

    file: Spool | None = field(default=None, repr=False)
    file_name: str | None = None

    def close(self) -> None:
        """Close the file, if there is one."""
        if self.file is not None:
            self.file.close()


def is_form(content_type: str) -> bool:
    """Whether a body of this type is a form."""
    return _kind(content_type) in (MULTIPART, URLENCODED)


async def read_form(
    body: Body, arguments: Arguments, folder: SpoolFolder, cpu: CpuPool, take: Callable[[int], None]
) -> Form:
    """Parse a body that is a form, and append its fields to the arguments.

    folder: where a file is spooled. take: called with the byte counts of long fields buffered in memory; it may raise.
    BadRequest; PayloadTooLarge; NoSpaceError.
    """
    kind, options = parse_options_header(body.content_type)
    fields = _Fields(take)
    if kind.strip() == URLENCODED:
        raw = await body.read_all(MAX_FORM, fields.grow)
        pairs = parse_query(raw) if len(raw) < POOLED_FORM else await cpu.run(parse_query, raw)
        arguments.add(pairs)
        return Form()
    boundary = options.get("boundary")
    if not boundary:
        raise BadRequest("the form's Content-Type has no boundary")
    reader = _Reader(arguments, folder, cpu, fields)
    try:
        await reader.read(body, boundary)
    except MultipartError as error:
        reader.form.close()
        raise BadRequest("the form cannot be read: it is not multipart/form-data as RFC 7578 defines it") from error
    except BaseException:
        reader.form.close()
        raise
    return reader.form


def _kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


class _Fields:
    """Counts the bytes of all fields of one form."""

    def __init__(self, take: Callable[[int], None]) -> None:
        self._take = take
        self.size = 0

    def grow(self, size: int) -> None:
        """Count more bytes."""
        before, self.size = self.size, self.size + size
        if self.size > POOLED_FORM:
            self._take(size if before > POOLED_FORM else self.size)


class _Reader:
    def __init__(self, arguments: Arguments, folder: SpoolFolder, cpu: CpuPool, fields: _Fields) -> None:
        self.form = Form()
        self._arguments = arguments
        self._folder = folder
        self._cpu = cpu
        self._name = ""
        self._value: bytearray | None = None
        self._in_file = False
        self._fields = fields

    async def read(self, body: Body, boundary: str) -> None:
        with PushMultipartParser(boundary, max_segment_count=MAX_ARGUMENTS) as parser:
            async for chunk in body.chunks():
                for event in parser.parse(chunk):
                    await self._take(event)
        if self.form.file is not None:
            await self.form.file.finish()

    async def _take(self, event: MultipartSegment | bytes | bytearray | None) -> None:
        if isinstance(event, MultipartSegment):
            self._begin(event)
        elif event is not None:
            await self._more(bytes(event))
        elif not self._in_file and self._value is not None:
            self._arguments.add([(self._name, _text(self._value))])
            self._value = None
        else:
            self._in_file = False

    def _begin(self, segment: MultipartSegment) -> None:
        self._name = segment.name
        self._in_file = segment.name == FILE_FIELD and self.form.file is None
        self._value = None
        if self._in_file:
            self.form.file_name = segment.filename
            self.form.file = Spool(self._folder, self._cpu)
        else:
            self._value = bytearray()

    async def _more(self, data: bytes) -> None:
        if self._in_file and self.form.file is not None:
            await self.form.file.write(data)
            return
        if self._value is not None:
            self._value += data
            self._fields.grow(len(data))
            if len(self._value) > MAX_FIELD or self._fields.size > MAX_FORM:
                raise PayloadTooLarge("a field of the form is too long")


def _text(value: bytearray) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest("a field of the form is not UTF-8") from None
