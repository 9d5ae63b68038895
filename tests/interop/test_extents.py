"""A 1.20 client and directories with slices and sequences: it lists, keeps and moves them, and repairs their packs.

What [spec extents 6] says of 1.20 is shown here.
"""

from __future__ import annotations

import json
import urllib.error

import pytest

from grid.caps import ChkCap, DirectoryCap, SequenceCap, SliceCap
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.directory.pack import Child
from grid.extents.pack_writer import SEGMENT_SIZE, PackContents
from grid.extents.table import Part, pack_table
from grid.mutable.sources import MemorySource
from grid.sinks import BytesSink
from tests.interop import test_directories
from tests.interop.conftest import CONVERGENCE, Pair
from tests.interop.test_directories import Theirs
from tests.support.share_files import delete_shares

pytestmark = [pytest.mark.interop, pytest.mark.background]

ours, theirs = test_directories.ours, test_directories.theirs

TEXTS = [b"%d " % number * 300 for number in range(50)]


async def put_extents(store: FileStore) -> dict[str, SliceCap | SequenceCap]:
    """Slices of one pack, and a sequence of them."""
    contents = PackContents(CONVERGENCE, store.runtime.entropy.random_bytes)
    extents = [contents.add(text) for text in TEXTS]
    pack = await store.put_immutable(MemorySource(contents.data), segment_size=SEGMENT_SIZE)
    slices = [extent.slice_of(pack) for extent in extents]
    table = await store.put_immutable(MemorySource(pack_table([Part.whole(cap) for cap in slices])))
    return {"one": slices[1], "two": slices[2], "all": SequenceCap(size=sum(map(len, TEXTS)), table=table)}


async def contents(store: FileStore, cap: SliceCap | SequenceCap) -> bytes:
    """What a file holds."""
    sink = BytesSink()
    await store.read(cap, sink)
    return bytes(sink.data)


async def test_directory_when_1_20_edits_it_keeps_slices_and_sequences(
    ours: FileStore,
    theirs: Theirs,
) -> None:
    extents = await put_extents(ours)
    metadata = {"kept": "ü"}
    mutable = await ours.create_directory({name: Child(target=cap, metadata=metadata) for name, cap in extents.items()})
    target = await ours.create_directory()
    root, elsewhere = mutable.to_string(), target.to_string()
    for name, (kind, about) in theirs.children(root).items():
        assert (kind, about["ro_uri"]) == ("unknown", extents[name].to_string())
        assert about["metadata"]["kept"] == "ü"
    # 1.20 adds, removes, renames and moves.
    theirs.ask("PUT", root, "/theirs", b"another file " * 50)
    theirs.ask("POST", root, "?t=rename&from_name=one&to_name=eins")
    theirs.ask("POST", root, f"?t=relink&from_name=two&to_name=zwei&to_dir={elsewhere}")
    theirs.ask("POST", elsewhere, "?t=set_children", {"again": ["unknown", {"ro_uri": extents["all"].to_string()}]})
    theirs.ask("PUT", elsewhere, "/put?t=uri", extents["one"].to_string().encode())
    theirs.ask("POST", root, "?t=delete&name=theirs")
    here = await ours.directory(mutable).list()
    there = await ours.directory(target).list()
    assert {name: child.target for name, child in here.items()} == {"all": extents["all"], "eins": extents["one"]}
    assert {name: child.target for name, child in there.items()} == {
        "again": extents["all"],
        "put": extents["one"],
        "zwei": extents["two"],
    }
    assert here["eins"].metadata["kept"] == there["zwei"].metadata["kept"] == "ü"
    # Ours edits what 1.20 wrote, and 1.20 sees it.
    await ours.directory(target).edit([SetChild("new", extents["two"])])
    assert theirs.children(elsewhere)["new"][1]["ro_uri"] == extents["two"].to_string()
    assert await contents(ours, extents["all"]) == b"".join(TEXTS)
    assert await contents(ours, extents["two"]) == TEXTS[2]


async def test_immutable_directory_with_slices_when_made_by_either_is_the_same(
    ours: FileStore,
    theirs: Theirs,
) -> None:
    extents = await put_extents(ours)
    cap = await ours.create_immutable_directory({name: Child(target=cap) for name, cap in extents.items()})
    asked = {name: ["unknown", {"ro_uri": cap.to_string(), "metadata": {}}] for name, cap in extents.items()}
    assert theirs.ask("POST", "", "?t=mkdir-immutable", asked).decode() == cap.to_string()
    listed = theirs.children(cap.to_string())
    assert {name: about["ro_uri"] for name, (_, about) in listed.items()} == {
        name: cap.to_string() for name, cap in extents.items()
    }
    assert isinstance(cap, DirectoryCap)


async def test_1_20_when_asked_for_a_slice_says_that_it_is_unknown(
    ours: FileStore,
    theirs: Theirs,
) -> None:
    extents = await put_extents(ours)
    kind, about = json.loads(theirs.ask("GET", extents["one"].to_string(), "?t=json"))
    assert (kind, about["mutable"]) == ("unknown", False)
    with pytest.raises(urllib.error.HTTPError, match="400"):
        theirs.ask("GET", extents["one"].to_string())
    root = (await ours.create_directory({"one": Child(target=extents["one"])})).to_string()
    with pytest.raises(urllib.error.HTTPError, match="400"):
        theirs.ask("PUT", root, "/bare?t=uri", extents["one"].to_string().removeprefix("imm.").encode())
    units = theirs.stream(root, "t=stream-deep-check&verify=true")
    assert units[1]["type"] == "unknown"


async def test_pack_when_shares_are_lost_is_repaired_by_1_20(
    ours: FileStore,
    theirs: Theirs,
    usual_pair: Pair,
) -> None:
    cap = (await put_extents(ours))["one"]
    assert isinstance(cap, SliceCap) and isinstance(cap.pack, ChkCap)
    # The web API of 1.20 checks nothing by a verify capability.
    with pytest.raises(urllib.error.HTTPError, match="405"):
        theirs.ask("POST", cap.verify_cap().to_string(), "?t=check&output=json")
    pack = cap.pack.to_string()
    assert json.loads(theirs.ask("POST", pack, "?t=check&verify=true&output=json"))["results"]["healthy"]
    delete_shares(usual_pair.grid, pack, {0, 4})
    assert not (await ours.check(cap)).healthy
    done = json.loads(theirs.ask("POST", pack, "?t=check&verify=true&repair=true&output=json"))
    assert done["repair-successful"]
    assert (await ours.check(cap, verify=True)).healthy
    assert await contents(ours, cap) == TEXTS[1]
