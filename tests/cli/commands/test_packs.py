"""Packs on the command line: cp and backup with --pack, and `grid pack`, `unpack` and `repack`; on an in-memory grid."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap, SliceCap
from grid.cli.transfer.repacking import (
    Rewriter,
    Rewritten,
    ToFiles,
    ToPacks,
    find,
    is_slice,
    is_small_file,
    sparse_only,
)
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.file_store import FileStore
from grid.directory.pack import Child
from grid.directory.walk import walk
from grid.engine.grid import Encoding
from grid.mutable.sources import MemorySource
from grid.sinks import BytesSink
from tests.support.memory_command import MemoryCommand
from tests.support.tree_grid import TreeGrid

RANDOM = random.Random(270)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    """Commands on a grid of their own."""
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with small, tiny, equal and large files."""
    root = tmp_path / "tree"
    (root / "sub").mkdir(parents=True)
    for number in range(40):
        (root / f"file{number:02}").write_bytes(RANDOM.randbytes(1000 + number))
    (root / "sub" / "twin").write_bytes((root / "file07").read_bytes())
    (root / "sub" / "tiny").write_bytes(b"tiny")
    (root / "sub" / "empty").write_bytes(b"")
    (root / "sub" / "large").write_bytes(RANDOM.randbytes(300_000))
    return root


def files_of(root: Path) -> dict[str, bytes]:
    """Paths below a folder, and contents."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def contents_of(grid: TreeGrid, root: DirectoryCap) -> dict[str, bytes]:
    """Paths below a directory, and the contents that a new client reads there: of every link, even repeated ones."""

    async def read() -> dict[str, bytes]:
        store = grid.client()
        found = {}
        waiting = [("", root)]
        while waiting:
            path, here = waiting.pop()
            for name, child in (await store.directory(here).list()).items():
                if isinstance(child.target, DirectoryCap):
                    waiting.append((f"{path}{name}/", child.target))
                elif isinstance(child.target, KnownCap):
                    gathering = BytesSink()
                    await store.read(child.target, gathering)
                    found[path + name] = bytes(gathering.data)
        return found

    return grid.run(read())


def kinds_of(grid: TreeGrid, root: DirectoryCap) -> dict[str, type]:
    """Paths below a directory, and the kinds of capabilities there."""

    async def look() -> dict[str, type]:
        return {"/".join(each.path): type(each.target) async for each in walk(grid.client(), root)}

    return grid.run(look())


def test_cp_when_asked_to_pack_puts_small_files_into_one_pack(
    command: MemoryCommand, tree: Path, tmp_path: Path
) -> None:
    told = json.loads(command.succeed("cp", "-r", "--pack", "--json", tree, "work:"))
    assert (told["files_copied"], told["failures"]) == (44, [])
    assert isinstance(command.root, DirectoryCap)
    kinds = kinds_of(command.grid, command.root)
    assert kinds["tree/file00"] is SliceCap
    assert (kinds["tree/sub/tiny"], kinds["tree/sub/large"]) == (LitCap, ChkCap)
    assert contents_of(command.grid, command.root) == {f"tree/{name}": data for name, data in files_of(tree).items()}
    stats = json.loads(command.succeed("stats", "--json", "work:"))
    # The twin is the same slice as the file that it is like.
    assert (stats["count-slices"], stats["count-packs"], stats["dead-bytes-packs"]) == (40, 1, 0)
    assert stats["size-packs"] == sum(1000 + number for number in range(40))
    assert "count-packs: 1" in command.succeed("stats", "work:")
    command.succeed("cp", "-r", "--pack", "--json", tree, "work:")
    assert json.loads(command.succeed("stats", "--json", "work:"))["count-packs"] == 1
    command.succeed("cp", "-r", "work:tree", tmp_path / "back")
    assert files_of(tmp_path / "back" / "tree") == files_of(tree)
    assert "1007" in command.succeed("ls", "-l", "work:tree/sub/twin")


def test_deep_check_when_files_are_packed_sees_their_pack(command: MemoryCommand, tree: Path) -> None:
    command.succeed("cp", "-r", "--pack", tree, "work:")
    command.succeed("deep-check", "--verify", "--repair", "--add-lease", "work:")
    command.succeed("check", "--verify", "work:tree/file03")
    # Three directories, the pack, the large file, and two literal ones: 40 slices are one object.
    assert "done: 7 objects checked" in command.succeed("deep-check", "work:")
    lines = command.succeed("manifest", "--verify-cap", "work:tree").splitlines()
    assert len([line for line in lines if line.startswith("URI:CHK-Verifier:")]) == 41
    assert len(set(lines)) == 4


def test_backup_when_the_configuration_says_so_packs_and_is_restored(
    command: MemoryCommand, tree: Path, tmp_path: Path
) -> None:
    settings = command.path / "grid.cfg"
    text = settings.read_text()
    assert "[client]" in text
    settings.write_text(text.replace("[client]", "[client]\npack = yes"))
    command.succeed("backup", tree, "work:backups")
    assert isinstance(command.root, DirectoryCap)
    assert list(kinds_of(command.grid, command.root).values()).count(SliceCap) == 40
    command.succeed("restore", "work:backups/Latest", tmp_path / "back")
    assert files_of(tmp_path / "back") == files_of(tree)
    command.succeed("backup", "--no-pack", "--ignore-timestamps", tree, "work:plain")
    plain = command.grid.run(command.grid.client().directory(command.root).get(["plain"])).target
    assert isinstance(plain, DirectoryCap)
    assert SliceCap not in kinds_of(command.grid, plain).values()


def test_pack_and_unpack_when_run_turn_a_tree_from_one_form_into_the_other(command: MemoryCommand, tree: Path) -> None:
    command.succeed("cp", "-r", tree, "work:")
    command.succeed("backup", tree, "work:backups")
    assert isinstance(command.root, DirectoryCap)
    before = contents_of(command.grid, command.root)
    first = kinds_of(command.grid, command.root)
    assert SliceCap not in first.values()
    assert command.succeed("pack", "--dry-run", "work:").startswith("would pack 40 files (")
    assert "40 files packed into 1 pack" in command.succeed("pack", "work:")
    assert contents_of(command.grid, command.root) == before
    kinds = kinds_of(command.grid, command.root)
    by_name = {path.rpartition("/")[2]: kind for path, kind in kinds.items()}
    assert (by_name["file00"], by_name["large"]) == (SliceCap, ChkCap)
    assert ChkCap not in {kind for path, kind in kinds.items() if "file" in path}
    assert "0 files packed" in command.succeed("pack", "work:")
    assert "40 files unpacked" in command.succeed("unpack", "work:")
    assert contents_of(command.grid, command.root) == before
    assert kinds_of(command.grid, command.root) == first


def test_repack_when_most_of_a_pack_is_dead_moves_what_lives(command: MemoryCommand, tree: Path) -> None:
    command.succeed("cp", "-r", "--pack", tree, "work:")
    assert "0 files repacked" in command.succeed("repack", "work:")
    for number in range(5, 40):
        command.succeed("rm", f"work:tree/file{number:02}")
    assert isinstance(command.root, DirectoryCap)
    before = contents_of(command.grid, command.root)
    stats = json.loads(command.succeed("stats", "--json", "work:"))
    assert stats["dead-bytes-packs"] > stats["live-bytes-packs"] > 0
    told = json.loads(command.succeed("repack", "--json", "work:"))
    assert (told["files"], told["packs"]) == (6, 1)
    stats = json.loads(command.succeed("stats", "--json", "work:"))
    assert (stats["count-packs"], stats["dead-bytes-packs"]) == (1, 0)
    assert contents_of(command.grid, command.root) == before


class KilledError(BaseException):
    """The process ends here."""


class MortalStore:
    """A store that is killed before or after its n-th change."""

    def __init__(self, store: FileStore, life: int, *, after: bool) -> None:
        self._store = store
        self.life = life
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def put_immutable(self, *arguments: Any, **options: Any) -> Any:
        return await self._change(lambda: self._store.put_immutable(*arguments, **options))

    async def create_immutable_directory(self, *arguments: Any) -> Any:
        return await self._change(lambda: self._store.create_immutable_directory(*arguments))

    def directory(self, cap: DirectoryCap) -> Any:
        directory = self._store.directory(cap)
        edit = directory.edit
        directory.edit = lambda edits: self._change(lambda: edit(edits))  # type: ignore[method-assign]
        return directory

    async def _change(self, make: Any) -> Any:
        self.life -= 1
        if self.life == 0 and not self._after:
            raise KilledError
        made = await make()
        if self.life == 0:
            raise KilledError
        return made


def make_tree(grid: TreeGrid) -> DirectoryCap:
    """Mutable and immutable directories with small files; one immutable directory is linked twice."""
    store = grid.store

    async def build() -> DirectoryCap:
        async def put(seed: int) -> Child:
            return Child(target=await store.put_immutable(MemorySource(random.Random(seed).randbytes(600 + seed))))

        deepest = await store.create_immutable_directory({"x": await put(1), "y": await put(2)})
        middle = await store.create_immutable_directory({"deep": Child(target=deepest), "z": await put(3)})
        sub = await store.create_directory({"a": await put(4), "b": await put(1), "snap": Child(target=middle)})
        return await store.create_directory(
            {"sub": Child(target=sub), "c": await put(5), "again": Child(target=deepest), "d": await put(6)}
        )

    return grid.run(build())


@pytest.mark.parametrize("word", ["pack", "unpack", "repack"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_rewriting_when_killed_at_any_step_leaves_every_link_readable(word: str, after: bool) -> None:
    grid = TreeGrid(count=3)
    grid.encoding = Encoding(k=1, n=1, happy=1)
    grid.store = grid.client()
    steps = 0
    for life in range(1, 40):
        root = make_tree(grid)
        if word != "pack":
            grid.run(rewrite(grid.client(), root, "pack"))
        if word == "repack":
            grid.run(grid.client().directory(root).edit([RemoveChild("c"), RemoveChild("d")]))
        before = contents_of(grid, root)
        store = MortalStore(grid.client(), life, after=after)
        try:
            grid.run(rewrite(store, root, word))
        except KilledError:
            steps += 1
            assert contents_of(grid, root) == before
            grid.run(rewrite(grid.client(), root, word))
        done = store.life > 0
        assert contents_of(grid, root) == before
        kinds = set(kinds_of(grid, root).values())
        assert (SliceCap in kinds, ChkCap in kinds) == ((True, False) if word != "unpack" else (False, True))
        if done:
            break
    assert steps >= 4


async def rewrite(store: Any, root: DirectoryCap, word: str) -> Rewritten:
    """What the command of this name does; everything fails that cannot be done."""

    def failed(where: str, error: Exception) -> None:
        raise AssertionError(where) from error

    found = await find(store, root, is_small_file if word == "pack" else is_slice)
    if word == "repack":
        found = sparse_only(found, 1.0)
    rewriter = Rewriter(store, found, failed)
    converter = (ToFiles if word == "unpack" else ToPacks)(store, rewriter.done, failed)
    return await rewriter.run(converter)


def test_rewriting_when_somebody_changes_a_link_meanwhile_leaves_that_link_alone() -> None:
    grid = TreeGrid()
    root = make_tree(grid)
    other = grid.run(grid.store.put_immutable(MemorySource(b"newer " * 100)))

    async def body() -> None:
        store = grid.client()
        found = await find(store, root, is_small_file)
        await store.directory(root).edit([SetChild("c", other)])
        rewriter = Rewriter(store, found, lambda where, error: pytest.fail(str(error)))
        await rewriter.run(ToPacks(store, rewriter.done, lambda where, error: pytest.fail(str(error))))

    grid.run(body())
    kinds = kinds_of(grid, root)
    assert (kinds["c"], kinds["d"]) == (ChkCap, SliceCap)
    assert contents_of(grid, root)["c"] == b"newer " * 100
