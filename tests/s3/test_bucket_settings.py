"""Settings of a bucket: they are kept in its directory, belong to nobody's objects, and go with the bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.s3.rig import READER, code, path, running_door, texts

BUCKETS = ("bucket", "mine")


def tagging(tags: dict[str, str]) -> bytes:
    """A document with these tags."""
    shown = "".join(f"<Tag><Key>{key}</Key><Value>{value}</Value></Tag>" for key, value in tags.items())
    return f"<Tagging><TagSet>{shown}</TagSet></Tagging>".encode()


@pytest.mark.parametrize("bucket", BUCKETS)
async def test_tags_of_a_bucket_are_kept_replaced_and_removed(tmp_path: Path, bucket: str) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/mine")
        target = f"/{bucket}?tagging"
        assert code(await rig.ask("GET", target)) == "NoSuchTagSet"
        for tags in ({"team": "blue", "\u00e9": ""}, {"cost": "7"}):
            assert (await rig.ask("PUT", target, tagging(tags))).status == 204
            shown = (await rig.ask("GET", target)).body
            assert dict(zip(texts(shown, "Key"), texts(shown, "Value"), strict=True)) == tags
        assert await rig.keys(bucket=bucket) == []
        for _ in range(2):
            assert (await rig.ask("DELETE", target)).status == 204
            assert code(await rig.ask("GET", target)) == "NoSuchTagSet"


async def test_an_empty_list_of_tags_removes_those_of_a_bucket(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/bucket?tagging", tagging({"a": "b"}))
        assert (await rig.ask("PUT", "/bucket?tagging", tagging({}))).status == 204
        assert code(await rig.ask("GET", "/bucket?tagging")) == "NoSuchTagSet"


async def test_a_key_that_only_reads_sees_the_tags_of_a_bucket_and_changes_none(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/bucket?tagging", tagging({"a": "b"}))
        for method, body in (("PUT", tagging({"c": "d"})), ("DELETE", b"")):
            assert code(await rig.ask(method, "/bucket?tagging", body, key=READER)) == "AccessDenied"
        assert texts((await rig.ask("GET", "/bucket?tagging", key=READER)).body, "Key") == ["a"]


async def test_a_bucket_is_created_with_tags_and_deleted_with_them(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        tags = b"<Tags><Tag><Key>k</Key><Value>v</Value></Tag></Tags>"
        body = b"<CreateBucketConfiguration>%s</CreateBucketConfiguration>"
        assert (await rig.ask("PUT", "/mine", body % tags)).status == 200
        assert texts((await rig.ask("GET", "/mine?tagging")).body, "Value") == ["v"]
        assert (await rig.ask("DELETE", "/mine")).status == 204
        assert code(await rig.ask("GET", "/mine?tagging")) == "NoSuchBucket"
        assert code(await rig.ask("PUT", "/mine?tagging", tagging({"a": "b"}))) == "NoSuchBucket"
        assert (await rig.ask("PUT", "/mine", body % b"")).status == 200
        assert code(await rig.ask("GET", "/mine?tagging")) == "NoSuchTagSet"


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        (tagging({f"key {number}": "" for number in range(51)}), "BadRequest"),
        (tagging({"k" * 129: ""}), "InvalidTag"),
        (tagging({"k": "v" * 257}), "InvalidTag"),
        (tagging({"k": "#"}), "InvalidTag"),
        (tagging({"": "v"}), "InvalidTag"),
        (tagging({"k": "v"}).replace(b"</TagSet>", b"<Tag><Key>k</Key><Value/></Tag></TagSet>"), "InvalidTag"),
        (b"<Tagging>", "MalformedXML"),
        (b"<Others/>", "MalformedXML"),
        (tagging({f"{number:02}" + 120 * "\u00e9": 256 * "\u00e9" for number in range(50)}), "InvalidRequest"),
    ],
)
async def test_tags_that_a_bucket_cannot_have_are_refused(tmp_path: Path, document: bytes, refusal: str) -> None:
    async with running_door(tmp_path) as rig:
        body = b"<CreateBucketConfiguration>%s</CreateBucketConfiguration>"
        assert code(await rig.ask("PUT", "/bucket?tagging", document)) == refusal
        if refusal != "MalformedXML":
            inside = document.removeprefix(b"<Tagging>").removesuffix(b"</Tagging>").replace(b"TagSet>", b"Tags>")
            assert code(await rig.ask("PUT", "/mine", body % inside)) == refusal
            assert (await rig.ask("HEAD", "/mine")).status == 404
        assert code(await rig.ask("GET", "/bucket?tagging")) == "NoSuchTagSet"


async def test_a_key_of_the_name_of_a_setting_is_an_object_beside_it(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/bucket?tagging", tagging({"a": "b"}))
        assert (await rig.ask("PUT", path("%!tags"), b"an object")).status == 200
        assert await rig.keys() == ["%!tags"]
        assert (await rig.ask("GET", path("%!tags"))).body == b"an object"
        assert texts((await rig.ask("GET", "/bucket?tagging")).body, "Key") == ["a"]
