"""Access control lists and ownership as the door has them: an access key owns its buckets, and nobody else has a grant.

They can be read, because clients look; nothing can be changed.
"""

from __future__ import annotations

from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.bucket import Bucket
from grid.s3.documents import XML, document, element, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault, not_implemented

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


async def get_ownership(call: Call) -> AnyAnswer:
    """Who owns the objects of a bucket: its owner."""
    await call.bucket()
    rule = element("Rule", text("ObjectOwnership", "BucketOwnerEnforced"))
    return Answer(200, XML, document("OwnershipControls", rule))


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
    if given not in ("BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"):
        raise S3Fault(
            "InvalidArgument",
            f"Invalid x-amz-object-ownership header: {given}",
            details=(("ArgumentName", "x-amz-object-ownership"),),
        )
    if given != "BucketOwnerEnforced":
        raise not_implemented("other owners of objects than the access key")
