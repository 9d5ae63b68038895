"""Plans a copy from its arguments: where each source goes, and which combinations are refused. Pure.

[spec cli 2.6]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from grid.cli.transfer.tree import Branch, Leaf
from grid.errors import ChildOfWrongTypeError, GridError, NoSuchChildError
from grid.values import frozen

SourceKind = Literal["file", "directory", "other", "missing"]
TargetKind = Literal["file", "directory", "missing"]


class CopyError(GridError):
    """The copy is impossible as requested; nothing was changed."""


class WrongTypeError(CopyError, ChildOfWrongTypeError):
    """A file was found instead of a directory, or the other way around."""


class NoSuchSourceError(CopyError, NoSuchChildError):
    """The source does not exist."""


@frozen(kw_only=True)
class SourceFacts:
    """One source argument. shown: its name in messages. name: None for a bare capability, an alias' root and `/`."""

    shown: str
    kind: SourceKind
    name: str | None
    ends_with_slash: bool = False


@frozen(kw_only=True)
class TargetFacts:
    """The target argument."""

    shown: str
    kind: TargetKind
    ends_with_slash: bool = False


@frozen
class OntoFile:
    """The only source becomes the target itself."""


@frozen
class IntoDirectory:
    """Every source goes into the target directory. names: one per source, None to copy its contents directly.

    create: the directory must be created first.
    """

    names: tuple[str | None, ...]
    create: bool


def plan_attachment(
    sources: Sequence[SourceFacts], target: TargetFacts, *, recursive: bool
) -> OntoFile | IntoDirectory:
    """Decide where the sources go; CopyError in 1.20's words."""
    for source in sources:
        _require_usable(source, recursive)
    any_directory = any(source.kind == "directory" for source in sources)
    if target.kind == "file" and any_directory:
        raise WrongTypeError("cannot copy directory into a file", name=target.shown)
    if target.kind == "file" and len(sources) > 1:
        raise WrongTypeError("copying multiple things requires target be a directory", name=target.shown)
    if target.kind != "directory" and len(sources) == 1 and not any_directory:
        if target.ends_with_slash:
            raise WrongTypeError("target is not a directory, but ends with a slash", name=target.shown)
        return OntoFile()
    for source in sources:
        if source.kind == "file" and source.name is None:
            raise CopyError(
                "when copying into a directory, all source files must have names, "
                f"but {_quote(source.shown)} is unnamed; name the file it is to become"
            )
    return IntoDirectory(tuple(source.name for source in sources), create=target.kind == "missing")


def merge_sources(sources: Sequence[Leaf | Branch], names: Sequence[str | None]) -> Branch:
    """Merge everything that goes into the target directory, without changing the sources.

    Directories of the same name are merged; files of the same name raise CopyError.
    """
    merged = Branch("")
    for source, name in zip(sources, names, strict=True):
        if isinstance(source, Leaf):
            _put_leaf(merged, source.name if name is None else name, source)
        elif name is None:
            _merge(merged, source)
        else:
            _merge(_get_branch(merged, name, source), source)
    return merged


def _merge(target: Branch, source: Branch) -> None:
    waiting = [(target, source)]
    while waiting:
        into, branch = waiting.pop()
        for name, leaf in branch.leaves.items():
            _put_leaf(into, name, leaf)
        waiting += [(_get_branch(into, name, below), below) for name, below in branch.branches.items()]


def _put_leaf(target: Branch, name: str, leaf: Leaf) -> None:
    if name in target.leaves or name in target.branches:
        raise _collision(name)
    target.leaves[name] = Leaf(name, leaf.origin)


def _get_branch(target: Branch, name: str, source: Branch) -> Branch:
    if name in target.leaves:
        raise _collision(name)
    return target.branches.setdefault(name, Branch(name, source.origin))


def _collision(name: str) -> CopyError:
    return CopyError(f"cannot copy multiple files with the same name into the same target directory: {_quote(name)}")


def _require_usable(source: SourceFacts, recursive: bool) -> None:
    if source.kind == "missing":
        raise NoSuchSourceError(f"No such file or directory {_quote(source.shown)}", name=source.shown)
    if source.kind == "other":
        raise CopyError(f"source {_quote(source.shown)} is neither a file nor a directory, I can't handle it")
    if source.kind == "directory" and not recursive:
        raise WrongTypeError("cannot copy directories without --recursive", name=source.shown)
    if source.kind == "file" and source.ends_with_slash:
        raise WrongTypeError(
            f"source {_quote(source.shown)} is not a directory, but ends with a slash", name=source.shown
        )


def _quote(text: str) -> str:
    return f"'{text}'"
