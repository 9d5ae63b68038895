"""Operations on buckets: list, create and delete them, list their objects, and delete many objects."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from twisted.internet.defer import DeferredSemaphore, FirstError, gatherResults

from grid.caps import DirectoryCap, KnownCap, LitCap
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.metadata import seconds_in
from grid.directory.node import Look
from grid.directory.pack import Child
from grid.errors import GridError
from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.accounts import is_bucket_name
from grid.s3.bucket import Bucket
from grid.s3.conditions import DeleteConditions
from grid.s3.documents import XML, Element, document, element, flag, is_expressible, parse_document, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault, invalid_argument, not_implemented, s3_fault
from grid.s3.listing import Page, Query
from grid.s3.names import TAGS
from grid.s3.object_info import ListedObject
from grid.s3.objects import require_offered
from grid.s3.payload import Payload, read_long_document
from grid.s3.permissions import owner_element, require_owned
from grid.s3.removal import remove_bucket
from grid.s3.tagging import bucket_tags
from grid.s3.times import iso_time
from grid.values import frozen

T = TypeVar("T")
R = TypeVar("R")

MAX_PAGE = 1000
MAX_BUCKETS_PAGE = 10_000
MAX_DELETED = 1000
MAX_DELETED_ELEMENTS = 6 * MAX_DELETED + 100
DELETED_AT_ONCE = 100
SIZED_AT_ONCE = 32


async def list_buckets(call: Call) -> AnyAnswer:
    """List the access key's buckets, a page at a time."""
    account = call.account
    found = dict.fromkeys(account.buckets, account.created)
    if account.home is not None:
        for name, child in (await call.door.directories.read(account.home)).items():
            if isinstance(child.target, DirectoryCap) and is_bucket_name(name):
                times = (child.metadata or {}).get("tahoe")
                made = seconds_in(times.get("linkcrtime")) if isinstance(times, Mapping) else None
                found.setdefault(name, account.created if made is None else made)
    prefix, token = call.parameter("prefix") or "", call.parameter("continuation-token")
    after = _after(token) if token else ""
    given = call.parameter("max-buckets")
    most = call.number("max-buckets", MAX_BUCKETS_PAGE, MAX_BUCKETS_PAGE + 1, least=-(10**9))
    if given and not 0 < most <= MAX_BUCKETS_PAGE:
        message = f"Argument max-buckets must be an integer between 1 and {MAX_BUCKETS_PAGE}."
        raise invalid_argument("max-buckets", given, message)
    left = [name for name in sorted(found) if name.startswith(prefix) and name > after]
    page = left[:most]
    region = text("BucketRegion", call.claim.scope.region)
    buckets = (
        element("Bucket", text("Name", name), text("CreationDate", iso_time(found[name])), region) for name in page
    )
    said = [owner_element("Owner", call), element("Buckets", *buckets)]
    if len(page) < len(left):
        said.append(text("ContinuationToken", _token(page[-1])))
    if prefix:
        said.append(text("Prefix", prefix))
    return Answer(200, XML, document("ListAllMyBucketsResult", *said))


async def head_bucket(call: Call) -> AnyAnswer:
    """Whether the bucket exists."""
    await call.bucket()
    return Answer(200, "", headers=(("x-amz-bucket-region", call.claim.scope.region),))


async def get_location(call: Call) -> AnyAnswer:
    """The bucket's region: always us-east-1, which S3 writes as an empty value."""
    await call.bucket()
    return Answer(200, XML, document("LocationConstraint"))


async def get_versioning(call: Call) -> AnyAnswer:
    """The state of versioning: never enabled."""
    await call.bucket()
    return Answer(200, XML, document("VersioningConfiguration"))


async def create_bucket(call: Call) -> AnyAnswer:
    """Create a directory where the access key may create buckets."""
    account, name, door = call.account, call.bucket_name, call.door
    require_offered(call, None)
    if (call.header("x-amz-bucket-object-lock-enabled") or "false").lower() != "false":
        raise not_implemented("object locks")
    if not is_bucket_name(name):
        raise S3Fault("InvalidBucketName")
    if name in account.buckets:
        raise S3Fault("BucketAlreadyOwnedByYou")
    require_owned(call)
    body = await Payload(call, 2**16).read()
    tags = bucket_tags(parse_document(body, "CreateBucketConfiguration"), "Tags") if body else {}
    home = account.home
    if home is None or home.authority != "write":
        raise S3Fault("AccessDenied", "This access key may not create buckets.")
    if name in await door.directories.read(home):
        raise S3Fault("BucketAlreadyOwnedByYou")
    made = await door.services.store.create_directory(
        {TAGS: Child(target=LitCap(data=b""), metadata=tags)} if tags else None
    )

    def decide(look: Look, retrying: bool) -> Sequence[SetChild | RemoveChild]:
        here = look(name)
        if here is not None and not (retrying and here.target == made):
            raise S3Fault("BucketAlreadyOwnedByYou")
        return (SetChild(name, made, {}),)

    await door.directories.change(home, decide)
    return Answer(200, "", headers=(("Location", f"/{name}"), ("x-amz-bucket-arn", f"arn:aws:s3:::{name}")))


async def delete_bucket(call: Call) -> AnyAnswer:
    """Delete an empty bucket that the access key could have created."""
    bucket = await call.bucket()
    link = bucket.bucket_link
    if link is None or link.home.authority != "write":
        raise S3Fault("AccessDenied", "This access key may not remove that bucket.")
    await remove_bucket(link, call.door.lister, call.door.services.store.runtime.entropy.random_bytes(16).hex())
    return Answer(204, "")


@frozen
class Encoding:
    """How a listing encodes keys. is_url: percent-encoded, which can express any key."""

    is_url: bool

    @classmethod
    def of(cls, call: Call) -> Encoding:
        """As the request asks; InvalidArgument."""
        given = call.parameter("encoding-type")
        if given not in (None, "", "url"):
            raise S3Fault("InvalidArgument", "The only supported encoding-type is url.")
        return cls(given == "url")

    def text(self, name: str, value: str) -> str:
        """An element that contains a key."""
        return text(name, quote(value, safe="/*-_.~") if self.is_url else value)

    def plain(self, name: str, value: str) -> str:
        """An element that clients do not decode, encoded only if XML cannot express it."""
        return text(name, value) if is_expressible(value) else self.text(name, value)


async def list_objects(call: Call) -> AnyAnswer:
    """A page of keys in the format of version 1."""
    encoding, marker = Encoding.of(call), call.parameter("marker") or ""
    query, page = await _page(call, marker, bool(marker))
    said = [encoding.plain("Prefix", query.prefix), encoding.text("Marker", marker)]
    if page.next is not None:
        said.append(encoding.text("NextMarker", page.next))
    return await _listing(call, query, page, said, encoding)


async def list_objects_2(call: Call) -> AnyAnswer:
    """A page of keys in the format of version 2."""
    encoding, token = Encoding.of(call), call.parameter("continuation-token")
    start_after = call.parameter("start-after") or ""
    query, page = await _page(call, _after(token) if token else start_after, bool(token))
    said = [encoding.text("Prefix", query.prefix), text("KeyCount", len(page.entries))]
    if token is not None:
        said.append(text("ContinuationToken", token))
    if start_after:
        said.append(encoding.text("StartAfter", start_after))
    if page.next is not None:
        said.append(text("NextContinuationToken", _token(page.next)))
    return await _listing(call, query, page, said, encoding, with_owner=call.parameter("fetch-owner") == "true")


async def list_versions(call: Call) -> AnyAnswer:
    """A page of keys with versions: each key has the single version `null`."""
    encoding, marker = Encoding.of(call), call.parameter("key-marker") or ""
    query, page = await _page(call, marker, bool(marker))
    said = [
        encoding.text("Prefix", query.prefix),
        encoding.text("KeyMarker", marker),
        text("VersionIdMarker", call.parameter("version-id-marker") or ""),
    ]
    if page.next is not None:
        said += [encoding.text("NextKeyMarker", page.next), text("NextVersionIdMarker", "null")]
    return await _listing(call, query, page, said, encoding, versions=True)


def _token(after: str) -> str:
    return base64.urlsafe_b64encode(after.encode("utf-8")).decode()


def _after(token: str) -> str:
    try:
        after = base64.b64decode(token, b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        after = ""
    if not after:
        raise S3Fault("InvalidArgument", "This is not a continuation token of this gateway.")
    return after


async def _page(call: Call, after: str, is_continued: bool) -> tuple[Query, Page]:
    query = Query(
        prefix=call.parameter("prefix") or "",
        delimiter=call.parameter("delimiter") or "",
        after=after,
        most=call.number("max-keys", MAX_PAGE, MAX_PAGE),
        is_continued=is_continued,
    )
    door = call.door
    likely = door.recall_bucket(call.account, call.bucket_name)
    ahead = None if likely is None else door.lister.begin(likely.root, query, call.tasks)
    bucket = await call.bucket()
    if likely is not None and likely.root != bucket.root:
        ahead = None
    return query, await door.lister.page(bucket.root, query, ahead)


async def _listing(
    call: Call,
    query: Query,
    page: Page,
    said: list[str],
    encoding: Encoding,
    *,
    with_owner: bool = True,
    versions: bool = False,
) -> AnyAnswer:
    behind = owner_element("Owner", call) if with_owner else ""
    if versions:
        behind += text("VersionId", "null") + flag("IsLatest", True)
    name = "Version" if versions else "Contents"
    objects = [(encoding.text("Key", entry.key), found) for entry in page.entries if (found := entry.found)]
    sizes = await _sizes(call, [found for _, found in objects])
    contents = [_content(name, key, found, size, behind) for (key, found), size in zip(objects, sizes, strict=True)]
    prefixes = [
        element("CommonPrefixes", encoding.text("Prefix", entry.key)) for entry in page.entries if entry.found is None
    ]
    body = document(
        "ListVersionsResult" if versions else "ListBucketResult",
        text("Name", call.bucket_name),
        *said,
        text("MaxKeys", query.most),
        encoding.text("Delimiter", query.delimiter) if query.delimiter else "",
        text("EncodingType", "url") if encoding.is_url else "",
        flag("IsTruncated", page.next is not None),
        *contents,
        *prefixes,
    )
    return Answer(200, XML, body)


def _content(name: str, key: str, found: ListedObject, size: int, behind: str) -> str:
    """The element of an object. Nothing of it but the key, which is an element already, needs to be escaped.

    A page has a thousand of these, so they are not put together from elements.
    """
    algorithms = "".join([f"<ChecksumAlgorithm>{each.upper()}</ChecksumAlgorithm>" for each in found.algorithms])
    if algorithms:
        algorithms += f"<ChecksumType>{'COMPOSITE' if found.is_composite else 'FULL_OBJECT'}</ChecksumType>"
    return (
        f'<{name}>{key}<LastModified>{iso_time(found.modified)}</LastModified><ETag>"{found.etag}"</ETag>{algorithms}'
        f"<Size>{size}</Size><StorageClass>STANDARD</StorageClass>{behind}</{name}>"
    )


async def _sizes(call: Call, objects: Sequence[ListedObject]) -> list[int]:
    """The size of each; servers are asked for those of mutable files, of several at a time."""
    mutable = {number: found.file for number, found in enumerate(objects) if found.file is not None}
    asked = await _side_by_side(partial(_asked_size, call), list(mutable.values()), SIZED_AT_ONCE)
    known = dict(zip(mutable, asked, strict=True))
    return [known.get(number, found.size or 0) for number, found in enumerate(objects)]


async def _asked_size(call: Call, file: KnownCap) -> int:
    try:
        return await call.door.services.store.size(file)
    except GridError:
        return 0  # A lost file is listed anyway, so that it can be deleted.


@frozen
class _Deletion:
    """An object to delete."""

    key: str
    version: str
    conditions: DeleteConditions


def _deletions(root: Element) -> tuple[list[_Deletion], bool]:
    """What a document asks to delete, and whether the answer names only refusals; MalformedXML."""
    wanted = [
        _Deletion(
            key=each.get("Key") or "",
            version=each.get("VersionId") or "",
            conditions=DeleteConditions(
                match=each.get("ETag"), modified=each.get("LastModifiedTime"), size=each.get("Size")
            ),
        )
        for each in root.all("Object")
    ]
    if len(wanted) > MAX_DELETED or not all(each.key for each in wanted):
        raise S3Fault("MalformedXML")
    return wanted, (root.get("Quiet") or "").strip().lower() == "true"


async def delete_objects(call: Call) -> AnyAnswer:
    """Delete up to a thousand objects."""
    bucket = await call.bucket()
    bucket.require_writable()
    wanted, is_quiet = await read_long_document(call, "Delete", MAX_DELETED_ELEMENTS, _deletions)
    refused = await _side_by_side(partial(_remove, bucket), wanted, DELETED_AT_ONCE)
    said = []
    for each, fault in zip(wanted, refused, strict=True):
        if fault is not None:
            said.append(
                element("Error", text("Key", each.key), text("Code", fault.code), text("Message", fault.message))
            )
        elif not is_quiet:
            said.append(element("Deleted", text("Key", each.key)))
    return Answer(200, XML, document("DeleteResult", *said))


async def _remove(bucket: Bucket, wanted: _Deletion) -> S3Fault | None:
    try:
        if wanted.version not in ("", "null"):
            raise not_implemented("versions of objects")
        await bucket.remove(wanted.key, wanted.conditions.require)
    except GridError as error:
        return s3_fault(error)
    return None


async def _side_by_side(work: Callable[[T], Coroutine[Any, Any, R]], items: Sequence[T], most: int) -> list[R]:
    """The results of the work on each item, `most` at a time; raises the first error."""
    turns = DeferredSemaphore(most)
    try:
        return list(await gatherResults([turns.run(work, each) for each in items], consumeErrors=True))
    except FirstError as error:
        error.subFailure.raiseException()
        raise
