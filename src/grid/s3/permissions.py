"""Access control lists and ownership as the door has them: an access key owns its buckets, and nobody else has a grant.

They can be read, because clients look, and set to what they are, because clients do that too; nothing can be changed.
"""

from __future__ import annotations

from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.bucket import Bucket
from grid.s3.documents import XML, document, element, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault, invalid_argument, not_implemented
from grid.s3.payload import Payload, read_document

PRIVATE = frozenset({"private", "bucket-owner-full-control", "bucket-owner-read"})
"""The canned lists that give nobody else a grant."""

CANNED = PRIVATE | {"public-read", "public-read-write", "authenticated-read", "aws-exec-read", "log-delivery-write"}
"""All canned lists of S3."""

MAX_PERMISSIONS_DOCUMENT = 2**16

_OWNERSHIPS = ("BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter")
_OTHER_OWNERS = "other owners of objects than the access key"
_GRANTEE = '<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser">'


async def get_bucket_acl(call: Call) -> AnyAnswer:
    """The access control list of a bucket."""
    return _list(call, await call.bucket())


async def get_object_acl(call: Call) -> AnyAnswer:
    """The access control list of an object; NoSuchKey."""
    bucket = await call.bucket()
    if await bucket.find(call.key) is None:
        raise S3Fault("NoSuchKey")
    return _list(call, bucket)


async def put_bucket_acl(call: Call) -> AnyAnswer:
    """Accept a canned list that gives nobody else a grant, for a bucket."""
    await _put_acl(call, await call.bucket())
    return Answer(200, "")


async def put_object_acl(call: Call) -> AnyAnswer:
    """Accept a canned list that gives nobody else a grant, for an object; NoSuchKey."""
    bucket = await call.bucket()
    await _put_acl(call, bucket)
    if await bucket.find(call.key) is None:
        raise S3Fault("NoSuchKey")
    return Answer(200, "")


async def _put_acl(call: Call, bucket: Bucket) -> None:
    bucket.require_writable()
    require_private(call)
    if await Payload(call, MAX_PERMISSIONS_DOCUMENT).read() or call.header("x-amz-acl") is None:
        raise _no_lists()


async def get_ownership(call: Call) -> AnyAnswer:
    """Who owns the objects of a bucket: its owner."""
    await call.bucket()
    rule = element("Rule", text("ObjectOwnership", "BucketOwnerEnforced"))
    return Answer(200, XML, document("OwnershipControls", rule))


async def put_ownership(call: Call) -> AnyAnswer:
    """Accept that a bucket's owner owns its objects. MalformedXML; NotImplemented for others."""
    root = await read_document(call, MAX_PERMISSIONS_DOCUMENT, "OwnershipControls")
    (await call.bucket()).require_writable()
    named = [rule.get("ObjectOwnership") for rule in root.all("Rule")]
    if len(named) != 1 or named[0] not in _OWNERSHIPS:
        raise S3Fault("MalformedXML")
    if named[0] != "BucketOwnerEnforced":
        raise not_implemented(_OTHER_OWNERS)
    return Answer(200, "")


def _list(call: Call, bucket: Bucket) -> AnyAnswer:
    key = call.account.access_key
    grantee = f"{_GRANTEE}{text('ID', key)}{text('DisplayName', key)}</Grantee>"
    permission = text("Permission", "FULL_CONTROL" if bucket.root.authority == "write" else "READ")
    grants = element("AccessControlList", element("Grant", grantee, permission))
    return Answer(200, XML, document("AccessControlPolicy", owner_element("Owner", call), grants))


def owner_element(name: str, call: Call) -> str:
    """An element that names an owner: the requesting access key."""
    return element(name, text("ID", call.account.access_key), text("DisplayName", call.account.access_key))


def require_owned(call: Call) -> None:
    """Raise S3Fault if the request wants other owners of objects than the access key."""
    given = call.header("x-amz-object-ownership") or "BucketOwnerEnforced"
    if given not in _OWNERSHIPS:
        raise S3Fault(
            "InvalidArgument",
            f"Invalid x-amz-object-ownership header: {given}",
            details=(("ArgumentName", "x-amz-object-ownership"),),
        )
    if given != "BucketOwnerEnforced":
        raise not_implemented(_OTHER_OWNERS)


def require_private(call: Call) -> None:
    """Raise S3Fault if the request gives somebody else a grant, or names a canned list that does not exist."""
    given = call.header("x-amz-acl") or "private"
    if given not in CANNED:
        raise invalid_argument("x-amz-acl", given, "")
    if given not in PRIVATE or any(name.startswith("x-amz-grant-") for name, _ in call.head.headers):
        raise _no_lists()


def _no_lists() -> S3Fault:
    return not_implemented("access control lists: access keys determine permissions")
