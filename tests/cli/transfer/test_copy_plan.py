from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import LitCap
from grid.cli.terminal.exit_codes import ExitCode, exit_code
from grid.cli.transfer.copy_plan import (
    CopyError,
    IntoDirectory,
    OntoFile,
    SourceFacts,
    SourceKind,
    TargetFacts,
    TargetKind,
    merge_sources,
    plan_attachment,
)
from grid.cli.transfer.tree import Branch, Leaf, RemoteOrigin


def source(kind: SourceKind = "file", name: str | None = "a", *, slash: bool = False) -> SourceFacts:
    return SourceFacts(shown=f"x/{name}", kind=kind, name=name, ends_with_slash=slash)


def target(kind: TargetKind = "missing", *, slash: bool = False) -> TargetFacts:
    return TargetFacts(shown="t", kind=kind, ends_with_slash=slash)


@pytest.mark.parametrize("kind", ["file", "missing"])
def test_file_when_copied_to_a_file_or_a_free_name_becomes_it(kind: TargetKind) -> None:
    assert plan_attachment([source()], target(kind), recursive=False) == OntoFile()
    assert plan_attachment([source(name=None)], target(kind), recursive=False) == OntoFile()


def test_several_sources_when_copied_to_a_free_name_go_into_a_new_directory() -> None:
    planned = plan_attachment([source(), source("directory", "d")], target(slash=True), recursive=True)
    assert planned == IntoDirectory(("a", "d"), create=True)


def test_directory_when_copied_to_a_free_name_keeps_its_name_inside_the_new_directory() -> None:
    assert plan_attachment([source("directory", "tree")], target(), recursive=True) == IntoDirectory(("tree",), True)


def test_unnamed_directory_when_copied_gives_its_contents() -> None:
    planned = plan_attachment([source("directory", None)], target("directory"), recursive=True)
    assert planned == IntoDirectory((None,), create=False)


@pytest.mark.parametrize(
    ("sources", "to", "recursive", "message"),
    [
        ([source("directory")], target(), False, "cannot copy directories without --recursive"),
        ([source(), source()], target("file"), False, "copying multiple things requires target be a directory"),
        ([source("directory")], target("file"), True, "cannot copy directory into a file"),
        ([source()], target(slash=True), False, "target is not a directory, but ends with a slash"),
        ([source()], target("file", slash=True), False, "target is not a directory, but ends with a slash"),
        ([source(slash=True)], target(), False, "source 'x/a' is not a directory, but ends with a slash"),
        ([source(name=None)], target("directory"), False, "all source files must have names, but 'x/None' is unnamed"),
        ([source("missing")], target(), False, "No such file or directory 'x/a'"),
        ([source("other")], target(), False, "source 'x/a' is neither a file nor a directory, I can't handle it"),
    ],
)
def test_arguments_when_they_make_no_sense_are_refused_in_the_words_of_1_20(
    sources: list[SourceFacts], to: TargetFacts, recursive: bool, message: str
) -> None:
    with pytest.raises(CopyError, match=message):
        plan_attachment(sources, to, recursive=recursive)


def test_source_when_missing_is_reported_as_not_found() -> None:
    with pytest.raises(CopyError) as raised:
        plan_attachment([source("missing")], target(), recursive=False)
    assert exit_code(raised.value) is ExitCode.NOT_FOUND


def leaf(name: str = "f", data: bytes = b"") -> Leaf:
    return Leaf(name, RemoteOrigin(cap=LitCap(data=data), where=name))


def branch(name: str, *leaves: Leaf, branches: tuple[Branch, ...] = ()) -> Branch:
    return Branch(name, None, {each.name: each for each in leaves}, {each.name: each for each in branches})


def test_files_when_two_have_one_name_are_refused() -> None:
    with pytest.raises(CopyError, match="cannot copy multiple files with the same name"):
        merge_sources([leaf("a"), leaf("b")], ["n", "n"])
    with pytest.raises(CopyError, match="cannot copy multiple files with the same name"):
        merge_sources([branch("d", leaf("f")), branch("d", leaf("f"))], ["d", "d"])
    with pytest.raises(CopyError, match="cannot copy multiple files with the same name"):
        merge_sources([leaf("d"), branch("d")], ["d", "d"])
    with pytest.raises(CopyError, match="cannot copy multiple files with the same name"):
        merge_sources([branch("d"), leaf("d")], ["d", "d"])


def test_directories_when_two_have_one_name_are_merged_and_stay_as_they_were() -> None:
    first, second = branch("d", leaf("f")), branch("d", leaf("g"), branches=(branch("e"),))
    merged = merge_sources([first, second], ["d", "d"])
    assert set(merged.branches["d"].leaves) == {"f", "g"} and set(merged.branches["d"].branches) == {"e"}
    assert set(first.leaves) == {"f"} and set(second.leaves) == {"g"}


NAMES = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> Branch:
    made = Branch(draw(NAMES))
    for name in draw(st.sets(NAMES)):
        if depth and draw(st.booleans()):
            made.branches[name] = draw(trees(depth=depth - 1))
        else:
            made.leaves[name] = leaf(name)
    return made


def files(tree: Branch, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    return [(*prefix, *path, name) for path, each in tree.walk() for name in each.leaves]


@given(st.lists(st.tuples(trees(), st.one_of(st.none(), NAMES)), min_size=1, max_size=4))
def test_trees_when_merged_hold_every_file_once_or_are_refused(given_trees: list[tuple[Branch, str | None]]) -> None:
    wanted = [path for tree, name in given_trees for path in files(tree, () if name is None else (name,))]
    places = set(wanted)
    clash = len(places) < len(wanted)
    try:
        merged = merge_sources([tree for tree, _ in given_trees], [name for _, name in given_trees])
    except CopyError:
        directories = {
            ((name,) if name is not None else ()) + path for tree, name in given_trees for path, _ in tree.walk()
        }
        assert clash or places & directories
        return
    assert sorted(files(merged)) == sorted(wanted) and not clash
    assert not any(set(each.leaves) & set(each.branches) for _, each in merged.walk())
