"""Multipart uploads: the object has all parts in order, no bytes move, and no order of requests breaks one."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred, gatherResults

from grid.caps import SequenceCap
from grid.extents.reader import PIECE_BYTES
from grid.s3 import joining
from tests.s3.rig import MAIN, OTHER, READER, S3Rig, code, path, running_door, texts

PART = 5 * 2**20
KEY = path("deep/large")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "LEAST_PART", 100)


async def begin(rig: S3Rig, target: str = KEY, **headers: str) -> str:
    reply = await rig.ask("POST", f"{target}?uploads", headers=headers)
    assert reply.status == 200, reply
    return texts(reply.body, "UploadId")[0]


async def put_part(rig: S3Rig, upload: str, number: int, data: bytes, target: str = KEY, **headers: str) -> str:
    reply = await rig.ask("PUT", f"{target}?partNumber={number}&uploadId={upload}", data, headers)
    assert reply.status == 200, reply
    return reply.headers["etag"]


def named(parts: dict[int, str], checksums: Mapping[int, str] | None = None) -> bytes:
    """The document that completes an upload. checksums: elements by part number."""
    more = checksums or {}
    said = "".join(
        f"<Part><PartNumber>{n}</PartNumber><ETag>{etag}</ETag>{more.get(n, '')}</Part>" for n, etag in parts.items()
    )
    return f"<CompleteMultipartUpload>{said}</CompleteMultipartUpload>".encode()


async def test_an_object_in_parts_is_a_sequence_of_files_and_no_byte_moves_at_its_end(tmp_path: Path) -> None:
    pieces = [b"a" * PART, b"b" * PART, b"end"]
    async with running_door(tmp_path) as rig:
        upload = await begin(rig, **{"Content-Type": "text/large", "x-amz-meta-of": "it"})
        etags = {
            n: await put_part(rig, upload, n, piece) for n, piece in ((7, pieces[2]), (1, pieces[0]), (3, pieces[1]))
        }
        assert await rig.keys() == []
        stored = rig.rig.gateway.history.recent
        before = sum(operation.size or 0 for operation in stored if operation.kind == "upload")
        done = await rig.ask("POST", f"{KEY}?uploadId={upload}", named(dict(sorted(etags.items()))))
        digests = b"".join(hashlib.md5(piece).digest() for piece in pieces)
        assert texts(done.body, "ETag") == [f'"{hashlib.md5(digests).hexdigest()}-3"']
        after = sum(operation.size or 0 for operation in rig.rig.gateway.history.recent if operation.kind == "upload")
        assert after - before < 1000
        got = await rig.ask("GET", KEY)
        assert got.body == b"".join(pieces)
        assert (got.headers["content-type"], got.headers["x-amz-meta-of"]) == ("text/large", "it")
        part = await rig.ask("GET", f"{KEY}?partNumber=3")
        assert (part.status, part.body, part.headers["x-amz-mp-parts-count"]) == (206, b"end", "3")
        assert code(await rig.ask("GET", f"{KEY}?partNumber=4")) == "InvalidPartNumber"
        across = await rig.ask("GET", KEY, headers={"Range": f"bytes={PART - 2}-{PART + 1}"})
        assert across.body == b"aabb"
        root = rig.rig.gateway.store.directory(rig.accounts[MAIN].buckets["bucket"])
        assert isinstance((await root.get(["deep", "large"])).target, SequenceCap)
        assert texts((await rig.ask("GET", "/bucket?uploads")).body, "UploadId") == []


async def test_an_object_of_long_parts_opens_each_part_once_however_it_is_read(tmp_path: Path) -> None:
    size = PIECE_BYTES + 2**20
    pieces = [b"a" * size, b"b" * size]
    async with running_door(tmp_path) as rig:
        upload = await begin(rig)
        etags = {number: await put_part(rig, upload, number, piece) for number, piece in enumerate(pieces, 1)}
        await rig.ask("POST", f"{KEY}?uploadId={upload}", named(etags))
        opened = rig.rig.gateway.open_files.opened
        assert (await rig.ask("GET", KEY)).body == b"".join(pieces)
        for number, piece in enumerate(pieces, 1):
            assert (await rig.ask("GET", f"{KEY}?partNumber={number}")).body == piece
        across = await rig.ask("GET", KEY, headers={"Range": f"bytes={size - 2}-{2 * size - 2}"})
        assert across.body == b"aa" + pieces[1][1:]
        assert rig.rig.gateway.open_files.opened == opened + len([*pieces, "the table"])


@pytest.mark.usefixtures("small_parts")
async def test_parts_out_of_order_twice_missing_or_too_small_make_no_object(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        upload = await begin(rig)
        await put_part(rig, upload, 1, b"1" * 100)
        first = await put_part(rig, upload, 1, b"one" * 100)
        small, last = await put_part(rig, upload, 2, b"2"), await put_part(rig, upload, 3, b"3")
        old = '"' + hashlib.md5(b"1" * 100).hexdigest() + '"'
        wrong = {
            named({1: first, 2: small, 3: last}): "EntityTooSmall",
            named({3: last, 1: first}): "InvalidPartOrder",
            named({1: old}): "InvalidPart",
            named({4: last}): "InvalidPart",
            named({1: "no etag"}): "InvalidPart",
            named({}): "MalformedXML",
            b"<CompleteMultipartUpload>"
            + named({1: first})[25:-26] * 2
            + b"</CompleteMultipartUpload>": "InvalidPartOrder",
        }
        for body, expected in wrong.items():
            if expected:
                assert code(await rig.ask("POST", f"{KEY}?uploadId={upload}", body)) == expected
        assert await rig.keys() == []
        for number in ("0", "10001", "x", ""):
            reply = await rig.ask("PUT", f"{KEY}?partNumber={number}&uploadId={upload}", b"x")
            assert code(reply) == "InvalidArgument"
        assert (await rig.ask("POST", f"{KEY}?uploadId={upload}", named({1: first, 3: last}))).status == 200
        assert (await rig.ask("GET", KEY)).body == b"one" * 100 + b"3"


async def test_a_completion_that_is_repeated_is_answered_again_and_another_one_is_not(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        upload = await begin(rig)
        etag = await put_part(rig, upload, 1, b"data")
        target = f"{KEY}?uploadId={upload}"
        first = await rig.ask("POST", target, named({1: etag}))
        again = await rig.ask("POST", target, named({1: etag}))
        assert first.status == again.status == 200
        assert texts(first.body, "ETag") == texts(again.body, "ETag")
        other = named({1: '"' + "0" * 32 + '"'})
        assert code(await rig.ask("POST", target, other)) == "NoSuchUpload"
        assert code(await rig.ask("PUT", f"{KEY}?partNumber=2&uploadId={upload}", b"x")) == "NoSuchUpload"


async def test_an_upload_that_was_aborted_takes_and_makes_nothing(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        upload = await begin(rig)
        etag = await put_part(rig, upload, 1, b"data")
        assert (await rig.ask("DELETE", f"{KEY}?uploadId={upload}")).status == 204
        for reply in (
            await rig.ask("DELETE", f"{KEY}?uploadId={upload}"),
            await rig.ask("PUT", f"{KEY}?partNumber=2&uploadId={upload}", b"x"),
            await rig.ask("POST", f"{KEY}?uploadId={upload}", named({1: etag})),
            await rig.ask("GET", f"{KEY}?uploadId={upload}"),
        ):
            assert (reply.status, code(reply)) == (404, "NoSuchUpload")
        assert await rig.keys() == []


async def test_an_abort_during_a_completion_leaves_a_whole_object_or_none(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for attempt in range(4):
            target = path(f"key{attempt}")
            upload = await begin(rig, target)
            etag = await put_part(rig, upload, 1, b"data", target)
            asked = [
                rig.ask("POST", f"{target}?uploadId={upload}", named({1: etag})),
                rig.ask("DELETE", f"{target}?uploadId={upload}"),
            ]
            done, _ = await gatherResults([Deferred.fromCoroutine(each) for each in asked])
            got = await rig.ask("GET", target)
            assert (done.status, got.status) in ((200, 200), (404, 404))
            assert got.status != 200 or got.body == b"data"
        assert texts((await rig.ask("GET", "/bucket?uploads")).body, "UploadId") == []


@pytest.mark.parametrize("key", [READER, OTHER])
async def test_an_upload_is_out_of_reach_of_keys_that_may_not_write(tmp_path: Path, key: str) -> None:
    async with running_door(tmp_path) as rig:
        upload = await begin(rig)
        etag = await put_part(rig, upload, 1, b"data")
        refused = [
            await rig.ask("POST", f"{KEY}?uploads", key=key),
            await rig.ask("PUT", f"{KEY}?partNumber=1&uploadId={upload}", b"x", key=key),
            await rig.ask("POST", f"{KEY}?uploadId={upload}", named({1: etag}), key=key),
            await rig.ask("DELETE", f"{KEY}?uploadId={upload}", key=key),
        ]
        assert {code(reply) for reply in refused} == {"AccessDenied" if key == READER else "NoSuchBucket"}
        assert texts((await rig.ask("GET", f"{KEY}?uploadId={upload}")).body, "PartNumber") == ["1"]


@pytest.mark.usefixtures("small_parts")
async def test_a_copied_part_has_the_bytes_of_the_range_and_moves_none(tmp_path: Path) -> None:
    data = bytes(range(256)) * 160
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("source"), data)
        upload = await begin(rig)
        target, etags = f"{KEY}?uploadId={upload}", {}
        source = {"x-amz-copy-source": "/bucket/source"}
        for number, part in enumerate(("bytes=10-20009", None, "bytes=0-0"), 1):
            said = source if part is None else {**source, "x-amz-copy-source-range": part}
            reply = await rig.ask("PUT", f"{target}&partNumber={number}", headers=said)
            etags[number] = texts(reply.body, "ETag")[0]
        expected = data[10:20010] + data + data[:1]
        assert (await rig.ask("POST", target, named(etags))).status == 200
        assert (await rig.ask("GET", KEY)).body == expected
        again = await begin(rig, path("again"))
        target = f"{path('again')}?uploadId={again}"
        both = {"x-amz-copy-source": "/bucket/deep/large", "x-amz-copy-source-range": "bytes=19000-30000"}
        reply = await rig.ask("PUT", f"{target}&partNumber=1", headers=both)
        assert (await rig.ask("POST", target, named({1: texts(reply.body, "ETag")[0]}))).status == 200
        assert (await rig.ask("GET", path("again"))).body == expected[19000:30001]
        upload = await begin(rig)
        for part, status in (("bytes=0-40960", 416), ("bytes=5-4", 400), ("bytes=-5", 400), ("0-5", 400)):
            said = {**source, "x-amz-copy-source-range": part}
            assert (await rig.ask("PUT", f"{KEY}?uploadId={upload}&partNumber=1", headers=said)).status == status
        uploads = [operation.size or 0 for operation in rig.rig.gateway.history.recent if operation.kind == "upload"]
        assert sum(uploads) < len(data) + 5000


@pytest.mark.usefixtures("small_parts")
async def test_attributes_of_an_object_in_parts_list_them_by_pages(tmp_path: Path) -> None:
    sizes = [150, 150, 150, 7]
    async with running_door(tmp_path) as rig:
        upload = await begin(rig)
        etags = {n: await put_part(rig, upload, n, b"p" * size) for n, size in enumerate(sizes, 1)}
        await rig.ask("POST", f"{KEY}?uploadId={upload}", named(etags))
        wanted = {"x-amz-object-attributes": "ObjectParts", "x-amz-max-parts": "2"}
        first = (await rig.ask("GET", f"{KEY}?attributes", headers=wanted)).body
        rest = (await rig.ask("GET", f"{KEY}?attributes", headers={**wanted, "x-amz-part-number-marker": "2"})).body
        assert [texts(page, "PartNumber") for page in (first, rest)] == [["1", "2"], ["3", "4"]]
        assert [texts(page, "Size") for page in (first, rest)] == [["150", "150"], ["150", "7"]]
        assert [texts(page, "IsTruncated") for page in (first, rest)] == [["true"], ["false"]]
        assert [texts(page, "NextPartNumberMarker") for page in (first, rest)] == [["2"], ["4"]]
        beyond = await rig.ask("GET", f"{KEY}?attributes", headers={**wanted, "x-amz-part-number-marker": "999999999"})
        assert (texts(beyond.body, "PartNumber"), texts(beyond.body, "PartsCount")) == ([], ["4"])
        wrong = await rig.ask("GET", f"{KEY}?attributes", headers={**wanted, "x-amz-max-parts": "-1"})
        assert code(wrong) == "InvalidArgument"


@pytest.mark.usefixtures("small_parts")
async def test_lists_of_uploads_and_parts_come_by_pages(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        keys = ["a", "a", "b/1", "b/2", "c"]
        begun = [(key, await begin(rig, path(key))) for key in keys]
        found, after = [], ""
        for _ in range(10):
            body = (await rig.ask("GET", f"/bucket?uploads&max-uploads=2{after}")).body
            found += list(zip(texts(body, "Key"), texts(body, "UploadId"), strict=True))
            if texts(body, "IsTruncated") == ["false"]:
                break
            key, upload = texts(body, "NextKeyMarker")[0], texts(body, "NextUploadIdMarker")[0]
            after = f"&key-marker={key}&upload-id-marker={upload}"
        assert sorted(found) == sorted(begun)
        short = (await rig.ask("GET", "/bucket?uploads&delimiter=/&prefix=b")).body
        assert texts(short, "Prefix")[1:] == ["b/"]
        target = f"{path('c')}?uploadId={begun[-1][1]}"
        for number in (9, 2, 5):
            await put_part(rig, begun[-1][1], number, b"%d" % number, path("c"))
        first = (await rig.ask("GET", f"{target}&max-parts=2")).body
        assert (texts(first, "PartNumber"), texts(first, "NextPartNumberMarker")) == (["2", "5"], ["5"])
        rest = (await rig.ask("GET", f"{target}&max-parts=2&part-number-marker=5")).body
        assert (texts(rest, "PartNumber"), texts(rest, "IsTruncated")) == (["9"], ["false"])


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    ("algorithm", "kind"), [("CRC32", "FULL_OBJECT"), ("CRC32", "COMPOSITE"), ("SHA256", "COMPOSITE")]
)
async def test_an_object_in_parts_has_the_checksum_that_was_asked_for(
    tmp_path: Path, algorithm: str, kind: str
) -> None:
    pieces = [b"a" * 150, b"b" * 100, b"c"]
    async with running_door(tmp_path) as rig:
        said = {"x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": kind}
        upload = await begin(rig, **said)
        asked = {"x-amz-sdk-checksum-algorithm": algorithm}
        etags = {n: await put_part(rig, upload, n, piece, **asked) for n, piece in enumerate(pieces, 1)}
        listed = texts((await rig.ask("GET", f"{KEY}?uploadId={upload}")).body, f"Checksum{algorithm}")
        sums = {n: f"<Checksum{algorithm}>{value}</Checksum{algorithm}>" for n, value in enumerate(listed, 1)}
        name = f"x-amz-checksum-{algorithm.lower()}"
        zeros = base64.b64encode(bytes(4 if algorithm == "CRC32" else 32)).decode()
        wrong = await rig.ask("POST", f"{KEY}?uploadId={upload}", named(etags, sums), {name: zeros})
        assert code(wrong) == "BadDigest"
        assert (await rig.ask("POST", f"{KEY}?uploadId={upload}", named(etags, sums))).status == 200
        got = await rig.ask("HEAD", KEY, headers={"x-amz-checksum-mode": "ENABLED"})
        assert got.headers["x-amz-checksum-type"] == kind
        whole = await rig.ask("PUT", path("whole"), b"".join(pieces), {name: got.headers[name]})
        assert whole.status == (200 if kind == "FULL_OBJECT" else 400)
        assert got.headers[name].endswith("-3") == (kind == "COMPOSITE")


@pytest.mark.usefixtures("small_parts")
async def test_parts_have_the_checksum_of_their_upload(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        upload = await begin(rig, **{"x-amz-checksum-algorithm": "SHA256"})
        target = f"{KEY}?partNumber=1&uploadId={upload}"
        assert code(await rig.ask("PUT", target, b"1")) == "InvalidRequest"
        assert code(await rig.ask("PUT", target, b"1", {"x-amz-checksum-crc32": "g9zdtw=="})) == "InvalidRequest"
        asked = {"x-amz-sdk-checksum-algorithm": "SHA256"}
        etag = (await rig.ask("PUT", target, b"1", asked)).headers["etag"]
        refused = await rig.ask("POST", f"{KEY}?uploadId={upload}", named({1: etag}))
        assert "missing for part 1" in texts(refused.body, "Message")[0]
        whole = {"x-amz-checksum-type": "FULL_OBJECT"}
        assert code(await rig.ask("POST", f"{KEY}?uploadId={upload}", named({1: etag}), whole)) == "InvalidRequest"


async def test_an_upload_is_aborted_only_if_it_was_begun_at_the_time_of_the_request(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        upload = await begin(rig)
        old = {"x-amz-if-match-initiated-time": "Mon, 01 Jan 2001 00:00:00 GMT"}
        assert code(await rig.ask("DELETE", f"{KEY}?uploadId={upload}", headers=old)) == "PreconditionFailed"
        begun = texts((await rig.ask("GET", "/bucket?uploads")).body, "Initiated")[0]
        right = {"x-amz-if-match-initiated-time": begun}
        assert (await rig.ask("DELETE", f"{KEY}?uploadId={upload}", headers=right)).status == 204


@pytest.mark.usefixtures("small_parts")
async def test_a_page_of_no_entries_is_not_followed_by_another(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        upload = await begin(rig)
        etags = {number: await put_part(rig, upload, number, b"data" * 50) for number in (1, 2)}
        attributes = {"x-amz-object-attributes": "ObjectParts", "x-amz-max-parts": "0"}
        pages = [
            (await rig.ask("GET", "/bucket?uploads&max-uploads=0")).body,
            (await rig.ask("GET", f"{KEY}?uploadId={upload}&max-parts=0")).body,
        ]
        await rig.ask("POST", f"{KEY}?uploadId={upload}", named(etags))
        pages.append((await rig.ask("GET", f"{KEY}?attributes", headers=attributes)).body)
        pages.append((await rig.ask("GET", "/bucket?max-keys=0")).body)
        assert [texts(page, "IsTruncated") for page in pages] == [["false"]] * 4


@pytest.mark.usefixtures("small_parts")
async def test_of_completions_with_other_parts_that_must_be_first_only_one_succeeds(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        upload = await begin(rig)
        etags = {number: await put_part(rig, upload, number, b"data" * 50) for number in (1, 2)}
        asked = [
            rig.ask("POST", f"{KEY}?uploadId={upload}", named(parts), {"If-None-Match": "*"})
            for parts in (etags, {1: etags[1]})
        ]
        done = await gatherResults([Deferred.fromCoroutine(each) for each in asked])
        assert sorted(reply.status for reply in done) in ([200, 412], [200, 404])
        first = next(reply for reply in done if reply.status == 200)
        assert (await rig.ask("HEAD", KEY)).headers["etag"] == texts(first.body, "ETag")[0]
        again = await rig.ask("POST", f"{KEY}?uploadId={upload}", named(etags), {"If-None-Match": "*"})
        assert again.status == (200 if first is done[0] else 404), "who missed the answer gets it again"
