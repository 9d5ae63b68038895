"""Authenticates requests: the claim in a header or presigned URL, and its proof. Pure.

Owns how far clocks may differ, how long a presigned URL lasts, and what must be signed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from attrs import field, frozen

from grid.s3.faults import S3Fault
from grid.s3.signature import ALGORITHM, UNSIGNED, RequestHead, Scope, is_equal, request_text, sign, signing_key

MAX_SKEW_S = 15 * 60
MAX_EXPIRY_S = 7 * 24 * 3600
MAX_SIGNED = 100

_MOMENT = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_CREDENTIAL = re.compile(r"([^/]{1,128})/([0-9]{8})/([^/]{1,64})/([a-z0-9]{1,16})/aws4_request")
_SIGNATURE = re.compile(r"[0-9a-f]{64}")
_HASH = re.compile(r"[0-9a-f]{64}")
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
    if not authorization:
        raise S3Fault("AccessDenied", "The request is not signed.")
    return _signed(head, authorization)


def verify_claim(head: RequestHead, claim: Claim, secret: str, now: float) -> bytes:
    """Return the signing key if the signature is valid and in time; S3Fault otherwise. now: Unix time."""
    key = signing_key(secret, claim.scope)
    right = sign(key, request_text(head, claim.moment, claim.scope, claim.signed, claim.payload))
    if not is_equal(right, claim.signature):
        raise S3Fault("SignatureDoesNotMatch")
    age_s = now - _unix_time(claim.moment)
    if claim.expires_s is None:
        if abs(age_s) > MAX_SKEW_S:
            raise S3Fault("RequestTimeTooSkewed")
    elif age_s < -MAX_SKEW_S:
        raise S3Fault("AccessDenied", "The presigned URL is not valid yet.")
    elif age_s > claim.expires_s:
        raise S3Fault("AccessDenied", "The presigned URL has expired.")
    return key


def _signed(head: RequestHead, authorization: str) -> Claim:
    scheme, _, rest = authorization.strip().partition(" ")
    if scheme != ALGORITHM:
        raise S3Fault("InvalidArgument", "Requests must be signed with AWS4-HMAC-SHA256.")
    fields = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    payload = head.header("x-amz-content-sha256")
    if payload is None:
        raise S3Fault("InvalidRequest", "The header x-amz-content-sha256 is missing.")
    if payload not in STREAMING and payload != UNSIGNED and not _HASH.fullmatch(payload):
        raise S3Fault("InvalidArgument", "x-amz-content-sha256 is neither a SHA-256 nor a supported kind of body.")
    moment = head.header("x-amz-date")
    if moment is None:
        moment = _moment_of_date(head.header("date"))
    return _claim(head, "AuthorizationHeaderMalformed", fields, moment, payload, None)


def _presigned(head: RequestHead) -> Claim:
    code = "AuthorizationQueryParametersError"
    if head.parameter("X-Amz-Algorithm") != ALGORITHM:
        raise S3Fault(code, "X-Amz-Algorithm must be AWS4-HMAC-SHA256.")
    expires = head.parameter("X-Amz-Expires") or ""
    if not (expires.isascii() and expires.isdigit() and len(expires) < 8 and 0 < int(expires) <= MAX_EXPIRY_S):
        raise S3Fault(code, "X-Amz-Expires must be between 1 and 604800 seconds.")
    fields = {
        "Credential": head.parameter("X-Amz-Credential") or "",
        "SignedHeaders": head.parameter("X-Amz-SignedHeaders") or "",
        "Signature": head.parameter("X-Amz-Signature") or "",
    }
    payload = head.parameter("X-Amz-Content-Sha256") or head.header("x-amz-content-sha256") or UNSIGNED
    if payload != UNSIGNED and not _HASH.fullmatch(payload):
        raise S3Fault(code, "The body of a presigned request has a SHA-256, or is not signed.")
    return _claim(head, code, fields, head.parameter("X-Amz-Date") or "", payload, int(expires))


def _claim(
    head: RequestHead, code: str, fields: dict[str, str], moment: str, payload: str, expires_s: int | None
) -> Claim:
    credential = _CREDENTIAL.fullmatch(fields.get("Credential", ""))
    signature = fields.get("Signature", "")
    if credential is None or not _SIGNATURE.fullmatch(signature) or not _MOMENT.fullmatch(moment):
        raise S3Fault(code)
    access_key, day, region, service = credential.groups()
    if service != "s3":
        raise S3Fault(code, "The credential is for a service other than s3.")
    if not moment.startswith(day):
        raise S3Fault(code, "The day of the credential is not that of the request.")
    signed = fields.get("SignedHeaders", "").split(";")
    if len(signed) > MAX_SIGNED or len(set(signed)) != len(signed):
        raise S3Fault(code)
    _require_signed(head, frozenset(signed))
    return Claim(
        access_key=access_key,
        scope=Scope(day=day, region=region),
        moment=moment,
        signed=frozenset(signed),
        signature=signature,
        payload=payload,
        expires_s=expires_s,
    )


def _require_signed(head: RequestHead, signed: frozenset[str]) -> None:
    """Raise AccessDenied if an unsigned header could change the request's meaning: anybody could have added it."""
    if "host" not in signed:
        raise S3Fault("AccessDenied", "The header host is not signed.")
    unsigned = {name for name, _ in head.headers if name.startswith("x-amz-")} - signed
    # Its value is part of what is signed, whether or not the header is listed.
    unsigned.discard("x-amz-content-sha256")
    if unsigned:
        raise S3Fault("AccessDenied", f"The header {min(unsigned)[:100]} is not signed.")


def _moment_of_date(date: str | None) -> str:
    try:
        return parsedate_to_datetime(date or "").astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    except (ValueError, TypeError, OverflowError):
        raise S3Fault("AccessDenied", "The request has no x-amz-date, and no date that can be read.") from None


def _unix_time(moment: str) -> float:
    try:
        return datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise S3Fault("AccessDenied", "The request's date is malformed.") from None
