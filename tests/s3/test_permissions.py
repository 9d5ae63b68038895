"""Access control lists and ownership: what the access key may do is shown, and can be set to nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

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
