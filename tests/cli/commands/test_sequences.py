"""Commands on sequences, which may stand wherever an immutable file can; and on slices and sequences that are none."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from attrs import evolve

from grid.caps import ChkCap, LitCap, SequenceCap, SliceCap
from grid.codec.base32 import encode
from grid.directory.edits import SetChild
from grid.extents.pack_writer import SEGMENT_SIZE, PackContents
from grid.extents.reader import read_table
from grid.extents.table import HEAD, Part, pack_table
from grid.mutable.sources import MemorySource
from grid.ports import Sink
from tests.support.memory_command import MemoryCommand
from tests.support.tree_grid import CONVERGENCE, TreeGrid

DRAW = random.Random(14)
SMALL = [DRAW.randbytes(1000 + number) for number in range(20)]
LARGE = DRAW.randbytes(200_000)
WHOLE = b"head" + LARGE[500:150_000] + b"".join(SMALL) + LARGE
INTEGRITY = 6


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    """Commands on a grid of their own."""
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def put(grid: TreeGrid, data: bytes) -> ChkCap:
    cap = grid.run(grid.store.put_immutable(MemorySource(data), segment_size=SEGMENT_SIZE))
    assert isinstance(cap, ChkCap)
    return cap


@pytest.fixture
def sequence(command: MemoryCommand) -> SequenceCap:
    """A sequence of a literal file, a large file in part and whole, and the slices of a pack; linked as `work:all`."""
    contents = PackContents(CONVERGENCE, command.grid.runtime.entropy.random_bytes)
    extents = [contents.add(data) for data in SMALL]
    pack, large = put(command.grid, bytes(contents.data)), put(command.grid, LARGE)
    slices = [Part.whole(extent.slice_of(pack)) for extent in extents]
    parts = [Part.whole(LitCap(data=b"head")), Part(cap=large, offset=500, length=149_500), *slices, Part.whole(large)]
    cap = SequenceCap(size=len(WHOLE), table=put(command.grid, pack_table(parts)))
    root = command.grid.store.directory(command.root)
    command.grid.run(root.edit([SetChild("all", cap)]))
    return cap


def lose_shares(command: MemoryCommand, cap: ChkCap, count: int) -> None:
    """Have as many servers lose the file's shares."""
    lost, index = 0, encode(cap.storage_index)
    for disk in command.grid.disks:
        folder = f"shares/{index[:2]}/{index}"
        for name, _ in disk.list_directory(folder) if lost < count else ():
            disk.unlink(f"{folder}/{name}")
            lost += 1
    assert lost >= count


def test_sequence_is_read_listed_copied_moved_and_restored_as_any_file(
    command: MemoryCommand, sequence: SequenceCap, tmp_path: Path
) -> None:
    assert command.succeed("get", "work:all", tmp_path / "whole") is not None
    assert (tmp_path / "whole").read_bytes() == WHOLE
    command.succeed("get", sequence.to_string(), tmp_path / "by-capability")
    assert (tmp_path / "by-capability").read_bytes() == WHOLE
    assert str(len(WHOLE)) in command.succeed("ls", "-l", "work:all")
    command.succeed("mkdir", "work:folder")
    command.succeed("cp", "work:all", "work:folder/copy")
    command.succeed("mv", "work:all", "work:folder/moved")
    assert command.names("work:folder") == ["copy", "moved"]
    command.succeed("cp", "-r", "work:folder", tmp_path / "back")
    command.succeed("restore", "work:folder", tmp_path / "restored")
    for folder in (tmp_path / "back" / "folder", tmp_path / "restored"):
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"copy": WHOLE, "moved": WHOLE}


def test_sequence_when_one_of_its_files_lacks_shares_is_found_and_repaired(
    command: MemoryCommand, sequence: SequenceCap
) -> None:
    manifest = command.succeed("manifest", "--verify-cap", "work:").splitlines()
    assert isinstance(sequence.table, ChkCap) and sequence.table.verify_cap().to_string() in manifest
    stats = json.loads(command.succeed("stats", "--json", "work:"))
    assert (stats["count-sequences"], stats["count-packs"], stats["size-packs"]) == (1, 1, sum(map(len, SMALL)))
    assert (stats["count-immutable-files"], stats["size-immutable-files"]) == (1, len(WHOLE))
    command.succeed("check", "--verify", "--add-lease", "work:all")
    (large,) = {part.cap for part in table_of(command, sequence) if isinstance(part.cap, ChkCap)}
    (pack,) = {part.cap.pack for part in table_of(command, sequence) if isinstance(part.cap, SliceCap)}
    for cap in (large, pack, sequence.table):
        lose_shares(command, cap, 4)
        assert json.loads(command.run("check", "--json", "work:all").out)["results"]["healthy"] is False
        for words in (("check", "work:all"), ("deep-check", "work:")):
            if words == ("deep-check", "work:"):
                lose_shares(command, cap, 4)
            command.run(words[0], "--repair", "--add-lease", words[1])
            assert json.loads(command.run("check", "--json", "work:all").out)["results"]["healthy"] is True


def table_of(command: MemoryCommand, cap: SequenceCap) -> list[Part]:
    """The parts of a sequence."""

    async def read_chk(chk: ChkCap, sink: Sink, offset: int, length: int, segment_size: int) -> None:
        await command.grid.store.read(chk, sink, offset, length)

    async def parts() -> list[Part]:
        return list(await read_table(cap, read_chk))

    return command.grid.run(parts())


def test_slices_and_sequences_that_are_none_are_refused_in_one_line(
    command: MemoryCommand, sequence: SequenceCap, tmp_path: Path
) -> None:
    (first,) = {part.cap for part in table_of(command, sequence)[2:3]}
    assert isinstance(first, SliceCap)
    target = tmp_path / "target"
    for offset, length in ((0, 0), (first.pack.size, 1), (first.pack.size - 1, 2), (2**62, 2**62)):
        line = command.run("get", evolve(first, offset=offset, length=length).to_string(), target)
        assert line.code != 0 and len(line.err.splitlines()) == 1 and "Traceback" not in line.err
        assert "URI:" not in line.err.replace("URI:...", "") and "damaged" in line.err
    itself = f"{sequence.to_string().removeprefix('imm.')} 0 {sequence.size}\n".encode()
    writable = b"URI:SSK:%b:%b 0 100\n" % (b"a" * 26, b"a" * 52)
    for data, size in (
        (HEAD + itself, sequence.size),
        (HEAD + writable, 100),
        (HEAD + b"URI:LIT:me 0 1\n" * 70_000, 70_000),
        (b"no table" * 20, 5),
    ):
        wrong = SequenceCap(size=size, table=put(command.grid, data))
        assert "this sequence cannot be read" in command.fail(INTEGRITY, "get", wrong.to_string(), target)
    assert not target.exists()
