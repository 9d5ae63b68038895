"""Access control lists and ownership as the door has them: an access key owns its buckets, and everybody reads public ones.

They can be read, because clients look, and set to what they are, because clients do that too. The only thing that can be
changed is whether a bucket has a setting for the owners of its objects; they belong to the bucket's owner either way.
"""

from __future__ import annotations

from grid.caps import DirectoryCap
from grid.directory.metadata import Metadata
from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.bucket import Bucket
from grid.s3.documents import XML, document, element, text
from grid.s3.door import Call
from grid.s3.faults import S3Fault, invalid_argument, not_implemented
from grid.s3.names import OWNERSHIP
from grid.s3.object_info import FIELD
from grid.s3.payload import Payload, read_document

OWNERS = frozenset({"bucket-owner-full-control", "bucket-owner-read"})
"""The canned lists that concern only the owner of the bucket, who has every grant anyway."""

CANNED = OWNERS | {
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "log-delivery-write",
}
"""All canned lists of S3."""

MAX_PERMISSIONS_DOCUMENT = 2**16

_OWNERSHIPS = ("BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter")
_OTHER_OWNERS = "other owners of objects than the access key"
_NO_OWNERSHIP: Metadata = {FIELD: "none"}
"""The metadata of `OWNERSHIP` in a bucket whose setting was deleted."""

_SCHEMA = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
_GRANTEE = f'<Grantee {_SCHEMA} xsi:type="CanonicalUser">'
_EVERYBODY = f'<Grantee {_SCHEMA} xsi:type="Group"><URI>http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee>'


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
    """Accept the canned list that a bucket has."""
    await _put_acl(call, await call.bucket())
    return Answer(200, "")


async def put_object_acl(call: Call) -> AnyAnswer:
    """Accept the canned list that an object has; NoSuchKey."""
    bucket = await call.bucket()
    await _put_acl(call, bucket)
    if await bucket.find(call.key) is None:
        raise S3Fault("NoSuchKey")
    return Answer(200, "")


async def _put_acl(call: Call, bucket: Bucket) -> None:
    bucket.require_writable()
    require_same_list(call, bucket.root)
    if await Payload(call, MAX_PERMISSIONS_DOCUMENT).read() or call.header("x-amz-acl") is None:
        raise _no_lists()


async def get_ownership(call: Call) -> AnyAnswer:
    """Who owns the objects of a bucket: its owner. OwnershipControlsNotFoundError if the setting was deleted."""
    if (await (await call.bucket()).setting(OWNERSHIP)).get(FIELD) == _NO_OWNERSHIP[FIELD]:
        raise S3Fault("OwnershipControlsNotFoundError")
    rule = element("Rule", text("ObjectOwnership", "BucketOwnerEnforced"))
    return Answer(200, XML, document("OwnershipControls", rule))


async def put_ownership(call: Call) -> AnyAnswer:
    """Accept that a bucket's owner owns its objects. MalformedXML; NotImplemented for others."""
    root = await read_document(call, MAX_PERMISSIONS_DOCUMENT, "OwnershipControls")
    bucket = await call.bucket()
    bucket.require_writable()
    named = [rule.get("ObjectOwnership") for rule in root.all("Rule")]
    if len(named) != 1 or named[0] not in _OWNERSHIPS:
        raise S3Fault("MalformedXML")
    if named[0] != "BucketOwnerEnforced":
        raise not_implemented(_OTHER_OWNERS)
    await bucket.set(OWNERSHIP, {})
    return Answer(200, "")


async def delete_ownership(call: Call) -> AnyAnswer:
    """Delete the setting, durably. Objects still belong to the owner of their bucket."""
    await (await call.bucket()).set(OWNERSHIP, _NO_OWNERSHIP)
    return Answer(204, "")


def _list(call: Call, bucket: Bucket) -> AnyAnswer:
    key = call.account.access_key
    grantee = f"{_GRANTEE}{text('ID', key)}{text('DisplayName', key)}</Grantee>"
    permission = text("Permission", "FULL_CONTROL" if bucket.root.authority == "write" else "READ")
    grants = [element("Grant", grantee, permission)]
    if call.door.is_public(bucket.root):
        grants.append(element("Grant", _EVERYBODY, text("Permission", "READ")))
    shown = element("AccessControlList", *grants)
    return Answer(200, XML, document("AccessControlPolicy", owner_element("Owner", call), shown))


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


def require_same_list(call: Call, root: DirectoryCap | None) -> None:
    """Raise S3Fault if the request names another access control list than the one that its bucket and objects have.

    root: the bucket's directory; None for a bucket that does not exist yet.
    """
    given = call.header("x-amz-acl")
    if given is not None and given not in CANNED:
        raise invalid_argument("x-amz-acl", given, "")
    if any(name.startswith("x-amz-grant-") for name, _ in call.head.headers):
        raise _no_lists()
    if given is None or given in OWNERS:
        return
    is_public = root is not None and call.door.is_public(root)
    if given == "private" and is_public:
        raise not_implemented("private objects in a public bucket: `grid s3 public remove` makes the bucket private")
    if given == "public-read" and not is_public:
        raise not_implemented("making anything public over S3: use `grid s3 public add` for the bucket")
    if given not in ("private", "public-read"):
        raise _no_lists()


def _no_lists() -> S3Fault:
    return not_implemented("access control lists: access keys determine permissions")
