"""Attacks on the door: without a key, with somebody else's, with a read-only key, and with bytes that lie."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import capturedLogs, formatEvent

from grid.directory.edits import SetChild
from grid.s3.operations import COPIES, OPERATIONS, choose_operation
from grid.s3.signature import RequestHead
from tests.s3.rig import MAIN, OTHER, READER, SECRET, S3Rig, code, path, presigned, running_door, texts

RULES = (
    b"<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>"
    b"</CORSConfiguration>"
)
OWNERS = b"<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>"
PARTS = b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>a</ETag></Part></CompleteMultipartUpload>"
CHANGES = [
    ("PUT", "/bucket/a", b"new", {}),
    ("PUT", "/bucket/new/b", b"", {"x-amz-copy-source": "/bucket/a"}),
    ("POST", "/bucket/a?uploads", b"", {}),
    ("PUT", "/bucket/a?partNumber=1&uploadId=0", b"part", {}),
    ("PUT", "/bucket/a?partNumber=1&uploadId=0", b"", {"x-amz-copy-source": "/bucket/a"}),
    ("POST", "/bucket/a?uploadId=0", PARTS, {}),
    ("DELETE", "/bucket/a?uploadId=0", b"", {}),
    ("PUT", "/bucket?ownershipControls", OWNERS, {}),
    ("DELETE", "/bucket?ownershipControls", b"", {}),
    ("PUT", "/bucket/a?tagging", b"<Tagging><TagSet/></Tagging>", {}),
    ("DELETE", "/bucket/a?tagging", b"", {}),
    ("PUT", "/bucket?tagging", b"<Tagging><TagSet/></Tagging>", {}),
    ("DELETE", "/bucket?tagging", b"", {}),
    ("PUT", "/bucket?cors", RULES, {}),
    ("DELETE", "/bucket?cors", b"", {}),
    ("PUT", "/bucket?acl", b"", {"x-amz-acl": "private"}),
    ("PUT", "/bucket/a?acl", b"", {"x-amz-acl": "private"}),
    ("DELETE", "/bucket/a", b"", {}),
    ("POST", "/bucket?delete", b"<Delete><Object><Key>a</Key></Object></Delete>", {}),
    ("PUT", "/another", b"", {}),
    ("DELETE", "/mine", b"", {}),
]
"""A request of every operation that changes something."""


async def unchanged(rig: S3Rig) -> bool:
    """Whether all is as it was before the attack."""
    return (await rig.ask("GET", path("a"))).body == b"old" and (await rig.ask("HEAD", "/mine")).status == 200


def test_changes_are_all_that_there_are() -> None:
    said = set()
    for method, target, _, headers in CHANGES:
        path, _, query = target.partition("?")
        pairs = [(name, value) for name, _, value in (each.partition("=") for each in query.split("&") if each)]
        head = RequestHead(method=method, path=path, query=pairs, headers=list(headers.items()))
        said.add(choose_operation(head, "object" if path.count("/") > 1 else "bucket").name)
    changing = {each.name for (_, method, _), each in OPERATIONS.items() if method not in ("GET", "HEAD")}
    assert said == changing | {each.name for each in COPIES.values()}


async def test_a_key_that_reads_changes_nothing_by_any_operation(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"old")
        await rig.ask("PUT", "/mine")
        for method, target, body, headers in CHANGES:
            refused = await rig.ask(method, target, body, headers, key=READER)
            assert (refused.status, code(refused)) == (403, "AccessDenied"), target
        assert (await rig.ask("GET", path("a"), key=READER)).body == b"old"
        assert await unchanged(rig)


async def test_a_key_of_somebody_else_finds_no_bucket_by_any_operation(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"old")
        await rig.ask("PUT", "/mine")
        for method, target, body, headers in [*CHANGES, ("GET", "/bucket/a", b"", {}), ("GET", "/bucket", b"", {})]:
            if target != "/another":
                assert code(await rig.ask(method, target, body, headers, key=OTHER)) == "NoSuchBucket", target
        stolen = {"x-amz-copy-source": "/bucket/a"}
        await rig.ask("PUT", "/theirs", key=OTHER)
        assert code(await rig.ask("PUT", "/theirs/a", headers=stolen, key=OTHER)) == "NoSuchBucket"
        assert await unchanged(rig)


async def test_a_request_that_is_not_signed_or_signed_wrongly_is_refused(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"old")
        bare = f"GET /bucket/a HTTP/1.1\r\nHost: {rig.host}\r\nConnection: close\r\n\r\n".encode()
        assert code(await rig.send(bare)) == "AccessDenied"
        assert code(await rig.send(bare.replace(b"Connection:", b"Authorization:\r\nConnection:"))) == "AccessDenied"
        assert code(await rig.ask("GET", path("a"), secret="another")) == "SignatureDoesNotMatch"
        assert code(await rig.ask("GET", path("a"), key="GKNOBODY")) == "InvalidAccessKeyId"
        late = (datetime.now(UTC) - timedelta(minutes=16)).strftime("%Y%m%dT%H%M%SZ")
        assert code(await rig.ask("GET", path("a"), moment=late)) == "RequestTimeTooSkewed"
        signed = rig.head("GET", "/bucket/a", {"Connection": "close"})
        for ours, theirs in ((b"GET /bucket/a", b"GET /bucket/b"), (b"GET", b"DELETE"), (b"/a ", b"/a?tagging ")):
            assert code(await rig.send(signed.replace(ours, theirs, 1))) == "SignatureDoesNotMatch"
        assert (await rig.send(signed)).body == b"old"


async def test_a_body_when_it_is_stored_while_it_arrives_then_is_still_verified(tmp_path: Path) -> None:
    """Without a convergence secret, a long body is sent on at once, and nobody asks for what follows its last byte."""
    async with running_door(tmp_path, convergence=None) as rig:
        data = bytes(range(256)) * 10_000
        said = hashlib.sha256(b"other").hexdigest()
        head = rig.head("PUT", "/bucket/a", {"Content-Length": str(len(data)), "Connection": "close"}, payload=said)
        assert code(await rig.send(head + data)) == "XAmzContentSHA256Mismatch"
        md5 = {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}
        assert code(await rig.ask("PUT", path("a"), data, md5)) == "BadDigest"
        assert code(await rig.ask("PUT", path("a"), data, {"x-amz-checksum-crc32": "AAAAAA=="})) == "BadDigest"
        assert await rig.keys() == []
        stored = await rig.ask("PUT", path("a"), data)
        assert stored.headers["etag"] == f'"{hashlib.md5(data).hexdigest()}"'
        assert (await rig.ask("GET", path("a"))).body == data


async def test_a_body_that_is_not_the_signed_one_is_not_stored(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for size in (3, 300_000):
            said = hashlib.sha256(bytes(size)).hexdigest()
            head = rig.head("PUT", "/bucket/a", {"Content-Length": str(size), "Connection": "close"}, payload=said)
            assert code(await rig.send(head + b"x" * size)) == "XAmzContentSHA256Mismatch"
        md5 = {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}
        assert code(await rig.ask("PUT", path("a"), b"data", md5)) == "BadDigest"
        assert code(await rig.ask("PUT", path("a"), b"data", {"x-amz-checksum-crc32": "AAAAAA=="})) == "BadDigest"
        assert code(await rig.ask("PUT", path("a"), b"data", {"Content-MD5": "short"})) == "InvalidDigest"
        assert await rig.keys() == []


async def test_a_body_whose_length_lies_is_not_stored(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        streaming = {"payload": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}
        for decoded, body in (("5", b"3\r\nabc\r\n0\r\n\r\n"), ("2", b"3\r\nabc\r\n0\r\n\r\n"), ("", b"0\r\n\r\n")):
            said = {"x-amz-decoded-content-length": decoded}
            reply = await rig.ask("PUT", path("a"), body, said, **streaming)
            assert reply.status in (400, 411)
        both = {"Content-Length": "3", "Transfer-Encoding": "chunked"}
        assert (
            await rig.ask("PUT", path("a"), b"3\r\nabc\r\n0\r\n\r\n", both, payload="UNSIGNED-PAYLOAD")
        ).status == 400
        huge = {"Content-Length": str(6 * 2**30)}
        head = rig.head("PUT", "/bucket/a", {**huge, "Connection": "close"}, payload="UNSIGNED-PAYLOAD")
        assert code(await rig.send(head)) == "EntityTooLarge"
        assert await rig.keys() == []


@pytest.mark.parametrize(
    "target",
    ["/bucket/../other/a", "/bucket/%2e%2e/a", "/bucket/..%2f..%2fa", "/bucket/%00", "/bucket//a", "/%2e%2e/a"],
)
async def test_a_key_that_looks_like_a_way_out_stays_in_its_bucket(tmp_path: Path, target: str) -> None:
    async with running_door(tmp_path) as rig:
        put = await rig.ask("PUT", target, b"1")
        if target.startswith("/bucket"):
            assert put.status == 200
            assert (await rig.ask("GET", target)).body == b"1"
            assert len(await rig.keys("&encoding-type=url")) == 1
        else:
            assert code(put) == "NoSuchBucket"
        assert texts((await rig.ask("GET", "/")).body, "Name") == ["bucket"]


@pytest.mark.parametrize(
    ("method", "target", "refusal"),
    [
        ("POST", "/bucket?delete", "EntityTooLarge"),
        ("PUT", f"/bucket/{'k' * 1025}", "KeyTooLongError"),
        ("POST", f"/bucket/{'k' * 1025}?uploads", "KeyTooLongError"),
    ],
)
async def test_an_impossible_key_or_document_is_refused_before_its_body_arrives(
    tmp_path: Path, method: str, target: str, refusal: str
) -> None:
    async with running_door(tmp_path) as rig:
        fields = {"Content-Length": str(100 * 2**20), "Connection": "close"}
        assert code(await rig.send(rig.head(method, target, fields, payload="UNSIGNED-PAYLOAD"))) == refusal
        assert await rig.keys() == []


async def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for target in ("/bucket/%ff", "/bucket?prefix=%ff"):
            assert (await rig.ask("GET", target)).status in (400, 403)
        for query in ("max-keys=-1", "max-keys=x", "list-type=2&continuation-token=%21", "encoding-type=x"):
            assert code(await rig.ask("GET", f"/bucket?{query}")) == "InvalidArgument"


@pytest.mark.parametrize(
    "target",
    ["/bucket?policy", "/bucket?website", "/bucket/a?retention", "/bucket/a?versionId=1", "/bucket?lifecycle"],
)
async def test_operations_that_are_not_offered_say_so(tmp_path: Path, target: str) -> None:
    async with running_door(tmp_path) as rig:
        refused = await rig.ask("GET", target)
        assert (refused.status, code(refused)) == (501, "NotImplemented")
        for header in ({"x-amz-acl": "public-read"}, {"x-amz-server-side-encryption": "AES256"}):
            assert code(await rig.ask("PUT", path("a"), b"1", header)) == "NotImplemented"


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
DOCUMENTS = [
    ("POST", "/bucket?delete", "Delete"),
    ("POST", "/bucket/a?uploadId=0", "CompleteMultipartUpload"),
    ("PUT", "/bucket/a?tagging", "Tagging"),
    ("PUT", "/bucket?tagging", "Tagging"),
    ("PUT", "/bucket?cors", "CORSConfiguration"),
    ("PUT", "/bucket?ownershipControls", "OwnershipControls"),
    ("PUT", "/another", "CreateBucketConfiguration"),
]


@pytest.mark.parametrize(("method", "target", "root"), DOCUMENTS)
async def test_a_document_that_is_a_bomb_is_refused_by_every_operation_that_takes_one(
    tmp_path: Path, method: str, target: str, root: str
) -> None:
    deep = f"<{root}>{'<Key>' * 100_000}"
    wide = f"<{root}>{'<Key/>' * 10_000}"
    async with running_door(tmp_path) as rig:
        for bomb in (f"{BOMB}<{root}><Key>&b;</Key></{root}>", deep, wide):
            refused = await rig.ask(method, target, bomb.encode())
            assert (refused.status, code(refused)) in ((400, "MalformedXML"), (400, "EntityTooLarge"))
        assert texts((await rig.ask("GET", "/")).body, "Name") == ["bucket"]


async def test_half_open_clients_by_the_hundred_keep_nobody_out(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        silent = [await rig.connect() for _ in range(100)]
        begun = [await rig.connect() for _ in range(100)]
        for wire in begun:
            wire.send(b"PUT /bucket/a HTTP/1.1\r\nHost: ")
        slow = [await rig.connect() for _ in range(50)]
        head = rig.head("PUT", "/bucket/slow", {"Content-Length": "1000000"}, payload="UNSIGNED-PAYLOAD")
        for wire in slow:
            wire.send(head + b"a few")
        assert (await rig.ask("PUT", path("b"), b"1")).status == 200
        assert await rig.keys() == ["b"]
        for wire in (*silent, *begun, *slow):
            wire.transport.abortConnection()  # type: ignore[union-attr]


async def test_a_flood_of_wrong_signatures_opens_and_leaves_nothing(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for key in (MAIN, "GKNOBODY"):
            asked = [rig.ask("GET", "/bucket", key=key, secret=f"guess {number}") for number in range(60)]
            replies = await gatherResults([Deferred.fromCoroutine(each) for each in asked])
            assert {reply.status for reply in replies} == {403}
        assert rig.door.directories.is_idle
        assert (await rig.ask("GET", "/bucket")).status == 200


async def test_text_that_would_end_a_header_is_sent_in_none(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"1")
        for name in ("content-type", "content-disposition", "expires"):
            split = f"/bucket/a?response-{name}=a%0D%0ASet-Cookie:%20b"
            assert code(await rig.ask("GET", split)) == "InvalidArgument"
        store, root = rig.rig.gateway.store, rig.accounts[MAIN].buckets["bucket"]
        child = (await store.directory(root).list())["a"]
        said = dict((child.metadata or {})["s3"])  # type: ignore[call-overload]
        forged = {
            "etag": 'x"\r\nSet-Cookie: b',
            "headers": {"content-type": "a\r\nSet-Cookie: b"},
            "user": {"b\r\nSet-Cookie": "b"},
            "checksums": {"b\r\nSet-Cookie": "b", "crc32": "no checksum"},
            "checksum-type": "a\r\nSet-Cookie: b",
            "parts": [[-5, 2], [11, 1]],
        }
        for name, value in forged.items():
            metadata = {"s3": {**said, name: value}}
            await store.directory(root).edit([SetChild("a", child.target, metadata)])
            got = await rig.ask("GET", path("a"), headers={"x-amz-checksum-mode": "ENABLED"})
            assert (got.status, got.body) == (200, b"1")
            assert not any("set-cookie" in f"{field}: {text}".lower() for field, text in got.headers.items())


async def test_a_request_that_expects_another_owner_is_refused(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"old")
        for owner, status in ((MAIN, 200), (OTHER, 403)):
            owned = {"x-amz-expected-bucket-owner": owner}
            assert (await rig.ask("GET", path("a"), headers=owned)).status == status
            source = {"x-amz-copy-source": "/bucket/a", "x-amz-source-expected-bucket-owner": owner}
            assert (await rig.ask("PUT", path("b"), headers=source)).status == status


async def test_the_reason_for_an_internal_error_is_in_the_log_and_not_in_the_answer(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        rig.rig.gateway.settings.spools.path = tmp_path / "gone"
        with capturedLogs() as events:
            refused = await rig.ask("PUT", path("private-name"), bytes(5 * 2**20))
        assert (refused.status, code(refused)) == (500, "InternalError")
        logged = [text for event in events if "reason" in event and (text := formatEvent(event))]
        assert logged == ["s3 PutObject failed: the upload cannot be spooled: No such file or directory"]
        assert b"spooled" not in refused.body


async def test_secrets_are_in_no_answer_log_metric_or_repr(tmp_path: Path) -> None:
    with capturedLogs() as events:
        async with running_door(tmp_path) as rig:
            said = [repr(rig.door), repr(rig.accounts)]
            said.append(repr(await rig.ask("PUT", path("private-name"), b"1")))
            said.append(repr(await rig.ask("GET", path("private-name"), secret="wrong")))
            said.append(repr(await rig.ask("GET", "/")))
            for method, target, body, headers in CHANGES:
                said += [repr(await rig.ask(method, target, body, headers, key=key)) for key in (MAIN, READER, OTHER)]
            signed = presigned(rig.host, "GET", path("private-name"))
            said.append(repr(await rig.send(f"GET {signed} HTTP/1.1\r\nHost: {rig.host}\r\n\r\n".encode())))
            metrics = (await rig.rig.ask("GET", "/metrics")).body.decode()
    logged = "\n".join(formatEvent(event) for event in events)
    assert logged
    for secret in (SECRET, "URI:DIR2", "URI:CHK", signed.rpartition("=")[2]):
        assert not any(secret in text for text in (*said, metrics, logged))
    assert "private-name" not in metrics + logged and MAIN not in metrics + logged
    assert 'grid_s3_requests_total{operation="PutObject",status="2xx"} 2.0' in metrics
