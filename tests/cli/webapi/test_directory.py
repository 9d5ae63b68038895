"""Directories behind a gateway: the requests sent, and answers that cannot be right."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import pytest

from grid.caps import DirectoryCap, UnknownChild
from grid.caps.values import ChkCap, SdmfWriteCap
from grid.cli.webapi.refusals import GatewayError
from grid.cli.webapi.shapes import describe_link, parse_child
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.store import Trail
from grid.errors import (
    AuthorityError,
    ChildOfWrongTypeError,
    ExistingChildError,
    GridError,
    NoSuchChildError,
    NotWriteableError,
)
from tests.cli.webapi.scripted import Asked, Reply, reply, scripted

DIRECTORY = DirectoryCap(SdmfWriteCap(write_key=b"d" * 16, fingerprint=b"f" * 32))
OTHER = DirectoryCap(SdmfWriteCap(write_key=b"o" * 16, fingerprint=b"f" * 32))
FILE = ChkCap(key=b"k" * 16, ueb_hash=b"h" * 32, needed=3, total=10, size=1000)


def listing(**children: object) -> list[object]:
    return ["dirnode", {"mutable": True, "children": children}]


FILE_NODE = ["filenode", {"ro_uri": FILE.to_string(), "metadata": {"a": 1}}]
OTHER_NODE = ["dirnode", {"rw_uri": OTHER.to_string(), "ro_uri": OTHER.read_cap().to_string(), "metadata": {}}]


async def test_listing_is_sorted_and_has_the_strongest_capabilities() -> None:
    async with scripted([reply(listing(z=FILE_NODE, b=OTHER_NODE))]) as (gateway, store):
        children = await store.directory(DIRECTORY).list()
    assert list(children) == ["b", "z"]
    assert children["b"].target == OTHER
    assert children["z"].target == FILE
    assert children["z"].metadata == {"a": 1}
    assert gateway.targets[0].endswith("?t=json")


@pytest.mark.parametrize(
    "data",
    [
        None, [], ["dirnode"], ["dirnode", 1], ["filenode", {"children": {}}], ["dirnode", {"children": []}],
        ["dirnode", {"children": {"a": 1}}], ["dirnode", {"children": {"a": ["filenode", {"ro_uri": 5}]}}],
        ["dirnode", {"children": {"a": ["filenode", {"ro_uri": "x" * 100_000}]}}],
        ["dirnode", {"children": {"a": ["filenode", {"metadata": []}]}}],
        ["dirnode", {"children": {"\ud800": ["filenode", {}]}}],
    ],
)  # fmt: skip
async def test_invalid_listing_is_refused(data: object) -> None:
    async with scripted([reply(data)]) as (_, store):
        with pytest.raises(GatewayError):
            await store.directory(DIRECTORY).list()


def test_child_of_an_unknown_kind_keeps_its_capabilities() -> None:
    child = parse_child(["unknown", {"rw_uri": "x-new:w", "ro_uri": "ro.x-new:r"}], deep_immutable=False)
    assert child.target == UnknownChild(write=b"x-new:w", read=b"ro.x-new:r")
    assert describe_link(child.target, None)[1] == {"rw_uri": "x-new:w", "ro_uri": "ro.x-new:r"}


async def test_path_is_looked_up_name_by_name() -> None:
    def answer(asked: Asked) -> Reply:
        return reply(listing(a=OTHER_NODE) if "DIR2%3Amrsgi" in asked.target else listing(f=FILE_NODE))

    async with scripted(answer) as (_, store):
        directory = store.directory(DIRECTORY)
        assert (await directory.get(["a", "f"])).target == FILE
        with pytest.raises(NoSuchChildError):
            await directory.get(["a", "x"])
        with pytest.raises(ChildOfWrongTypeError):
            await directory.get(["a", "f", "x"])


async def test_edits_that_set_links_go_in_one_request() -> None:
    async with scripted([reply("Okay so I did it.")]) as (gateway, store):
        links = [SetChild("a", FILE, overwrite="only-files"), SetChild("b", OTHER, {"m": 1}, overwrite="only-files")]
        await store.directory(DIRECTORY).edit(links)
    (asked,) = gateway.asked
    assert asked.target.endswith("?t=set_children&replace=only-files")
    assert json.loads(asked.body) == {
        "a": ["filenode", {"ro_uri": FILE.to_string()}],
        "b": ["dirnode", {"rw_uri": OTHER.to_string(), "ro_uri": OTHER.read_cap().to_string(), "metadata": {"m": 1}}],
    }


async def test_edit_when_something_is_in_the_way_says_so() -> None:
    async with scripted([reply("exists", "409 Conflict")]) as (_, store):
        with pytest.raises(ExistingChildError):
            await store.directory(DIRECTORY).edit([SetChild("a", FILE, overwrite=False)])


async def test_removal_of_what_is_not_there_is_an_error_unless_it_need_not_be() -> None:
    async with scripted(lambda asked: reply("no", "404 Not Found")) as (gateway, store):
        await store.directory(DIRECTORY).edit([RemoveChild("a/b", must_exist=False)])
        with pytest.raises(NoSuchChildError):
            await store.directory(DIRECTORY).edit([RemoveChild("a/b")])
    assert gateway.targets[0].endswith("?t=unlink&name=a%2Fb")


async def test_directories_of_a_path_are_made_by_one_request() -> None:
    async with scripted([reply(OTHER.to_string())]) as (gateway, store):
        made = await store.directory(DIRECTORY).make_directories(["a", "b"])
    assert made.cap == OTHER
    assert gateway.targets[0].endswith("/a/b?t=mkdir")


async def test_directories_of_a_path_whose_last_name_comes_twice_are_made_one_by_one() -> None:
    async with scripted(lambda asked: reply(OTHER.to_string())) as (gateway, store):
        await store.directory(DIRECTORY).make_directories(["x", "y", "x"])
    paths = [target.partition("?")[0] for target in gateway.targets]
    assert [path.split("/", 3)[3] for path in paths] == ["x", "x/y", "x/y/x"]


async def test_directories_when_a_file_is_in_the_way_are_an_error() -> None:
    async with scripted([reply("<p>no</p>", "409 Conflict")]) as (_, store):
        with pytest.raises(ChildOfWrongTypeError):
            await store.directory(DIRECTORY).make_directories(["a", "b"])


async def test_move_keeps_capabilities_out_of_the_url_s_arguments() -> None:
    async with scripted([reply(listing(a=FILE_NODE)), reply("thing moved")]) as (gateway, store):
        await store.move(Trail.of(DIRECTORY), "a", Trail.of(OTHER), "b", overwrite="only-files")
    asked = gateway.asked[1]
    assert "?" not in asked.target
    fields = {"t": ["relink"], "from_name": ["a"], "to_name": ["b"], "replace": ["only-files"]}
    assert parse_qs(asked.body.decode()) == {**fields, "to_dir": [OTHER.to_string()]}


async def test_move_of_a_directory_below_itself_is_refused_before_a_gateway_of_any_kind_does_it() -> None:
    inner = ["dirnode", {"mutable": True, "rw_uri": OTHER.to_string()}]
    async with scripted([reply(listing(a=inner))]) as (gateway, store):
        with pytest.raises(GridError, match="below it"):
            await store.move(Trail.of(DIRECTORY), "a", Trail.of(OTHER), "b")
    assert len(gateway.asked) == 1


async def test_move_by_paths_tells_the_gateway_the_paths() -> None:
    inner = ["dirnode", {"mutable": True, "rw_uri": OTHER.to_string()}]
    third = DirectoryCap(SdmfWriteCap(write_key=bytes(15) + b"3", fingerprint=bytes(32)))
    target = Trail.of(DIRECTORY).below("c d", third)
    async with scripted([reply(listing(a=inner)), reply("thing moved")]) as (gateway, store):
        await store.move(Trail.of(DIRECTORY), "a", target, "b")
    fields = parse_qs(gateway.asked[1].body.decode())
    assert fields["to_dir"] == [f"{DIRECTORY.to_string()}/c d"]


async def test_move_of_a_name_that_the_request_would_mangle_is_a_link_and_a_removal() -> None:
    there = reply(listing(**{" a": FILE_NODE}))
    answers = [there, reply("ok"), there, reply("ok"), reply(listing(**{"b/c": FILE_NODE}))]
    async with scripted(answers) as (gateway, store):
        await store.move(Trail.of(DIRECTORY), " a", Trail.of(OTHER), "b/c")
    assert "set_children" in gateway.targets[1]
    assert gateway.targets[3].endswith("t=unlink&name=%20a")


async def test_what_a_capability_does_not_permit_is_refused_without_asking() -> None:
    readable = DirectoryCap(DIRECTORY.body.read_cap())
    async with scripted([]) as (_, store):
        with pytest.raises(NotWriteableError):
            await store.directory(readable).edit([RemoveChild("a")])
        with pytest.raises(NotWriteableError):
            await store.move(Trail.of(readable), "a", Trail.of(OTHER), "b")
        with pytest.raises(AuthorityError):
            await store.directory(DIRECTORY.verify_cap()).list()  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [FILE.to_string(), DIRECTORY.read_cap().to_string(), "", "<html>"])
async def test_new_directory_when_the_answer_is_not_a_write_capability_fails(data: str) -> None:
    async with scripted([reply(data)]) as (_, store):
        with pytest.raises(GatewayError):
            await store.create_directory()
