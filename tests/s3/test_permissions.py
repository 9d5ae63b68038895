"""Access control lists and ownership: what the access key may do is shown, and nothing about it can be changed."""

from __future__ import annotations

from pathlib import Path

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
