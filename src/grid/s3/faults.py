"""Errors as clients of the S3 door see them: S3's code, its status, and a line of text. Pure.

Owns the table of codes and the mapping from the engines' errors. A message never contains a capability or a secret.
"""

from __future__ import annotations

from grid.errors import GridError, NotWriteableError
from grid.gateway.faults import HttpFault, fault_of

_CODES: dict[str, tuple[int, str]] = {
    "AccessDenied": (403, "This access key does not permit that."),
    "AuthorizationHeaderMalformed": (400, "The Authorization header is malformed."),
    "AuthorizationQueryParametersError": (400, "The parameters of the presigned URL are malformed."),
    "BadDigest": (400, "The body does not match the checksum in the request."),
    "BucketAlreadyOwnedByYou": (409, "You already own this bucket."),
    "BucketNotEmpty": (409, "The bucket is not empty."),
    "EntityTooLarge": (400, "The object is larger than one request may store."),
    "EntityTooSmall": (400, "Each part except the last must have at least 5 MiB."),
    "ExpiredToken": (400, "The token has expired."),
    "IncompleteBody": (400, "The body is shorter than the request announced."),
    "InternalError": (500, "Internal error; see the log of the node."),
    "InsufficientStorage": (507, "A disk is full."),
    "InvalidAccessKeyId": (403, "There is no such access key."),
    "InvalidArgument": (400, "A parameter of the request is not valid."),
    "InvalidBucketName": (400, "This is not a valid bucket name."),
    "InvalidDigest": (400, "The checksum in the request is malformed."),
    "InvalidPart": (400, "A part is missing, or its ETag does not match."),
    "InvalidPartNumber": (416, "The object has no such part."),
    "InvalidPartOrder": (400, "The parts are not in ascending order."),
    "InvalidRange": (416, "The range begins after the end of the object."),
    "InvalidRequest": (400, "The request is not valid."),
    "InvalidStorageClass": (400, "The only supported storage class is STANDARD."),
    "InvalidTag": (400, "A tag is not valid."),
    "InvalidURI": (400, "The address is not valid."),
    "KeyTooLongError": (400, "A key must not be longer than 1024 bytes."),
    "MalformedXML": (400, "The body is not valid XML for this operation."),
    "MetadataTooLarge": (400, "The user's metadata must not exceed 2 KiB."),
    "MethodNotAllowed": (405, "That method is not allowed here."),
    "MissingContentLength": (411, "The request must state the length of its body."),
    "NoSuchBucket": (404, "This access key has no such bucket."),
    "NoSuchKey": (404, "There is no such object."),
    "NoSuchUpload": (404, "There is no such upload: it was completed or aborted, or never begun."),
    "NotImplemented": (501, "Grid does not support that."),
    "PreconditionFailed": (412, "A condition of the request does not hold."),
    "ConditionalRequestConflict": (409, "Another change was made at the same time; try again."),
    "RequestTimeTooSkewed": (403, "The clocks of the client and the node differ by more than 15 minutes."),
    "RequestTimeout": (400, "The body arrives too slowly."),
    "ServiceUnavailable": (503, "The grid cannot do that now; try again later."),
    "SignatureDoesNotMatch": (403, "The signature does not match this request and access key."),
    "SlowDown": (503, "Too many requests are in progress; try again later."),
    "XAmzContentSHA256Mismatch": (400, "The body does not match x-amz-content-sha256."),
}


class S3Fault(HttpFault):
    """A refused request. code: S3's name for the reason."""

    def __init__(self, code: str, message: str = "", *, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.status, usual = _CODES[code]
        super().__init__(message or usual, headers=headers)
        self.code = code


def not_implemented(what: str) -> S3Fault:
    """The fault for a feature of S3 that this door does not have."""
    return S3Fault("NotImplemented", f"Grid does not support {what}.")


_BY_STATUS = {
    400: "InvalidRequest",
    403: "AccessDenied",
    404: "NoSuchKey",
    408: "RequestTimeout",
    409: "ConditionalRequestConflict",
    413: "EntityTooLarge",
    503: "ServiceUnavailable",
    507: "InsufficientStorage",
}


def s3_fault(error: GridError) -> S3Fault:
    """Translate an error of the engines into the fault that a client sees."""
    if isinstance(error, S3Fault):
        return error
    if isinstance(error, NotWriteableError):
        return S3Fault("AccessDenied")
    fault = fault_of(error)
    code = _BY_STATUS.get(fault.status, "InternalError")
    return S3Fault(code, "" if code == "InternalError" and fault.status == 500 else str(fault))
