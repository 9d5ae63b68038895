"""Errors as clients of the S3 door see them: S3's code, its status, and a line of text. Pure.

Owns the table of codes and the mapping from the engines' errors. A message never contains a capability or a secret.
"""

from __future__ import annotations

from grid.errors import GridError, NotWriteableError
from grid.gateway.faults import HttpFault, fault_of

Pairs = tuple[tuple[str, str], ...]

_CODES: dict[str, tuple[int, str]] = {
    "AccessDenied": (403, "Access Denied."),
    "AccessForbidden": (403, "CORSResponse: This CORS request is not allowed."),
    "AuthorizationHeaderMalformed": (400, "The Authorization header is malformed."),
    "AuthorizationQueryParametersError": (400, "The parameters of the presigned URL are malformed."),
    "BadDigest": (400, "The Content-MD5 you specified did not match what we received."),
    "BadRequest": (400, "The request is not valid."),
    "BucketAlreadyOwnedByYou": (
        409,
        "Your previous request to create the named bucket succeeded and you already own it.",
    ),
    "BucketNotEmpty": (409, "The bucket you tried to delete is not empty."),
    "EntityTooLarge": (400, "Your proposed upload exceeds the maximum allowed object size."),
    "EntityTooSmall": (400, "Your proposed upload is smaller than the minimum allowed size"),
    "ExpiredToken": (400, "The token has expired."),
    "IncompleteBody": (400, "The request body terminated unexpectedly"),
    "InternalError": (500, "Internal error; see the log of the node."),
    "InsufficientStorage": (507, "A disk is full."),
    "InvalidAccessKeyId": (403, "The AWS Access Key Id you provided does not exist in our records."),
    "InvalidArgument": (400, "A parameter of the request is not valid."),
    "InvalidBucketName": (400, "The specified bucket is not valid."),
    "InvalidDigest": (400, "The Content-Md5 you specified is not valid."),
    "InvalidPart": (
        400,
        (
            "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified"
            " entity tag may not match the part's entity tag."
        ),
    ),
    "InvalidPartNumber": (416, "The requested partnumber is not satisfiable."),
    "InvalidPartOrder": (400, "The list of parts was not in ascending order. Parts must be ordered by part number."),
    "InvalidRange": (416, "The requested range is not satisfiable"),
    "InvalidRedirectLocation": (
        400,
        "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
    ),
    "InvalidRequest": (400, "The request is not valid."),
    "InvalidStorageClass": (400, "The only supported storage class is STANDARD."),
    "InvalidTag": (400, "A tag is not valid."),
    "InvalidToken": (400, "The provided token is malformed or otherwise invalid."),
    "InvalidURI": (400, "The specified URI couldn't be parsed."),
    "KeyTooLongError": (400, "Your key is too long."),
    "MalformedTrailerError": (
        400,
        ("The request contained trailing data that was not well-formed or did not conform to our published schema."),
    ),
    "MalformedXML": (400, "The XML you provided was not well-formed or did not validate against our published schema."),
    "MetadataTooLarge": (400, "Your metadata headers exceed the maximum allowed metadata size"),
    "MethodNotAllowed": (405, "The specified method is not allowed against this resource."),
    "MissingContentLength": (411, "You must provide the Content-Length HTTP header."),
    "NoSuchBucket": (404, "The specified bucket does not exist."),
    "NoSuchCORSConfiguration": (404, "The CORS configuration does not exist"),
    "NoSuchKey": (404, "The specified key does not exist."),
    "NoSuchTagSet": (404, "The TagSet does not exist."),
    "NoSuchUpload": (
        404,
        (
            "The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been"
            " aborted or completed."
        ),
    ),
    "NotImplemented": (501, "Grid does not support that."),
    "OwnershipControlsNotFoundError": (404, "The bucket ownership controls were not found."),
    "PreconditionFailed": (412, "At least one of the pre-conditions you specified did not hold."),
    "ConditionalRequestConflict": (409, "Another change was made at the same time; try again."),
    "RequestTimeTooSkewed": (403, "The difference between the request time and the current time is too large."),
    "RequestTimeout": (400, "The body arrives too slowly."),
    "ServiceUnavailable": (503, "The grid cannot do that now; try again later."),
    "SignatureDoesNotMatch": (
        403,
        (
            "The request signature we calculated does not match the signature you provided. Check your key and signing"
            " method."
        ),
    ),
    "SlowDown": (503, "Too many requests are in progress; try again later."),
    "XAmzContentSHA256Mismatch": (400, "The provided 'x-amz-content-sha256' header does not match what was computed."),
}
"""Status and usual message by code. Amazon's sentences are part of the interface: programs look for them."""


class S3Fault(HttpFault):
    """A refused request. code: S3's name for the reason. details: further elements of the answer's document."""

    def __init__(self, code: str, message: str = "", *, details: Pairs = (), headers: Pairs = ()) -> None:
        self.status, usual = _CODES[code]
        super().__init__(message or usual, headers=headers)
        self.code = code
        self.details = details


def invalid_argument(name: str, value: str, message: str) -> S3Fault:
    """The fault for an argument of a request, which the answer names."""
    return S3Fault("InvalidArgument", message, details=(("ArgumentName", name), ("ArgumentValue", value)))


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
