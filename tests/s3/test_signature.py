"""Signatures against the examples that Amazon publishes with the algorithm."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import pytest

from grid.s3.authentication import parse_claim, verify_claim
from grid.s3.faults import S3Fault
from grid.s3.signature import EMPTY_HASH, ChunkSigner, RequestHead, Scope, sign, signing_key

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
MOMENT = "20130524T000000Z"
NOW = datetime(2013, 5, 24, tzinfo=UTC).timestamp()
SCOPE = Scope(day="20130524", region="us-east-1")


def test_header_that_is_a_list_has_all_its_lines_and_any_other_the_first() -> None:
    headers = [("if-match", '"a"'), ("x-amz-date", "1"), ("if-match", '"b"'), ("x-amz-date", "2")]
    found = RequestHead(method="GET", path="/", query=[], headers=headers)
    assert [found.header(name) for name in ("if-match", "x-amz-date", "range")] == ['"a","b"', "1", None]


def head(
    signature: str, signed: str, headers: dict[str, str], *, method: str = "GET", path: str = "/", query: str = ""
) -> RequestHead:
    said = f"AWS4-HMAC-SHA256 Credential={KEY}/{SCOPE},SignedHeaders={signed},Signature={signature}"
    fields = {"host": "examplebucket.s3.amazonaws.com", "x-amz-date": MOMENT, **headers, "authorization": said}
    pairs = parse_qsl(query, keep_blank_values=True)
    return RequestHead(method=method, path=path, query=pairs, headers=list(fields.items()))


GET = head(
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    "host;range;x-amz-content-sha256;x-amz-date",
    {"range": "bytes=0-9", "x-amz-content-sha256": EMPTY_HASH},
    path="/test.txt",
)
PUT = head(
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
    {
        "date": "Fri, 24 May 2013 00:00:00 GMT",
        "x-amz-storage-class": "REDUCED_REDUNDANCY",
        "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
    },
    method="PUT",
    path="/test$file.text",
)
LIFECYCLE = head(
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    "host;x-amz-content-sha256;x-amz-date",
    {"x-amz-content-sha256": EMPTY_HASH},
    query="lifecycle",
)
LISTING = head(
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    "host;x-amz-content-sha256;x-amz-date",
    {"x-amz-content-sha256": EMPTY_HASH},
    query="max-keys=2&prefix=J",
)


@pytest.mark.parametrize("said", [GET, PUT, LIFECYCLE, LISTING])
def test_a_request_that_amazon_signed_is_proven(said: RequestHead) -> None:
    verify_claim(said, parse_claim(said), SECRET, NOW)


def test_a_presigned_address_of_amazon_is_proven_until_it_expires() -> None:
    query = [
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
        ("X-Amz-Credential", f"{KEY}/{SCOPE}"),
        ("X-Amz-Date", MOMENT),
        ("X-Amz-Expires", "86400"),
        ("X-Amz-SignedHeaders", "host"),
        ("X-Amz-Signature", "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"),
    ]
    said = RequestHead(
        method="GET", path="/test.txt", query=query, headers=[("host", "examplebucket.s3.amazonaws.com")]
    )
    claim = parse_claim(said)
    verify_claim(said, claim, SECRET, NOW + 86400)
    with pytest.raises(S3Fault, match="expired"):
        verify_claim(said, claim, SECRET, NOW + 86401)


def test_chunks_that_amazon_signed_have_the_same_signatures() -> None:
    signer = ChunkSigner(signing_key(SECRET, SCOPE), MOMENT, SCOPE)
    from hashlib import sha256

    first = signer.chunk(
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9", sha256(b"a" * 65536).hexdigest()
    )
    assert first == "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"
    second = signer.chunk(first, sha256(b"a" * 1024).hexdigest())
    assert second == "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"
    assert signer.chunk(second, EMPTY_HASH) == "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"


@pytest.mark.parametrize("change", ["method", "path", "query", "headers"])
def test_a_request_that_was_changed_is_refused(change: str) -> None:
    from attrs import evolve

    others: dict[str, Any] = {
        "method": "DELETE",
        "path": "/other.txt",
        "query": [("acl", "")],
        "headers": [(name, "bytes=0-99" if name == "range" else value) for name, value in GET.headers],
    }
    said = evolve(GET, **{change: others[change]})
    with pytest.raises(S3Fault, match="signature"):
        verify_claim(said, parse_claim(said), SECRET, NOW)


@pytest.mark.parametrize("late_s", [-901, 901])
def test_a_request_of_another_time_is_refused(late_s: int) -> None:
    with pytest.raises(S3Fault, match="too large"):
        verify_claim(GET, parse_claim(GET), SECRET, NOW + late_s)


def test_a_header_of_amazon_that_is_not_signed_is_refused() -> None:
    from attrs import evolve

    said = evolve(GET, headers=[*GET.headers, ("x-amz-copy-source", "/others/secret")])
    with pytest.raises(S3Fault, match="not signed"):
        parse_claim(said)


def test_a_request_whose_host_is_not_signed_is_refused() -> None:
    signed = sign(signing_key(SECRET, SCOPE), "anything")
    with pytest.raises(S3Fault, match="host is not signed"):
        parse_claim(head(signed, "x-amz-content-sha256;x-amz-date", {"x-amz-content-sha256": EMPTY_HASH}))


RIGHT = (
    "Credential=" + f"{KEY}/{SCOPE}",
    "SignedHeaders=host;x-amz-content-sha256;x-amz-date",
    "Signature=" + "0" * 64,
)


@pytest.mark.parametrize(
    ("authorization", "refusal"),
    [
        ("AWS4-HMAC-SHA256", "one and only one ' '"),
        ("AWS4-HMAC-SHA512 x", "Unsupported Authorization Type"),
        ("AWS key:signature", "Unsupported Authorization Type"),
        (f"AWS4-HMAC-SHA256 {RIGHT[0]},{RIGHT[2]}", "three components"),
        (f"AWS4-HMAC-SHA256 {RIGHT[0]},SignedHeaders,{RIGHT[2]}", '"SignedHeaders" is malformed'),
        (f"AWS4-HMAC-SHA256 x=1,{RIGHT[1]},{RIGHT[2]}", "missing Credential"),
        (f"AWS4-HMAC-SHA256 {RIGHT[0]},x=1,{RIGHT[2]}", "missing SignedHeaders"),
        (f"AWS4-HMAC-SHA256 {RIGHT[0]},{RIGHT[1]},x=1", "missing Signature"),
        (f"AWS4-HMAC-SHA256 Credential=a/b/c,{RIGHT[1]},{RIGHT[2]}", "the Credential is mal-formed"),
        (f"AWS4-HMAC-SHA256 Credential=a/1/r/s3/aws4,{RIGHT[1]},{RIGHT[2]}", 'incorrect terminal "aws4"'),
        (f"AWS4-HMAC-SHA256 Credential=a/1/r/ec2/aws4_request,{RIGHT[1]},{RIGHT[2]}", 'incorrect service "ec2"'),
        (f"AWS4-HMAC-SHA256 Credential=a/1/r/s3/aws4_request,{RIGHT[1]},{RIGHT[2]}", 'incorrect date format "1"'),
        (
            f"AWS4-HMAC-SHA256 Credential=a/20200101/r/s3/aws4_request,{RIGHT[1]},{RIGHT[2]}",
            "not the same as X-Amz-Date",
        ),
    ],
)
def test_a_malformed_authorization_is_refused_with_what_is_wrong(authorization: str, refusal: str) -> None:
    fields = {"host": "h", "x-amz-date": MOMENT, "x-amz-content-sha256": EMPTY_HASH, "authorization": authorization}
    with pytest.raises(S3Fault, match=refusal):
        parse_claim(RequestHead(method="GET", path="/", query=[], headers=list(fields.items())))


@pytest.mark.parametrize("date", ["", "03032006"])
def test_a_request_without_a_date_is_refused(date: str) -> None:
    said = f"AWS4-HMAC-SHA256 {','.join(RIGHT)}"
    fields = {"host": "h", "x-amz-date": date, "x-amz-content-sha256": EMPTY_HASH, "authorization": said}
    with pytest.raises(S3Fault, match="valid Date") as refused:
        parse_claim(RequestHead(method="GET", path="/", query=[], headers=list(fields.items())))
    assert refused.value.status == 403


@pytest.mark.parametrize(
    ("name", "value", "refusal"),
    [
        ("X-Amz-Date", "", "requires the X-Amz-Algorithm"),
        ("X-Amz-Expires", "", "requires the X-Amz-Algorithm"),
        ("X-Amz-SignedHeaders", "", "requires the X-Amz-Algorithm"),
        ("X-Amz-Algorithm", "AWS4-ECDSA-P256-SHA256", "only supports"),
        ("X-Amz-Expires", "x", "should be a number"),
        ("X-Amz-Expires", "-3", "non-negative"),
        ("X-Amz-Expires", "604801", "less than a week"),
        ("X-Amz-Credential", "a/20200101/r/s3/aws4_request", "Invalid credential date"),
        ("X-Amz-Security-Token", "token", "token is malformed"),
    ],
)
def test_a_malformed_presigned_address_is_refused_with_what_is_wrong(name: str, value: str, refusal: str) -> None:
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{KEY}/{SCOPE}",
        "X-Amz-Date": MOMENT,
        "X-Amz-Expires": "60",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Signature": "0" * 64,
        name: value,
    }
    with pytest.raises(S3Fault, match=refusal):
        parse_claim(RequestHead(method="GET", path="/", query=list(query.items()), headers=[("host", "h")]))
