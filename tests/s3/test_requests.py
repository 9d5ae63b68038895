"""Requests as clients send them: headers and parameters that are obeyed, ignored or refused, and with which answer."""

from __future__ import annotations

import base64
import hashlib
import zlib
from pathlib import Path

import pytest

from tests.s3.rig import code, path, running_door, texts

RANGES = {
    "bytes=1-2": (206, b"12"),
    "bytes=00-01": (206, b"01"),
    "bytes=-2": (206, b"89"),
    "bytes= -1": (200, b"0123456789"),
    "bytes=0 -1": (200, b"0123456789"),
    "bytes=0-0,1-2": (200, b"0123456789"),
    "bytes=5-1": (200, b"0123456789"),
    "bytes=-0": (416, None),
    "bytes=10-": (416, None),
}


async def test_a_header_that_is_one_range_is_obeyed_and_others_are_ignored(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"0123456789")
        for asked, (status, data) in RANGES.items():
            got = await rig.ask("GET", path("a"), headers={"Range": asked})
            assert (asked, got.status) == (asked, status)
            assert data is None or got.body == data
            assert data is not None or texts(got.body, "RangeRequested") == [asked]


async def test_a_range_is_sent_only_of_the_version_that_the_client_has(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        etag = (await rig.ask("PUT", path("a"), b"0123456789")).headers["etag"]
        modified = (await rig.ask("HEAD", path("a"))).headers["last-modified"]
        parts = {etag: 206, modified: 206, f"W/{etag}": 200, '"other"': 200, "*": 200, etag.strip('"'): 200}
        for said, status in {**parts, "Sun, 06 Nov 1994 08:49:37 GMT": 200}.items():
            for asked, partial in (("bytes=1-2", b"12"), ("bytes=10-", None)):
                got = await rig.ask("GET", path("a"), headers={"Range": asked, "If-Range": said})
                wanted = status if status == 200 or partial is not None else 416
                assert (said, got.status) == (said, wanted)
                if wanted != 416:
                    assert got.body == (b"0123456789" if wanted == 200 else partial)


@pytest.mark.parametrize("number", ["0", "-3", "10001", "x"])
async def test_an_impossible_part_is_refused_before_the_object_is_sought(tmp_path: Path, number: str) -> None:
    async with running_door(tmp_path) as rig:
        refused = await rig.ask("GET", f"{path('none')}?partNumber={number}")
        assert (code(refused), texts(refused.body, "ArgumentValue")) == ("InvalidArgument", [number])


TAGS = {
    "=": "InvalidArgument",
    "key%": "InvalidArgument",
    "k=1&k=2": "InvalidArgument",
    "k(=v": "InvalidTag",
    "k=v!": "InvalidTag",
    "&k=v&": "",
    "a+b%2E=/%3A@": "",
}


async def test_tags_in_a_header_have_the_characters_that_s3_permits(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for given, refusal in TAGS.items():
            put = await rig.ask("PUT", path("a"), b"1", {"x-amz-tagging": given})
            assert (put.status, code(put) if put.body else "") == (400 if refusal else 200, refusal)
        assert texts((await rig.ask("GET", f"{path('a')}?tagging")).body, "Key") == ["a b."]


async def test_a_redirection_is_kept_with_its_object_and_not_with_a_copy(tmp_path: Path) -> None:
    name = "x-amz-website-redirect-location"
    async with running_door(tmp_path) as rig:
        assert code(await rig.ask("PUT", path("a"), b"1", {name: "ftp://x"})) == "InvalidRedirectLocation"
        await rig.ask("PUT", path("a"), b"1", {name: "https://x"})
        assert (await rig.ask("HEAD", path("a"))).headers[name] == "https://x"
        await rig.ask("PUT", path("b"), headers={"x-amz-copy-source": "/bucket/a"})
        assert name not in (await rig.ask("HEAD", path("b"))).headers


async def test_attributes_are_those_of_the_header(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"12345")
        for wanted, refusal in (("", "InvalidRequest"), ("ETag,Color", "InvalidArgument")):
            got = await rig.ask("GET", f"{path('a')}?attributes", headers={"x-amz-object-attributes": wanted})
            assert code(got) == refusal
        got = await rig.ask("GET", f"{path('a')}?attributes", headers={"x-amz-object-attributes": "ETag, ObjectSize"})
        assert (texts(got.body, "ObjectSize"), texts(got.body, "StorageClass")) == (["5"], [])
        assert code(await rig.ask("GET", "/nobody/a?attributes")) == "NoSuchBucket", "the better reason"


async def test_a_bucket_that_does_not_exist_is_a_better_reason_than_an_operation_that_does_not(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        assert code(await rig.ask("GET", "/bucket?policy")) == "NotImplemented"
        assert code(await rig.ask("GET", "/nobody?policy")) == "NoSuchBucket"
        assert code(await rig.ask("GET", "/?policy")) == "NotImplemented"


async def test_one_checksum_of_any_kind_is_kept_and_two_are_refused(tmp_path: Path) -> None:
    data = b"some bytes"
    right = {name: base64.b64encode(hashlib.new(name, data).digest()).decode() for name in ("md5", "sha1", "sha512")}
    async with running_door(tmp_path) as rig:
        for name, value in right.items():
            await rig.ask("PUT", path("a"), data, {f"x-amz-checksum-{name}": value})
            got = await rig.ask("HEAD", path("a"), headers={"x-amz-checksum-mode": "ENABLED"})
            assert got.headers[f"x-amz-checksum-{name}"] == value
            wrong = await rig.ask("PUT", path("a"), b"other", {f"x-amz-checksum-{name}": value})
            assert code(wrong) == "BadDigest"
        both = {f"x-amz-checksum-{name}": right[name] for name in ("md5", "sha1")}
        assert code(await rig.ask("PUT", path("a"), data, both)) == "InvalidRequest"
        named = {"x-amz-checksum-sha1": right["sha1"], "x-amz-sdk-checksum-algorithm": "SHA256"}
        assert code(await rig.ask("PUT", path("a"), data, named)) == "InvalidRequest"
        assert code(await rig.ask("PUT", path("a"), data, {"x-amz-checksum-x": "AA=="})) == "InvalidRequest"


@pytest.mark.parametrize(
    ("source", "refusal"),
    [
        ("bucket/%ZZ", "encoding"),
        ("bucket/a  b", "encoding"),
        ("bucket/a\u00a0", "encoding"),
        ("buck@t/a", "bucket name"),
        ("bucket", "object key"),
        ("bucket/", "object key"),
    ],
)
async def test_a_malformed_source_of_a_copy_is_refused(tmp_path: Path, source: str, refusal: str) -> None:
    async with running_door(tmp_path) as rig:
        refused = await rig.ask("PUT", path("a"), headers={"x-amz-copy-source": source})
        assert (code(refused), texts(refused.body, "Message")) == (
            "InvalidArgument",
            [f"Invalid copy source {refusal}"],
        )


async def test_a_copy_shows_the_checksums_of_its_source_or_gets_another_one(tmp_path: Path) -> None:
    data = b"some bytes"
    crc, sha = (
        base64.b64encode(each).decode() for each in (zlib.crc32(data).to_bytes(4), hashlib.sha256(data).digest())
    )
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), data, {"x-amz-checksum-crc32": crc})
        source = {"x-amz-copy-source": "/bucket/a"}
        assert texts((await rig.ask("PUT", path("b"), headers=source)).body, "ChecksumCRC32") == [crc]
        asked = {**source, "x-amz-checksum-algorithm": "SHA256"}
        for key in ("b", "a"):
            copied = await rig.ask("PUT", path(key), headers=asked)
            assert (texts(copied.body, "ChecksumSHA256"), texts(copied.body, "ChecksumCRC32")) == ([sha], [])
        assert code(await rig.ask("PUT", path("a"), headers=source)) == "InvalidRequest"


TRAILERS = {
    "x-amz-checksum-crc32:NSRBwg==": "",
    "x-amz-checksum-crc32:bad": "InvalidRequest",
    "x-amz-checksum-crc32:AAAAAA==": "BadDigest",
    "x-amz-checksum-sha1:qZk+NkcGgWq6PiVxeFDCbJzQ2J0=": "MalformedTrailerError",
    "": "MalformedTrailerError",
}


async def test_the_checksum_behind_a_body_is_the_one_that_was_announced(tmp_path: Path) -> None:
    streaming = {"payload": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}
    said = {"x-amz-decoded-content-length": "3", "x-amz-trailer": "x-amz-checksum-crc32"}
    async with running_door(tmp_path) as rig:
        for trailer, refusal in TRAILERS.items():
            end = f"{trailer}\r\n\r\n" if trailer else "\r\n"
            put = await rig.ask("PUT", path("a"), b"3\r\nabc\r\n0\r\n" + end.encode(), said, **streaming)
            assert (trailer, code(put) if put.body else "") == (trailer, refusal)
        both = {**said, "x-amz-checksum-crc32": "NSRBwg=="}
        refused = await rig.ask("PUT", path("a"), b"3\r\nabc\r\n0\r\n\r\n", both, **streaming)
        assert code(refused) == "InvalidRequest"


async def test_buckets_are_listed_with_their_region(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        assert texts((await rig.ask("GET", "/")).body, "BucketRegion") == ["us-east-1"]
