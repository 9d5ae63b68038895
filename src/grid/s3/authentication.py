"""Authenticates requests: the claim in a header or presigned URL, and its proof. Pure.

Owns how far clocks may differ, how long a presigned URL lasts, and what must be signed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

from grid.s3.faults import S3Fault, invalid_argument
from grid.s3.signature import ALGORITHM, LISTS, UNSIGNED, RequestHead, Scope, is_equal, request_text, sign, signing_key
from grid.s3.times import iso_time
from grid.values import field, frozen

MAX_SKEW_S = 15 * 60
MAX_EXPIRY_S = 7 * 24 * 3600
MAX_SIGNED = 100

_MOMENT = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_DAY = re.compile(r"[0-9]{8}")
_SIGNATURE = re.compile(r"[0-9a-f]{64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_MALFORMED = "The authorization header is malformed; "
_NO_DATE = "AWS authentication requires a valid Date or x-amz-date header."
_ONLY_VERSION_4 = "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256."
_NEEDED = (
    "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date,"
    " X-Amz-SignedHeaders, and X-Amz-Expires parameters."
)
_PAYLOADS = (
    "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER,"
    " STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER,"
    " STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER or a valid sha256"
    " value."
)
_SINGLE = frozenset(
    {
        "authorization",
        "content-disposition",
        "content-md5",
        "content-type",
        "date",
        "expires",
        "if-modified-since",
        "if-range",
        "if-unmodified-since",
        "origin",
        "range",
    }
)
"""Headers that have one value, and that operations read. So do all of Amazon's that are no lists."""

_SIGNING = frozenset({"X-Amz-Algorithm", "X-Amz-Signature", "AWSAccessKeyId", "Signature"})

STREAMING = frozenset(
    {
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
        "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    }
)
"""Payload hashes that announce aws-chunked bodies, with or without signed chunks."""


@frozen(kw_only=True)
class Claim:
    """What a request says about its sender. moment: the time as signed. expires_s: of a presigned URL.

    payload: the hash of the body, or a placeholder.
    """

    access_key: str
    scope: Scope
    moment: str
    signed: frozenset[str]
    signature: str = field(repr=False)
    payload: str
    expires_s: int | None = None


ANONYMOUS = Claim(
    access_key="",
    scope=Scope(day="", region="us-east-1"),
    moment="",
    signed=frozenset(),
    signature="",
    payload=UNSIGNED,
)
"""Stands for the claim of a request that is not signed."""


def is_signed(head: RequestHead) -> bool:
    """Whether a request claims a sender, validly or not."""
    return head.header("authorization") is not None or any(name in _SIGNING for name, _ in head.query)


def parse_claim(head: RequestHead) -> Claim:
    """Parse a request's claim; S3Fault if it has none or it is malformed."""
    authorization = head.header("authorization")
    if head.parameter("X-Amz-Signature") is not None or head.parameter("X-Amz-Algorithm") is not None:
        if authorization is not None:
            raise S3Fault(
                "InvalidArgument", "A request must be signed either in its header or in its URL, not in both."
            )
        return _presigned(head)
    if head.parameter("AWSAccessKeyId") is not None:
        raise S3Fault("InvalidRequest", _ONLY_VERSION_4)
    if not authorization:
        raise S3Fault("AccessDenied", "The request is not signed.")
    return _signed(head, authorization)


def verify_claim(head: RequestHead, claim: Claim, secret: str, now: float) -> bytes:
    """Return the signing key if the signature is valid and in time; S3Fault otherwise. now: Unix time."""
    _require_in_time(claim, now)
    key = signing_key(secret, claim.scope)
    right = sign(key, request_text(head, claim.moment, claim.scope, claim.signed, claim.payload))
    if not is_equal(right, claim.signature):
        raise S3Fault("SignatureDoesNotMatch")
    return key


def _require_in_time(claim: Claim, now: float) -> None:
    """Raise S3Fault unless the request is neither too old nor of the future."""
    moment = _unix_time(claim.moment)
    if claim.expires_s is None:
        if abs(now - moment) > MAX_SKEW_S:
            said = (("RequestTime", claim.moment), ("ServerTime", iso_time(now)))
            limit = ("MaxAllowedSkewMilliseconds", str(1000 * MAX_SKEW_S))
            raise S3Fault("RequestTimeTooSkewed", details=(*said, limit))
    elif now - moment < -MAX_SKEW_S:
        raise S3Fault("AccessDenied", "Request is not valid yet.")
    elif now - moment > claim.expires_s:
        expires = ("Expires", iso_time(moment + claim.expires_s))
        details = (("ServerTime", iso_time(now)), ("X-Amz-Expires", str(claim.expires_s)), expires)
        raise S3Fault("AccessDenied", "Request has expired.", details=details)


def _signed(head: RequestHead, authorization: str) -> Claim:
    scheme, space, rest = authorization.strip().partition(" ")
    if not space:
        message = "Authorization header is invalid -- one and only one ' ' (space) required."
        raise invalid_argument("Authorization", scheme, message)
    if scheme != ALGORITHM:
        raise invalid_argument("Authorization", scheme, "Unsupported Authorization Type")
    payload = head.header("x-amz-content-sha256")
    if payload is None:
        raise S3Fault("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    fields = _components(rest)
    if payload not in STREAMING and payload != UNSIGNED and not _HASH.fullmatch(payload):
        raise invalid_argument("x-amz-content-sha256", payload, _PAYLOADS)
    moment = head.header("x-amz-date")
    if moment is None:
        moment = _moment_of_date(head.header("date"))
    if not _MOMENT.fullmatch(moment):
        raise S3Fault("AccessDenied", _NO_DATE)
    return _claim(head, _Refusals("AuthorizationHeaderMalformed", _MALFORMED), fields, moment, payload, None)


def _components(rest: str) -> dict[str, str]:
    """The components of an Authorization header by name; AuthorizationHeaderMalformed."""
    code, parts = "AuthorizationHeaderMalformed", [part.strip() for part in rest.split(",")]
    if len(parts) != 3:
        needed = "the authorization header requires three components: Credential, SignedHeaders, and Signature."
        raise S3Fault(code, _MALFORMED + needed)
    for part in parts:
        if "=" not in part:
            raise S3Fault(code, f'{_MALFORMED}the authorization component "{part}" is malformed.')
    fields = dict(part.partition("=")[::2] for part in parts)
    for name in ("Credential", "SignedHeaders", "Signature"):
        if name not in fields:
            raise S3Fault(code, f"{_MALFORMED}missing {name}.")
    return fields


def _presigned(head: RequestHead) -> Claim:
    code = "AuthorizationQueryParametersError"
    names = ("Algorithm", "Credential", "Signature", "Date", "SignedHeaders", "Expires")
    fields = {name: head.parameter(f"X-Amz-{name}") or "" for name in names}
    if not all(fields.values()):
        raise S3Fault(code, _NEEDED)
    if fields["Algorithm"] != ALGORITHM:
        raise S3Fault(code, f'X-Amz-Algorithm only supports "{ALGORITHM}"')
    if head.parameter("X-Amz-Security-Token") is not None:
        raise S3Fault("InvalidToken")
    payload = head.parameter("X-Amz-Content-Sha256") or head.header("x-amz-content-sha256") or UNSIGNED
    if payload != UNSIGNED and not _HASH.fullmatch(payload):
        raise S3Fault(code, "The body of a presigned request has a SHA-256, or is not signed.")
    if not _MOMENT.fullmatch(fields["Date"]):
        raise S3Fault(code, "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"")
    refusals = _Refusals(code, "Error parsing the X-Amz-Credential parameter; ")
    return _claim(head, refusals, fields, fields["Date"], payload, _expiry(fields["Expires"]))


def _expiry(given: str) -> int:
    """The seconds that a presigned URL is valid; AuthorizationQueryParametersError."""
    code = "AuthorizationQueryParametersError"
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise S3Fault(code, "X-Amz-Expires should be a number")
    if given != digits:
        raise S3Fault(code, "X-Amz-Expires must be non-negative")
    if len(given) > 7 or int(given) > MAX_EXPIRY_S:
        message = "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be"
        raise S3Fault(code, f"{message} less than {MAX_EXPIRY_S} seconds")
    if not int(given):
        raise S3Fault(code, "X-Amz-Expires must not be 0.")
    return int(given)


@frozen
class _Refusals:
    """How to refuse a malformed claim: the code, and the beginning of each message about the credential."""

    code: str
    prefix: str

    def fault(self, message: str) -> S3Fault:
        return S3Fault(self.code, self.prefix + message)


def _claim(
    head: RequestHead, refusals: _Refusals, fields: dict[str, str], moment: str, payload: str, expires_s: int | None
) -> Claim:
    _require_unambiguous(head)
    access_key, scope = _credential(fields["Credential"], refusals)
    signature = fields["Signature"]
    if not _SIGNATURE.fullmatch(signature):
        raise S3Fault("SignatureDoesNotMatch")
    if not moment.startswith(scope.day):
        if expires_s is None:
            raise refusals.fault(f"{_MALFORMED}Invalid credential date. Date is not the same as X-Amz-Date.")
        message = f'Invalid credential date "{scope.day}". This date is not the same as X-Amz-Date: "{moment[:8]}".'
        raise S3Fault(refusals.code, message)
    signed = fields["SignedHeaders"].split(";")
    if len(signed) > MAX_SIGNED or len(set(signed)) != len(signed):
        raise S3Fault(refusals.code)
    _require_signed(head, frozenset(signed))
    return Claim(
        access_key=access_key,
        scope=scope,
        moment=moment,
        signed=frozenset(signed),
        signature=signature,
        payload=payload,
        expires_s=expires_s,
    )


def _credential(given: str, refusals: _Refusals) -> tuple[str, Scope]:
    """The access key of a credential, and where and when the signature is valid; S3Fault."""
    parts = given.split("/")
    if len(parts) != 5 or not all(0 < len(part) <= 128 for part in parts):
        expected = '"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request"'
        raise refusals.fault(f"the Credential is mal-formed; expecting {expected}.")
    access_key, day, region, service, terminal = parts
    if terminal != "aws4_request":
        raise refusals.fault(f'incorrect terminal "{terminal}". This endpoint uses "aws4_request".')
    if service != "s3":
        raise refusals.fault(f'incorrect service "{service}". This endpoint belongs to "s3".')
    if not _DAY.fullmatch(day):
        raise refusals.fault(
            f'incorrect date format "{day}". This date in the credential must be in the format "yyyyMMdd".'
        )
    return access_key, Scope(day=day, region=region)


def _require_signed(head: RequestHead, signed: frozenset[str]) -> None:
    """Raise AccessDenied if an unsigned header could change the request's meaning: anybody could have added it."""
    if "host" not in signed:
        raise S3Fault("AccessDenied", "The header host is not signed.")
    unsigned = {name for name, _ in head.headers if name.startswith("x-amz-")} - signed
    # Its value is part of what is signed, whether or not the header is listed.
    unsigned.discard("x-amz-content-sha256")
    if unsigned:
        message = "There were headers present in the request which were not signed"
        raise S3Fault("AccessDenied", message, details=(("HeadersNotSigned", ", ".join(sorted(unsigned))),))


def _require_unambiguous(head: RequestHead) -> None:
    """Raise InvalidRequest if a header or a parameter that operations read is repeated.

    The signature covers the lines of a header as if they were one, and parameters in alphabetical order. So anybody could
    split a header's line or reorder parameters, and change which value comes first.
    """
    names = [
        name
        for name, _ in head.headers
        if name in _SINGLE or (name.startswith("x-amz-") and not name.startswith("x-amz-meta-") and name not in LISTS)
    ]
    for kind, found in (("header", names), ("parameter", [name for name, _ in head.query])):
        if len(set(found)) < len(found):
            repeated = next(name for name in found if found.count(name) > 1)
            raise S3Fault("InvalidRequest", f"The {kind} {repeated} is repeated.")


def _moment_of_date(date: str | None) -> str:
    try:
        return parsedate_to_datetime(date or "").astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    except (ValueError, TypeError, OverflowError):
        raise S3Fault("AccessDenied", _NO_DATE) from None


@lru_cache(maxsize=64)
def _unix_time(moment: str) -> float:
    try:
        return datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise S3Fault("AccessDenied", "The request's date is malformed.") from None
