"""Attacks on the door with what others signed: requests, addresses and chunks that are replayed, changed, moved and smuggled."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from grid.s3.signature import ChunkSigner, Scope, signing_key
from tests.gateway.rig import Reply
from tests.s3.rig import MAIN, OTHER, SECRET, code, path, presigned, running_door


async def test_a_request_that_is_replayed_does_only_what_was_signed(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        body, fields = b"signed", {"Content-Length": "6", "Connection": "close"}
        signed = rig.head("PUT", "/bucket/a", fields, payload=hashlib.sha256(body).hexdigest())
        assert (await rig.send(signed + body)).status == 200
        assert (await rig.send(signed + body)).status == 200, "within the time that clocks may differ"
        assert code(await rig.send(signed + b"forged")) == "XAmzContentSHA256Mismatch"
        assert code(await rig.send(signed.replace(b"/bucket/a", b"/bucket/b", 1) + body)) == "SignatureDoesNotMatch"
        added = signed.replace(b"\r\n", b"\r\nx-amz-meta-of: it\r\n", 1)
        assert code(await rig.send(added + body)) in ("AccessDenied", "SignatureDoesNotMatch")
        elsewhere = signed.replace(rig.host.encode(), b"localhost:80", 1)
        assert code(await rig.send(elsewhere + body)) == "SignatureDoesNotMatch"
        for minutes in (-16, 16):
            moment = (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y%m%dT%H%M%SZ")
            assert code(await rig.ask("DELETE", path("a"), moment=moment)) == "RequestTimeTooSkewed"
        assert (await rig.ask("GET", path("a"))).body == body
        assert await rig.keys() == ["a"]


def split(signed: bytes, line: bytes, into: bytes) -> bytes:
    """The head of a request with two lines of a header in place of one."""
    assert line in signed
    return signed.replace(line, into, 1)


async def test_a_request_whose_headers_or_parameters_are_rearranged_is_refused(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for key in ("a", "a,b"):
            await rig.ask("PUT", path(key), key.encode())
        fields = {"Content-Length": "0", "Connection": "close", "x-amz-copy-source": "/bucket/a,b"}
        signed = rig.head("PUT", "/bucket/c", fields)
        forged = split(
            signed, b"x-amz-copy-source: /bucket/a,b", b"x-amz-copy-source: /bucket/a\r\nx-amz-copy-source: b"
        )
        assert code(await rig.send(forged)) == "InvalidRequest"
        ranged = rig.head("GET", "/bucket/a", {"Range": "bytes=0-0,1-1", "Connection": "close"})
        forged = split(ranged, b"range: bytes=0-0,1-1", b"range: bytes=0-0\r\nrange: 1-1")
        assert code(await rig.send(forged)) == "InvalidRequest"
        asked = rig.head("GET", "/bucket?prefix=a&prefix=x", {"Connection": "close"})
        assert code(await rig.send(asked)) == "InvalidRequest"
        assert code(await rig.send(asked.replace(b"prefix=a&prefix=x", b"prefix=x&prefix=a"))) == "InvalidRequest"
        assert await rig.keys() == ["a", "a,b"]


async def test_the_lines_of_a_list_or_of_own_metadata_are_one(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        fields = {
            "Content-Length": "0",
            "Connection": "close",
            "x-amz-meta-of": "a,b",
            "cache-control": "no-store,private",
        }
        signed = rig.head("PUT", "/bucket/a", fields)
        signed = split(signed, b"x-amz-meta-of: a,b", b"x-amz-meta-of: a\r\nx-amz-meta-of: b")
        signed = split(signed, b"cache-control: no-store,private", b"cache-control: no-store\r\ncache-control: private")
        assert (await rig.send(signed)).status == 200
        got = await rig.ask("HEAD", path("a"))
        assert (got.headers["x-amz-meta-of"], got.headers["cache-control"]) == ("a,b", "no-store,private")
        asked = rig.head("GET", "/bucket/a", {"If-None-Match": f'"x",{got.headers["etag"]}', "Connection": "close"})
        both = b'if-none-match: "x"\r\nif-none-match: ' + got.headers["etag"].encode()
        forged = split(asked, b'if-none-match: "x",' + got.headers["etag"].encode(), both)
        assert (await rig.send(forged)).status == 304


async def test_an_address_that_was_presigned_does_only_what_was_signed_and_not_for_ever(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"old")

        async def use(target: str, method: str = "GET") -> str:
            bare = f"{method} {target} HTTP/1.1\r\nHost: {rig.host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            reply = await rig.send(bare.encode())
            return "read" if reply.body == b"old" else code(reply)

        good = presigned(rig.host, "GET", "/bucket/a")
        assert [await use(good), await use(good)] == ["read", "read"]
        for method in ("PUT", "DELETE", "POST"):
            assert await use(good, method) == "SignatureDoesNotMatch"
        for ours, theirs in (("/a?", "/b?"), ("Expires=60", "Expires=600000"), ("?", "?tagging&"), (MAIN, OTHER)):
            assert await use(good.replace(ours, theirs, 1)) == "SignatureDoesNotMatch"
        assert await use(presigned(rig.host, "GET", "/bucket/a", secret="guess")) == "SignatureDoesNotMatch"
        old = (datetime.now(UTC) - timedelta(minutes=2)).strftime("%Y%m%dT%H%M%SZ")
        assert await use(presigned(rig.host, "GET", "/bucket/a", moment=old)) == "AccessDenied"
        assert await use(presigned(rig.host, "GET", "/bucket/a", expires_s=8 * 86400)) != "read"
        assert await use(f"{good}&{good.partition('?')[2]}") != "read"
        assert await rig.keys() == ["a"]


async def test_signed_chunks_that_are_moved_repeated_or_left_out_are_not_stored(tmp_path: Path) -> None:
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = Scope(day=moment[:8], region="us-east-1")
    signer = ChunkSigner(signing_key(SECRET, scope), moment, scope)
    pieces = [b"a" * 10_000, b"b" * 10_000, b""]
    said = {"x-amz-decoded-content-length": "20000", "Connection": "close"}
    async with running_door(tmp_path) as rig:

        async def send(order: list[int]) -> Reply:
            """Send the chunks in this order, each with the signature of its own place."""
            length = sum(
                len(b"%x;chunk-signature=\r\n\r\n" % len(pieces[each])) + 64 + len(pieces[each]) for each in order
            )
            fields = {**said, "Content-Length": str(length)}
            head = rig.head("PUT", "/bucket/a", fields, payload="STREAMING-AWS4-HMAC-SHA256-PAYLOAD", moment=moment)
            previous, sent = head.rpartition(b"Signature=")[2].strip().decode(), []
            for piece in pieces:
                previous = signer.chunk(previous, hashlib.sha256(piece).hexdigest())
                sent.append(b"%x;chunk-signature=%b\r\n%b\r\n" % (len(piece), previous.encode(), piece))
            return await rig.send(head + b"".join(sent[each] for each in order))

        for order in ([1, 0, 2], [0, 0, 2], [1, 1, 2], [2], [0, 2], [0, 2, 1]):
            refused = await send(order)
            assert refused.status in (400, 403), order
        assert await rig.keys() == []
        assert (await send([0, 1, 2])).status == 200
        assert (await rig.ask("GET", path("a"))).body == b"".join(pieces)


async def test_a_request_that_is_smuggled_behind_another_is_never_run(tmp_path: Path) -> None:
    """Two readings of where a body ends would let one client put a request into another's connection."""
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"old")
        inner = rig.head("DELETE", "/bucket/a", {"Connection": "close"})
        for name, value in (
            ("Content-Length", "3, 3"),
            ("Content-Length", "+3"),
            ("Content-Length", "0x3"),
            ("Content-Length", "-1"),
            ("Transfer-Encoding", "chunked, identity"),
            ("Transfer-Encoding", "xchunked"),
            ("Transfer-Encoding", "identity"),
        ):
            head = rig.head("PUT", "/bucket/b", {name: value}, payload="UNSIGNED-PAYLOAD")
            assert (await rig.send(head + b"0\r\n\r\n" + inner)).status in (400, 411, 501), value
        both = rig.head("PUT", "/bucket/b", {"Content-Length": "3"}, payload="UNSIGNED-PAYLOAD")
        for line in (b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding : chunked\r\n"):
            doubled = both.replace(b"\r\n", b"\r\n" + line, 1)
            assert (await rig.send(doubled + b"0\r\n\r\n" + inner)).status in (400, 411, 501), line
        assert (await rig.ask("GET", path("a"))).body == b"old"
        assert await rig.keys() == ["a"]
