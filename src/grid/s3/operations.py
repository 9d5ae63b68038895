"""Selects the operation of a request by method, bucket, key and parameters.

Owns the table of supported operations. Everything else of S3 gets NotImplemented, so no client mistakes the answer to
one request for the answer to another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from grid.gateway.http.answers import AnyAnswer
from grid.s3 import (
    bucket_operations,
    copying,
    objects,
    permissions,
    sharing,
    tagging,
    upload_listings,
    upload_operations,
)
from grid.s3.door import Call
from grid.s3.faults import S3Fault, not_implemented
from grid.s3.signature import RequestHead
from grid.values import frozen

Level = Literal["service", "bucket", "object"]

CHOOSING = frozenset(
    {
        "accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption", "intelligent-tiering",
        "inventory", "legal-hold", "lifecycle", "location", "logging", "metadataConfiguration", "metadataTable",
        "metrics", "notification", "object-lock", "ownershipControls", "partNumber", "policy", "policyStatus",
        "publicAccessBlock", "rename", "renameObject", "replication", "requestPayment", "restore", "retention", "select",
        "select-type", "session", "tagging", "torrent", "uploadId", "uploads", "versioning", "versions", "website",
    }
)  # fmt: skip
"""Parameters that select an operation."""


@frozen
class Operation:
    """An operation. name: S3's, also used in metrics."""

    name: str
    run: Callable[[Call], Awaitable[AnyAnswer]]


OPERATIONS: dict[tuple[Level, str, frozenset[str]], Operation] = {}
"""The supported operations by what a request concerns, its method, and the parameters that select them."""


def _add(level: Level, method: str, choosing: str, name: str, run: Callable[[Call], Awaitable[AnyAnswer]]) -> None:
    OPERATIONS[level, method, frozenset(choosing.split())] = Operation(name, run)


_add("service", "GET", "", "ListBuckets", bucket_operations.list_buckets)
_add("bucket", "PUT", "", "CreateBucket", bucket_operations.create_bucket)
_add("bucket", "DELETE", "", "DeleteBucket", bucket_operations.delete_bucket)
_add("bucket", "HEAD", "", "HeadBucket", bucket_operations.head_bucket)
_add("bucket", "GET", "", "ListObjects", bucket_operations.list_objects)
_add("bucket", "GET", "location", "GetBucketLocation", bucket_operations.get_location)
_add("bucket", "GET", "versioning", "GetBucketVersioning", bucket_operations.get_versioning)
_add("bucket", "GET", "acl", "GetBucketAcl", permissions.get_bucket_acl)
_add("bucket", "GET", "ownershipControls", "GetBucketOwnershipControls", permissions.get_ownership)
_add("bucket", "PUT", "acl", "PutBucketAcl", permissions.put_bucket_acl)
_add("bucket", "PUT", "ownershipControls", "PutBucketOwnershipControls", permissions.put_ownership)
_add("bucket", "DELETE", "ownershipControls", "DeleteBucketOwnershipControls", permissions.delete_ownership)
_add("object", "GET", "acl", "GetObjectAcl", permissions.get_object_acl)
_add("object", "PUT", "acl", "PutObjectAcl", permissions.put_object_acl)
_add("bucket", "GET", "versions", "ListObjectVersions", bucket_operations.list_versions)
_add("bucket", "GET", "cors", "GetBucketCors", sharing.get_sharing)
_add("bucket", "PUT", "cors", "PutBucketCors", sharing.put_sharing)
_add("bucket", "DELETE", "cors", "DeleteBucketCors", sharing.delete_sharing)
_add("bucket", "GET", "tagging", "GetBucketTagging", tagging.get_bucket_tagging)
_add("bucket", "PUT", "tagging", "PutBucketTagging", tagging.put_bucket_tagging)
_add("bucket", "DELETE", "tagging", "DeleteBucketTagging", tagging.delete_bucket_tagging)
_add("bucket", "POST", "delete", "DeleteObjects", bucket_operations.delete_objects)
_add("object", "PUT", "", "PutObject", objects.put_object)
_add("object", "GET", "", "GetObject", objects.get_object)
_add("object", "HEAD", "", "HeadObject", objects.get_object)
_add("object", "GET", "partNumber", "GetObject", objects.get_object)
_add("object", "HEAD", "partNumber", "HeadObject", objects.get_object)
_add("object", "GET", "attributes", "GetObjectAttributes", objects.get_attributes)
_add("object", "DELETE", "", "DeleteObject", objects.delete_object)
_add("object", "GET", "tagging", "GetObjectTagging", tagging.get_tagging)
_add("object", "PUT", "tagging", "PutObjectTagging", tagging.put_tagging)
_add("object", "DELETE", "tagging", "DeleteObjectTagging", tagging.delete_tagging)
_add("object", "POST", "uploads", "CreateMultipartUpload", upload_operations.create_upload)
_add("object", "PUT", "partNumber uploadId", "UploadPart", upload_operations.put_part)
_add("object", "POST", "uploadId", "CompleteMultipartUpload", upload_operations.complete_upload)
_add("object", "DELETE", "uploadId", "AbortMultipartUpload", upload_operations.abort_upload)
_add("object", "GET", "uploadId", "ListParts", upload_listings.list_parts)
_add("bucket", "GET", "uploads", "ListMultipartUploads", upload_listings.list_uploads)

PUBLIC_OPERATIONS = frozenset(
    {"GetBucketLocation", "GetObject", "HeadBucket", "HeadObject", "ListObjects", "ListObjectsV2"}
)
"""What a request that is not signed may do with a public bucket."""

_LIST_2 = Operation("ListObjectsV2", bucket_operations.list_objects_2)
COPIES = {
    "PutObject": Operation("CopyObject", copying.copy_object),
    "UploadPart": Operation("UploadPartCopy", upload_operations.copy_part),
}
"""Operations that take the place of others in requests that name a source."""


def choose_operation(head: RequestHead, level: Level) -> Operation:
    """Select the operation; MethodNotAllowed. One that is not supported answers NotImplemented."""
    choosing = frozenset(name for name, _ in head.query) & CHOOSING
    found = OPERATIONS.get((level, head.method, choosing))
    if found is None:
        if head.method not in ("GET", "HEAD", "PUT", "POST", "DELETE"):
            raise S3Fault("MethodNotAllowed")
        named = f"{head.method} with {', '.join(sorted(choosing))}" if choosing else f"{head.method} of a {level}"
        return _unsupported(named, level)
    version = head.parameter("versionId")
    if version not in (None, "null") and level == "object":
        return _unsupported("versions of objects", level)
    if found.name == "ListObjects" and head.parameter("list-type") == "2":
        return _LIST_2
    if head.header("x-amz-copy-source") is not None:
        return COPIES.get(found.name, found)
    return found


def _unsupported(named: str, level: Level) -> Operation:
    """The operation that refuses a request: a bucket that does not exist is the better reason."""

    async def refuse(call: Call) -> AnyAnswer:
        if level != "service":
            await call.bucket()
        raise not_implemented(named)

    return Operation("Unsupported", refuse)
