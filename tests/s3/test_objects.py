"""Objects through the door: a get returns what was put, under any key, with all its attributes."""

from __future__ import annotations

import base64
import hashlib
import zlib
from pathlib import Path
from urllib.parse import quote

import pytest

from grid.directory.edits import SetChild
from grid.mutable.sources import MemorySource
from tests.s3.rig import MAIN, OTHER, code, path, running_door, texts

KEYS = [
    "a",
    "a/b",
    "a//b",
    "a/",
    "a/b/",
    "..",
    "a/../b",
    "/lead",
    "%x",
    "%=x",
    "\u00e9",
    "e\u0301",
    " +&",
    "a\x01b",
    ".",
]


async def test_keys_that_no_directory_could_hold_as_they_are_keep_their_objects_apart(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for key in KEYS:
            assert (await rig.ask("PUT", path(key), key.encode())).status == 200
        for key in KEYS:
            assert (await rig.ask("GET", path(key))).body == key.encode()
        listed = await rig.keys("&encoding-type=url")
        assert listed == [quote(key, safe="/*-_.~") for key in sorted(KEYS)]
        for key in KEYS:
            assert (await rig.ask("DELETE", path(key))).status == 204
        assert await rig.keys() == []


@pytest.mark.parametrize("order", [("a", "a/b"), ("a/b", "a")])
async def test_an_object_beside_a_directory_of_its_name_is_found_whichever_came_first(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    async with running_door(tmp_path) as rig:
        for key in order:
            await rig.ask("PUT", path(key), key.encode())
        await rig.ask("PUT", path("a"), b"again")
        assert await rig.keys() == ["a", "a/b"]
        assert (await rig.ask("GET", path("a"))).body == b"again"
        await rig.ask("DELETE", path("a/b"))
        assert (await rig.ask("GET", path("a"))).body == b"again"
        await rig.ask("DELETE", path("a"))
        assert (await rig.ask("GET", path("a"))).status == 404


async def test_attributes_of_an_object_come_back_with_it(tmp_path: Path) -> None:
    data = bytes(range(256)) * 2000
    crc = base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()
    headers = {
        "Content-Type": "text/x; charset=utf-8",
        "Content-Encoding": "deflate, gzip, aws-chunked",
        "Cache-Control": "max-age=5",
        "x-amz-meta-color": "r\u00e9d",
        "x-amz-checksum-crc32": crc,
        "x-amz-tagging": "l=v&k",
    }
    async with running_door(tmp_path) as rig:
        put = await rig.ask("PUT", path("docs/a.txt"), data, headers)
        assert (put.status, put.headers["etag"]) == (200, f'"{hashlib.md5(data).hexdigest()}"')
        got = await rig.ask("GET", path("docs/a.txt"), headers={"x-amz-checksum-mode": "ENABLED"})
        assert got.body == data
        for name, value in {**headers, "Content-Encoding": "deflate, gzip", "etag": put.headers["etag"]}.items():
            if name != "x-amz-tagging":
                assert got.headers[name.lower()].encode("latin-1").decode("utf-8") == value
        assert texts((await rig.ask("GET", path("docs/a.txt") + "?tagging")).body, "Key") == ["k", "l"]
        assert texts((await rig.ask("GET", path("docs/a.txt") + "?tagging")).body, "Value") == ["", "v"]
        head = await rig.ask("HEAD", path("docs/a.txt"))
        assert (head.status, head.headers["content-length"]) == (200, str(len(data)))
        part = await rig.ask("GET", path("docs/a.txt"), headers={"Range": "bytes=-7"})
        assert (part.status, part.body) == (206, data[-7:])
        assert part.headers["content-range"] == f"bytes {len(data) - 7}-{len(data) - 1}/{len(data)}"
        behind = await rig.ask("GET", path("docs/a.txt"), headers={"Range": f"bytes={len(data)}-"})
        assert (behind.status, code(behind)) == (416, "InvalidRange")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-Match": "ETAG"}, 200),
        ({"If-Match": '"other", ETAG'}, 200),
        ({"If-Match": '"other"'}, 412),
        ({"If-None-Match": "ETAG"}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"other"'}, 200),
        ({"If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"}, 200),
        ({"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"}, 304),
        ({"If-Unmodified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"}, 412),
        ({"If-Unmodified-Since": "Sun, 06 Nov 1994 08:49:37 GMT", "If-Match": "ETAG"}, 200),
        ({"If-None-Match": '"other"', "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"}, 200),
        ({"If-Modified-Since": "no date"}, 200),
    ],
)
async def test_conditions_of_a_read_are_judged_as_http_has_them(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with running_door(tmp_path) as rig:
        etag = (await rig.ask("PUT", path("a"), b"data")).headers["etag"]
        said = {name: value.replace("ETAG", etag) for name, value in headers.items()}
        for method in ("GET", "HEAD"):
            assert (await rig.ask(method, path("a"), headers=said)).status == status


async def test_conditions_of_a_put_are_judged_by_what_is_there(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        assert (await rig.ask("PUT", path("a"), b"1", {"If-Match": '"other"'})).status == 404
        first = await rig.ask("PUT", path("a"), b"1", {"If-None-Match": "*"})
        assert first.status == 200
        assert code(await rig.ask("PUT", path("a"), b"1", {"If-None-Match": "*"})) == "PreconditionFailed"
        for condition in ({"If-Match": '"other"'}, {"If-None-Match": first.headers["etag"]}):
            assert code(await rig.ask("PUT", path("a"), b"2", condition)) == "PreconditionFailed"
        assert (await rig.ask("PUT", path("a"), b"1", {"If-None-Match": '"other"'})).status == 200
        assert (await rig.ask("PUT", path("a"), b"3", {"If-Match": first.headers["etag"]})).status == 200
        assert (await rig.ask("GET", path("a"))).body == b"3"


async def test_a_copy_links_the_file_and_stores_none(tmp_path: Path) -> None:
    data = bytes(5000)
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), data, {"x-amz-meta-of": "a"})
        stored = [operation for operation in rig.rig.gateway.history.recent if operation.kind == "upload"]
        source = {"x-amz-copy-source": quote("/bucket/a")}
        assert (await rig.ask("PUT", path("deep/b"), headers=source)).status == 200
        replaced = {**source, "x-amz-metadata-directive": "REPLACE", "x-amz-meta-of": "c"}
        assert (await rig.ask("PUT", path("c"), headers=replaced)).status == 200
        assert [operation for operation in rig.rig.gateway.history.recent if operation.kind == "upload"] == stored
        for key, of in (("deep/b", "a"), ("c", "c")):
            got = await rig.ask("GET", path(key))
            assert (got.body, got.headers["x-amz-meta-of"]) == (data, of)
        assert code(await rig.ask("PUT", path("a"), headers=source)) == "InvalidRequest"
        absent = {"x-amz-copy-source": "/bucket/absent"}
        assert code(await rig.ask("PUT", path("d"), headers=absent)) == "NoSuchKey"
        unequal = {**source, "x-amz-copy-source-if-match": '"other"'}
        assert code(await rig.ask("PUT", path("d"), headers=unequal)) == "PreconditionFailed"


async def test_files_that_other_programs_linked_are_objects(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        store = rig.rig.gateway.store
        root = rig.accounts["GKMAIN"].buckets["bucket"]
        large = await store.put_immutable(MemorySource(bytes(1000)))
        mutable = await store.put_mutable(b"changes")
        await store.directory(root).edit([SetChild("large", large), SetChild("mutable", mutable)])
        assert (await rig.ask("GET", path("large"))).body == bytes(1000)
        assert (await rig.ask("GET", path("mutable"), headers={"Range": "bytes=1-3"})).body == b"han"
        listed = await rig.ask("GET", "/bucket")
        assert texts(listed.body, "Size") == ["1000", "7"]
        assert all("-" in etag for etag in texts(listed.body, "ETag"))


async def test_a_mutable_file_satisfies_no_condition_that_depends_on_its_contents(tmp_path: Path) -> None:
    late, now = "Fri, 01 Jan 2100 00:00:00 GMT", {"x-amz-if-match-last-modified-time": "1970-01-01T00:00:00Z"}
    async with running_door(tmp_path) as rig:
        store = rig.rig.gateway.store
        mutable = await store.put_mutable(b"one version")
        await store.directory(rig.accounts["GKMAIN"].buckets["bucket"]).edit([SetChild("a", mutable, {})])
        etag = (await rig.ask("HEAD", path("a"))).headers["etag"]
        await store.open_mutable(mutable).overwrite(b"two version")
        for headers, status, body in (
            ({"If-None-Match": etag}, 200, b"two version"),
            ({"If-Modified-Since": late}, 200, b"two version"),
            ({"If-Range": etag, "Range": "bytes=0-2"}, 200, b"two version"),
            ({"If-Match": "*", "Range": "bytes=0-2"}, 206, b"two"),
            ({"If-Match": etag}, 412, None),
            ({"If-Unmodified-Since": late}, 412, None),
        ):
            got = await rig.ask("GET", path("a"), headers=headers)
            assert (headers, got.status) == (headers, status)
            assert body in (None, got.body)
        assert (await rig.ask("PUT", path("a"), b"1", {"If-Match": etag})).status == 412
        assert (await rig.ask("PUT", path("a"), b"1", {"If-None-Match": "*"})).status == 412
        for headers in ({"If-Match": etag}, now):
            assert (await rig.ask("DELETE", path("a"), headers=headers)).status == 412
        assert (await rig.ask("DELETE", path("a"), headers={"If-Match": "*"})).status == 204


async def test_a_link_that_another_program_replaced_keeps_no_attributes_of_the_door(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"old", {"Content-Type": "text/old"})
        store = rig.rig.gateway.store
        other = await store.put_immutable(MemorySource(b"new"))
        await store.directory(rig.accounts["GKMAIN"].buckets["bucket"]).edit([SetChild("a", other)])
        got = await rig.ask("GET", path("a"))
        assert (got.body, got.headers["content-type"]) == (b"new", "binary/octet-stream")
        assert hashlib.md5(b"old").hexdigest() not in got.headers["etag"]


async def test_buckets_are_made_and_removed_where_a_key_has_its_own(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        assert (await rig.ask("PUT", "/mine")).status == 200
        assert code(await rig.ask("PUT", "/mine")) == "BucketAlreadyOwnedByYou"
        assert texts((await rig.ask("GET", "/")).body, "Name") == ["bucket", "mine"]
        assert texts((await rig.ask("GET", "/", key=OTHER)).body, "Name") == []
        assert (await rig.ask("HEAD", "/mine", key=OTHER)).status == 404
        await rig.ask("PUT", path("deep/a", "mine"), b"1")
        assert code(await rig.ask("DELETE", "/mine")) == "BucketNotEmpty"
        await rig.ask("DELETE", path("deep/a", "mine"))
        assert (await rig.ask("DELETE", "/mine")).status == 204
        assert code(await rig.ask("GET", "/mine")) == "NoSuchBucket"
        assert code(await rig.ask("DELETE", "/bucket")) == "AccessDenied"
        for name in ("UPPER", "ab", "a" * 64, "a..b", "a.-b", "a-.b", "-ab", "ab-", "1.2.3.4", "%21uploads"):
            assert code(await rig.ask("PUT", f"/{name}")) == "InvalidBucketName"


async def test_a_bucket_with_what_the_door_could_not_keep_is_refused(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for owner, status in (("ObjectWriter", 501), ("BucketOwnerPreferred", 501), ("BucketOwnerEnforced", 200)):
            reply = await rig.ask("PUT", "/mine", b"", {"x-amz-object-ownership": owner})
            assert reply.status == status


async def test_buckets_are_listed_by_pages(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for name in ("mine", "mine-too", "yours"):
            await rig.ask("PUT", f"/{name}")
        found, query = [], "?max-buckets=2"
        while query:
            page = (await rig.ask("GET", f"/{query}")).body
            found.append(texts(page, "Name"))
            token = "".join(texts(page, "ContinuationToken"))
            query = token and f"?continuation-token={quote(token)}&max-buckets=2"
        assert found == [["bucket", "mine"], ["mine-too", "yours"]]
        assert texts((await rig.ask("GET", "/?prefix=mine")).body, "Name") == ["mine", "mine-too"]
        assert code(await rig.ask("GET", "/?max-buckets=0")) == "InvalidArgument"
        assert code(await rig.ask("GET", "/?continuation-token=x")) == "InvalidArgument"


@pytest.mark.parametrize(
    ("header", "element", "right", "wrong", "nonsense"),
    [
        ("If-Match", "ETag", "ETAG", '"other"', None),
        ("x-amz-if-match-size", "Size", "4", "5", "-4"),
        ("x-amz-if-match-last-modified-time", "LastModifiedTime", "MODIFIED", "Sun, 06 Nov 1994 08:49:37 GMT", "soon"),
        ("x-amz-if-match-last-modified-time", "LastModifiedTime", "MODIFIED", "1994-11-06T08:49:37Z", "1994-13-06"),
    ],
)
async def test_conditions_of_a_delete_are_judged_by_what_is_there(
    tmp_path: Path, header: str, element: str, right: str, wrong: str, nonsense: str | None
) -> None:
    async with running_door(tmp_path) as rig:
        for by_one in (True, False):
            etag = (await rig.ask("PUT", path("a"), b"data")).headers["etag"]
            modified = (await rig.ask("HEAD", path("a"))).headers["last-modified"]

            async def delete(value: str, by_one: bool = by_one) -> str:
                said = f"<Delete><Object><Key>a</Key><{element}>{value}</{element}></Object></Delete>"
                if by_one:
                    reply = await rig.ask("DELETE", path("a"), headers={header: value})
                else:
                    reply = await rig.ask("POST", "/bucket?delete", said.encode())
                return code(reply) if reply.body else ""

            if nonsense is not None:
                assert await delete(nonsense) == "InvalidArgument"
            assert await delete(wrong) == "PreconditionFailed"
            assert await rig.keys() == ["a"]
            assert await delete(right.replace("ETAG", etag).replace("MODIFIED", modified)) == ""
            assert await rig.keys() == []
            assert await delete(wrong) == "", "nothing is there that could be another object"


async def test_many_objects_are_removed_in_one_request(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for key in ("a", "b/c", "b/d"):
            await rig.ask("PUT", path(key), b"1")
        wanted = "".join(f"<Object><Key>{key}</Key></Object>" for key in ("a", "b/c", "absent", "k" * 1025))
        body = f"<Delete>{wanted}</Delete>".encode()
        said = await rig.ask("POST", "/bucket?delete", body)
        assert sorted(texts(said.body, "Code")) == ["KeyTooLongError"]
        assert texts(said.body, "Key")[:3] == ["a", "b/c", "absent"]
        assert await rig.keys() == ["b/d"]
        many = b"<Delete>" + b"<Object><Key>a</Key></Object>" * 1001 + b"</Delete>"
        assert code(await rig.ask("POST", "/bucket?delete", many)) == "MalformedXML"


@pytest.mark.parametrize("moment", [-1e11, 2.0**39, 1e12])
async def test_a_time_that_no_calendar_has_keeps_nobody_from_an_object(tmp_path: Path, moment: float) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"1")
        store = rig.rig.gateway.store.directory(rig.accounts[MAIN].buckets["bucket"])
        child = (await store.list())["a"]
        said = dict((child.metadata or {})["s3"])  # type: ignore[call-overload]
        await store.edit([SetChild("a", child.target, {"s3": {**said, "modified": moment}})])
        for method in ("GET", "HEAD"):
            assert (await rig.ask(method, path("a"))).status == 200
        assert (await rig.ask("GET", "/bucket/a?attributes", headers={"x-amz-object-attributes": "ETag"})).status == 200
        assert (await rig.ask("PUT", path("b"), headers={"x-amz-copy-source": "/bucket/a"})).status == 200
        assert await rig.keys() == ["a", "b"]
