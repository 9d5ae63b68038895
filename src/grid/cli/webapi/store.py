"""A Store behind a gateway: one request per operation of a direct store. [spec webapi 3, 5, 6]

All answers are validated: a new capability must have the kind and size of what was stored.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from urllib.parse import urlencode

from attrs import evolve, field

from grid.caps import (
    ChkCap,
    DirectoryCap,
    ImmutableFileCap,
    KnownCap,
    LitCap,
    MdmfWriteCap,
    SdmfWriteCap,
    SequenceCap,
    SliceCap,
    parse_cap,
    require_usable,
)
from grid.cli.webapi.directory import RemoteDirectory, link_conflict
from grid.cli.webapi.files import RemoteFile, progress, read_file
from grid.cli.webapi.http import GatewayClient
from grid.cli.webapi.refusals import GatewayError
from grid.cli.webapi.shapes import (
    LITERAL_HEALTH,
    RemoteHealth,
    RemoteMended,
    describe_children,
    directory_cap,
    parse_health,
    parse_mended,
)
from grid.crypto.rsa import PrivateKey
from grid.directory.edits import Overwrite
from grid.directory.moving import find_child, move, require_writable, same_directory, settle_way
from grid.directory.names import normalize_name
from grid.directory.pack import Child
from grid.directory.store import Trail
from grid.errors import (
    AuthorityError,
    CapError,
    MustForceRepairError,
)
from grid.extents.reader import ExtentReader
from grid.immutable.put import LIT_SIZE
from grid.limits import MAX_CHECK_JSON
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.mutable.sources import MemorySource
from grid.ports import Buffer, Observer, Runtime, Sink, Source, ignore_events
from grid.values import frozen

FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
JSON = (("Content-Type", "application/json"),)


@frozen(kw_only=True, eq=False)
class GatewayStore:
    """A client's view of a gateway's grid. The gateway learns every capability used with it."""

    client: GatewayClient = field(repr=False)
    observer: Observer = field(default=ignore_events, repr=False)
    _extents: ExtentReader = field(init=False, repr=False)

    @_extents.default
    def _make_extents(self) -> ExtentReader:
        async def read_chk(cap: ChkCap, sink: Sink, offset: int, length: int, _: int) -> int:
            return await read_file(self.client, cap, sink, offset, length, self.observer)

        return ExtentReader(read_chk)

    @property
    def runtime(self) -> Runtime:
        """The process's clock, CPU pool and entropy."""
        return self.client.runtime

    @property
    def convergence(self) -> None:
        """None, because the gateway uses its own secret."""
        return None

    async def put_immutable(self, source: Source, *, segment_size: int | None = None) -> ChkCap | LitCap:
        """Store an immutable file with the gateway's encoding.

        A tiny file becomes a literal capability without a request.
        """
        if source.size <= LIT_SIZE:
            return LitCap(data=bytes(await source.read_at(0, source.size)))
        sent = progress(self.client, source, self.observer)
        cap = _file_cap(await self.client.text("PUT", ["uri"], body=source, sent=sent))
        if not isinstance(cap, ChkCap) or cap.size != source.size:
            raise GatewayError("the gateway's answer is not the capability of the file that was sent")
        return cap

    async def put_mutable(
        self, source: Source | Buffer, *, format: FormatName | None = None, key: PrivateKey | None = None
    ) -> WriteCap:
        """Store a new mutable file. key: its private key, which the gateway learns in any case."""
        if isinstance(source, bytes | bytearray | memoryview):
            source = MemorySource(source)
        query = [("format", format.upper())] if format else [("mutable", "true")]
        if key is not None:
            query.append(("private-key", urlsafe_b64encode(key.der).decode("ascii")))
        sent = progress(self.client, source, self.observer)
        cap = _file_cap(await self.client.text("PUT", ["uri"], query, body=source, sent=sent))
        if not isinstance(cap, SdmfWriteCap | MdmfWriteCap):
            raise GatewayError("the gateway's answer is not the write capability of a mutable file")
        return cap

    def open_mutable(self, cap: KnownCap) -> RemoteFile:
        """The mutable file of this capability. CapError for any other kind."""
        if isinstance(cap, DirectoryCap) or not cap.is_mutable:
            raise CapError("this is not the capability of a mutable file")
        return RemoteFile(self.client, cap, self.observer)

    async def read(self, cap: KnownCap, sink: Sink, offset: int = 0, length: int | None = None) -> int:
        """Write bytes offset .. offset + length (None: to the end) of a file to the sink, and return their number."""
        if isinstance(cap, SliceCap | SequenceCap):
            # Assembled here, since a gateway of 1.20 does not know such files.
            return await self._extents.read(cap, sink, offset, length)
        return await read_file(self.client, cap, sink, offset, length, self.observer)

    async def size(self, cap: KnownCap) -> int:
        """Bytes of a file; sends a request only if it is mutable."""
        if isinstance(cap, ImmutableFileCap):
            return cap.size
        return await self.open_mutable(cap).size()

    async def check(self, cap: KnownCap, *, verify: bool = False, add_lease: bool = False) -> RemoteHealth:
        """Check the health of a file or directory."""
        if cap.storage_index is None:
            return LITERAL_HEALTH
        return parse_health(await self._check(cap, [("verify", verify), ("add-lease", add_lease)]))

    async def repair(self, cap: KnownCap, *, force: bool = False) -> RemoteMended:
        """Verify and repair a file or directory; a mutable one needs its write capability (AuthorityError)."""
        if force:
            raise MustForceRepairError("--force works only without --gateway")
        if cap.storage_index is None:
            return parse_mended(LITERAL_HEALTH.to_json())
        if cap.is_mutable and cap.authority != "write":
            raise AuthorityError("repairing a mutable file or directory takes its write capability")
        return parse_mended(await self._check(cap, [("verify", True), ("repair", True)]))

    async def _check(self, cap: KnownCap, flags: list[tuple[str, bool]]) -> object:
        asked = [("t", "check"), ("output", "JSON"), *((name, "true") for name, wanted in flags if wanted)]
        if cap.authority == "verify":
            raise CapError("to check a file, a gateway needs its read or write capability, not a verify capability")
        answer: object = await self.client.json("POST", ["uri", cap.to_string()], asked, limit=MAX_CHECK_JSON)
        return answer

    def directory(self, cap: DirectoryCap) -> RemoteDirectory:
        """The directory of this capability; CapError if its numbers are impossible for a file."""
        require_usable(cap)
        return RemoteDirectory(self.client, cap)

    async def create_directory(
        self, children: Mapping[str, Child] | None = None, *, format: FormatName | None = None
    ) -> DirectoryCap:
        """Store a new mutable directory with these children and their metadata."""
        query = [("format", format.upper())] if format else []
        if not children:
            answer = await self.client.text("POST", ["uri"], [("t", "mkdir"), *query])
        else:
            # With children, 1.20 accepts no format, and uses the one of its configuration.
            query = [("t", "mkdir-with-children"), *query]
            answer = await self.client.text("POST", ["uri"], query, body=_children(children), headers=JSON)
        cap = directory_cap(answer)
        if cap.authority != "write":
            raise GatewayError("the gateway's answer is not the write capability of a directory")
        return cap

    async def create_immutable_directory(self, children: Mapping[str, Child]) -> DirectoryCap:
        """Store an immutable directory; MustBeDeepImmutableError if a child is mutable."""
        answer = await self.client.text(
            "POST", ["uri"], [("t", "mkdir-immutable")], body=_children(children), headers=JSON
        )
        cap = directory_cap(answer)
        if cap.is_mutable:
            raise GatewayError("the gateway's answer is not the capability of an immutable directory")
        return cap

    async def move(
        self, source: Trail, name: str, target: Trail, new_name: str, *, overwrite: Overwrite = True
    ) -> None:
        """Move or rename a link, in one request if the names allow it; raises the errors of
        `grid.directory.moving.move`.
        """
        require_writable(source, target)
        name, new_name = normalize_name(name), normalize_name(new_name)
        is_rename = same_directory(source.end, target.end)
        if is_rename and name == new_name:
            return
        if not (_is_plain(name) and _is_plain(new_name)):
            # The request would misread such names. [spec webapi 5.3]
            await move(self, source, name, target, new_name, overwrite=overwrite)
            return
        children = await self.directory(source.end).list()
        find_child(children, name)
        fields = {"t": "relink", "from_name": name, "to_name": new_name, "replace": replace_word(overwrite)}
        if not is_rename:
            # Our gateway checks as well, but 1.20 does not.
            fields["to_dir"] = "/".join(_address(await settle_way(self, source, children, name, target)))
        await self.client.text(
            "POST",
            ["uri", *_address(source)],
            body=urlencode(fields).encode("ascii"),
            headers=FORM,
            conflict=link_conflict(new_name),
        )

    def observed_by(self, observer: Observer) -> GatewayStore:
        """The same store with another observer."""
        return evolve(self, observer=observer)


def _address(trail: Trail) -> list[str]:
    """A root and a path, from which the gateway sees the trail; or the directory's own capability if names prevent
    that.
    """
    if not all(map(_is_plain, trail.names)):
        return [trail.end.to_string()]
    return [trail.directories[0].to_string(), *trail.names]


def _is_plain(name: str) -> bool:
    """Whether a request can carry the name unchanged."""
    return "/" not in name and bool(name) and name.strip() == name


def replace_word(overwrite: Overwrite) -> str:
    """The value of `replace=`. [spec webapi 1.3]"""
    return overwrite if isinstance(overwrite, str) else "true" if overwrite else "false"


def _file_cap(text: str) -> KnownCap:
    cap = parse_cap(text)
    if not isinstance(cap, KnownCap):
        raise GatewayError("the gateway's answer is not a capability")
    return cap


def _children(children: Mapping[str, Child]) -> bytes:
    return json.dumps(describe_children(children)).encode("ascii")
