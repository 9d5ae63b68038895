"""Long documents of clients: how many elements they have, and what of them stays in memory."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from grid.s3.bucket import Bucket
from grid.s3.documents import Element
from tests.s3.rig import running_door, texts
from tests.s3.watched import until

COMPLETE = "<CompleteMultipartUpload>{}<Part><PartNumber>1</PartNumber><ETag>a</ETag></Part></CompleteMultipartUpload>"
RULE = "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>"
TAG = "<TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet>"


def wanted(count: int) -> bytes:
    fields = "<VersionId>null</VersionId><ETag>*</ETag><Size>1</Size><LastModifiedTime>x</LastModifiedTime>"
    said = "".join(f"<Object><Key>k{number:04}</Key>{fields}</Object>" for number in range(count))
    return f"<Delete><Quiet>false</Quiet>{said}</Delete>".encode()


@pytest.mark.parametrize(
    ("method", "target", "most", "document"),
    [
        ("POST", "?delete", 6100, "<Delete>{}</Delete>"),
        ("POST", "/a?uploadId=0", 60_000, COMPLETE),
        ("PUT", "?tagging", 500, f"<Tagging>{{}}{TAG}</Tagging>"),
        ("PUT", "?cors", 3000, f"<CORSConfiguration>{{}}{RULE}</CORSConfiguration>"),
    ],
    ids=["delete", "complete", "tagging", "cors"],
)
async def test_a_document_has_no_more_elements_than_its_operation_needs(
    tmp_path: Path, method: str, target: str, most: int, document: str
) -> None:
    async with running_door(tmp_path) as rig:
        for count, is_refused in ((most - 10, False), (most, True)):
            answer = await rig.ask(method, f"/bucket{target}", document.format("<a/>" * count).encode())
            assert (b"<Code>MalformedXML" in answer.body) is is_refused


async def test_a_deletion_of_a_thousand_objects_with_all_conditions_is_obeyed(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        assert len(wanted(1000)) > 2**16
        assert len(texts((await rig.ask("POST", "/bucket?delete", wanted(1000))).body, "Code")) == 1000


async def test_no_element_of_a_document_is_kept_while_its_objects_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []

    async def remove(*arguments: object) -> None:
        kept.append(sum(isinstance(each, Element) for each in gc.get_objects()))

    monkeypatch.setattr(Bucket, "remove", remove)
    async with running_door(tmp_path) as rig:
        assert (await rig.ask("POST", "/bucket?delete", wanted(3))).status == 200
        assert kept == [0, 0, 0]


async def test_a_long_document_waits_for_its_turn_in_the_spool(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        services = rig.door.services
        async with services.stores.documents.one(), services.stores.documents.one():
            long = Deferred.fromCoroutine(rig.ask("POST", "/bucket?delete", wanted(1000)))
            assert len(texts((await rig.ask("POST", "/bucket?delete", wanted(3))).body, "Code")) == 3
            turns = services.stores.documents._semaphore
            await until(lambda: bool(turns.waiting) or long.called)
            assert turns.waiting and not long.called
            assert services.settings.spools.held_size == len(wanted(1000))
        assert len(texts((await long).body, "Code")) == 1000
        assert services.settings.spools.held_size == 0
