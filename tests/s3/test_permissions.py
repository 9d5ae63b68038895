"""Access control lists and ownership: what the access key and everybody may do is shown, and can be set to nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.caps import DirectoryCap
from grid.s3.accounts import PUBLIC, everybody
from grid.s3.names import OWNERSHIP
from tests.s3.rig import MAIN, READER, code, path, running_door, texts


async def test_a_list_of_permissions_names_the_access_key_and_what_it_may_do(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"1")
        for target in ("/bucket?acl", f"{path('a')}?acl"):
            shown = await rig.ask("GET", target)
            assert (texts(shown.body, "ID"), texts(shown.body, "Permission")) == ([MAIN, MAIN], ["FULL_CONTROL"])
            assert texts((await rig.ask("GET", target, key=READER)).body, "Permission") == ["READ"]
            assert code(await rig.ask("PUT", target, b"", {"x-amz-acl": "public-read"})) == "NotImplemented"
        assert code(await rig.ask("GET", f"{path('none')}?acl")) == "NoSuchKey"


async def test_the_objects_of_a_bucket_belong_to_its_owner(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        shown = await rig.ask("GET", "/bucket?ownershipControls")
        assert texts(shown.body, "ObjectOwnership") == ["BucketOwnerEnforced"]
        refused = await rig.ask("PUT", "/made", headers={"x-amz-object-ownership": "somebody"})
        assert code(refused) == "InvalidArgument"


@pytest.mark.parametrize("target", ["/bucket?acl", "/bucket/a?acl"])
async def test_a_list_can_be_set_to_what_it_is_and_to_nothing_else(tmp_path: Path, target: str) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"1")
        before = (await rig.ask("GET", target)).body
        for canned in ("private", "bucket-owner-full-control"):
            assert (await rig.ask("PUT", target, b"", {"x-amz-acl": canned})).status == 200
        for headers, body, refusal in (
            ({"x-amz-acl": "publicread"}, b"", "InvalidArgument"),
            ({"x-amz-acl": "public-read"}, b"", "NotImplemented"),
            ({"x-amz-acl": "private", "x-amz-grant-read": "id=x"}, b"", "NotImplemented"),
            ({"x-amz-acl": "private"}, before, "NotImplemented"),
            ({}, before, "NotImplemented"),
            ({}, b"", "NotImplemented"),
        ):
            assert code(await rig.ask("PUT", target, body, headers)) == refusal
        assert code(await rig.ask("PUT", target, b"", {"x-amz-acl": "private"}, key=READER)) == "AccessDenied"
        assert (await rig.ask("GET", target)).body == before


async def test_a_list_of_an_object_that_does_not_exist_cannot_be_set(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        assert code(await rig.ask("PUT", f"{path('none')}?acl", b"", {"x-amz-acl": "private"})) == "NoSuchKey"


@pytest.mark.parametrize("target", ["/mine", "/bucket/b"])
async def test_a_canned_list_that_does_not_exist_is_refused_wherever_it_is_named(tmp_path: Path, target: str) -> None:
    async with running_door(tmp_path) as rig:
        assert code(await rig.ask("PUT", target, b"", {"x-amz-acl": "publicread"})) == "InvalidArgument"
        assert code(await rig.ask("PUT", target, b"", {"x-amz-acl": "public-read"})) == "NotImplemented"
        assert (await rig.ask("HEAD", target)).status == 404


@pytest.mark.parametrize(
    ("owners", "refusal"),
    [
        (["BucketOwnerEnforced"], ""),
        (["ObjectWriter"], "NotImplemented"),
        (["BucketOwnerPreferred"], "NotImplemented"),
        (["somebody"], "MalformedXML"),
        (["BucketOwnerEnforced", "BucketOwnerEnforced"], "MalformedXML"),
        ([], "MalformedXML"),
    ],
)
async def test_the_owner_of_objects_can_be_set_to_that_of_the_bucket(
    tmp_path: Path, owners: list[str], refusal: str
) -> None:
    rules = "".join(f"<Rule><ObjectOwnership>{owner}</ObjectOwnership></Rule>" for owner in owners)
    body = f"<OwnershipControls>{rules}</OwnershipControls>".encode()
    async with running_door(tmp_path) as rig:
        reply = await rig.ask("PUT", "/bucket?ownershipControls", body)
        assert reply.status == 200 if not refusal else code(reply) == refusal
        if not refusal:
            assert code(await rig.ask("PUT", "/bucket?ownershipControls", body, key=READER)) == "AccessDenied"


async def test_a_bucket_whose_ownership_was_deleted_has_none_until_it_is_set_again(tmp_path: Path) -> None:
    target, rule = "?ownershipControls", "<Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule>"
    body = f"<OwnershipControls>{rule}</OwnershipControls>".encode()
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/mine")
        for bucket in ("/bucket", "/mine"):
            for _ in range(2):
                assert (await rig.ask("DELETE", bucket + target)).status == 204
            gone = await rig.ask("GET", bucket + target)
            assert (gone.status, code(gone)) == (404, "OwnershipControlsNotFoundError")
            assert await rig.keys(bucket=bucket[1:]) == []
        assert code(await rig.ask("DELETE", "/bucket" + target, key=READER)) == "AccessDenied"
        assert (await rig.ask("PUT", "/bucket" + target, body)).status == 200
        assert texts((await rig.ask("GET", "/bucket" + target)).body, "ObjectOwnership") == ["BucketOwnerEnforced"]
        assert (await rig.ask("DELETE", "/mine")).status == 204
        root = rig.rig.gateway.store.directory(rig.accounts[MAIN].buckets["bucket"])
        assert OWNERSHIP not in await root.list()


async def test_the_list_of_a_public_bucket_says_so_and_can_be_set_to_that(tmp_path: Path) -> None:
    upload = f"{path('parts')}?uploads"
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"1")
        await rig.ask("PUT", "/mine")
        rig.accounts[PUBLIC] = everybody({"site": rig.accounts[MAIN].buckets["bucket"]})
        public = {"x-amz-acl": "public-read"}
        for target in ("/bucket?acl", f"{path('a')}?acl"):
            shown = await rig.ask("GET", target)
            assert texts(shown.body, "Permission") == ["FULL_CONTROL", "READ"]
            assert texts(shown.body, "URI") == ["http://acs.amazonaws.com/groups/global/AllUsers"]
            for canned in ("public-read", "bucket-owner-full-control"):
                assert (await rig.ask("PUT", target, b"", {"x-amz-acl": canned})).status == 200
            for canned in ("private", "public-read-write", "authenticated-read"):
                refused = await rig.ask("PUT", target, b"", {"x-amz-acl": canned})
                assert code(refused) == "NotImplemented"
        assert (await rig.ask("PUT", path("b"), b"2", public)).status == 200
        assert (await rig.ask("PUT", path("c"), b"", {**public, "x-amz-copy-source": "/bucket/b"})).status == 200
        assert (await rig.ask("POST", upload, headers=public)).status == 200
        private = {"x-amz-acl": "private"}
        assert code(await rig.ask("PUT", path("d"), b"3", private)) == "NotImplemented"
        assert code(await rig.ask("POST", upload, headers=private)) == "NotImplemented"
        refused = await rig.ask("PUT", path("d", "mine"), b"3", public)
        assert (refused.status, code(refused)) == (501, "NotImplemented")
        assert "grid s3 public add" in texts(refused.body, "Message")[0]
        assert await rig.keys() == ["a", "b", "c"]
        assert await rig.keys(bucket="mine") == []


async def test_an_object_that_is_to_be_public_is_refused_where_the_bucket_has_just_become_private(
    tmp_path: Path,
) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/mine")
        home = rig.accounts[MAIN].home
        assert home is not None
        root = (await rig.rig.gateway.store.directory(home).list())["mine"].target
        assert isinstance(root, DirectoryCap)
        rig.accounts[PUBLIC] = everybody({"site": root})
        wire = await rig.connect()
        fields = {"Content-Length": "4", "x-amz-acl": "public-read", "Connection": "close"}
        wire.send(rig.head("PUT", path("a", "mine"), fields, payload="UNSIGNED-PAYLOAD") + b"da")
        assert (await rig.ask("GET", "/mine")).status == 200
        del rig.accounts[PUBLIC]
        wire.send(b"ta")
        assert code(await wire.reply()) == "NotImplemented"
        assert await rig.keys(bucket="mine") == []
