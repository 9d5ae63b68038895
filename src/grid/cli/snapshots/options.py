"""The options of `grid backup` that select files, and those that annotate the snapshot.

A command gets them as two values, `exclude` and `note`, each of which is parsed in one place.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import TypeVar, cast

import click

from grid.cli.transfer.local_tree import ScanRules
from grid.cli.transfer.selection import parse_selection
from grid.directory.snapshots import MAX_TAG, MAX_TAGS, SnapshotNote

F = TypeVar("F", bound=Callable[..., object])


def exclude_options(command: F) -> F:
    """Options that leave files out, passed to the command as `rules`. UsageError if a pattern file is not text."""

    @click.option("--exclude", "patterns", metavar="PATTERN", multiple=True,
                  help="Leave out what matches; repeat for more.")  # fmt: skip
    @click.option(
        "--exclude-file", "--exclude-from", "--exclude-from-utf-8", "pattern_files", metavar="FILE", multiple=True,
        type=click.Path(dir_okay=False), help="Leave out what matches a pattern in FILE, which has one per line.",
    )  # fmt: skip
    @click.option("--exclude-vcs", is_flag=True, help="Leave out the files of version control systems.")
    @click.option(
        "--exclude-if-present", "markers", metavar="NAME", multiple=True,
        help="Leave out the contents of directories that contain a file called NAME, except that file; repeat for more.",
    )  # fmt: skip
    @click.option(
        "--exclude-special", is_flag=True,
        help="Leave out sockets and named pipes, which hold no data, without a warning: they do not make the snapshot "
        "incomplete.",
    )  # fmt: skip
    @click.option("--one-file-system", is_flag=True, help="Stay on the file system of DIR.")
    @wraps(command)
    def run(
        *arguments: object, patterns: Sequence[str], pattern_files: Sequence[str], exclude_vcs: bool,
        markers: Sequence[str], exclude_special: bool, one_file_system: bool, **options: object,
    ) -> object:  # fmt: skip
        rules = ScanRules(
            follow_links=False,
            selection=parse_selection((), _excluded(patterns, pattern_files, exclude_vcs=exclude_vcs)),
            markers=_checked_markers(markers),
            one_file_system=one_file_system,
            leaves_out_special=exclude_special,
            leaves_out_shares=True,
            has_ignore_files=True,
        )
        return command(*arguments, rules=rules, **options)

    return cast(F, run)


def note_options(command: F) -> F:
    """Options that annotate the snapshot's link, passed to the command as `note`. UsageError for an invalid tag."""

    @click.option(
        "--tag",
        "tags",
        metavar="TAG",
        multiple=True,
        help="A word to record with the snapshot, for `grid snapshots --tag` and `grid forget --keep-tag`; repeat for more.",
    )
    @click.option(
        "--host", metavar="NAME",
        help="The name of this machine to record with the snapshot, by which `grid snapshots` and `grid forget` tell "
        "machines apart; default: its host name.",
    )  # fmt: skip
    @wraps(command)
    def run(*arguments: object, tags: Sequence[str], host: str | None, **options: object) -> object:
        check_tags(tags)
        note = SnapshotNote(host=socket.gethostname() if host is None else host, tags=tuple(tags))
        return command(*arguments, note=note, **options)

    return cast(F, run)


def check_tags(tags: Sequence[str]) -> None:
    """Raise UsageError for tags that would be ambiguous in a listing, or for too many."""
    for tag in tags:
        if not tag or not tag.isprintable() or any(character.isspace() or character == "," for character in tag):
            raise click.UsageError(f"{tag!r} cannot be a tag: use printable characters without spaces and commas")
        if len(tag) > MAX_TAG:
            raise click.UsageError(f"a tag has at most {MAX_TAG} characters")
    if len(tags) > MAX_TAGS:
        raise click.UsageError(f"a snapshot has at most {MAX_TAGS} tags")


def _checked_markers(markers: Sequence[str]) -> Sequence[str]:
    for name in markers:
        if not name or "/" in name:
            raise click.UsageError(
                f"{name!r} is not the name of a file: --exclude-if-present takes one, as in .nobackup"
            )
    return markers


def _excluded(patterns: Iterable[str], files: Iterable[str], *, exclude_vcs: bool) -> list[str]:
    from grid.cli.transfer.names import VCS_NAMES, parse_pattern_file

    excluded = [*patterns, *(VCS_NAMES if exclude_vcs else ())]
    for name in files:
        try:
            excluded += parse_pattern_file(Path(name).read_text("utf-8"))
        except UnicodeDecodeError:
            raise click.UsageError(f"{name} is not UTF-8 text") from None
    return excluded
