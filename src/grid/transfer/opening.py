"""Opens the ends that a transfer's arguments name: URLs, local paths, and paths on the grid.

It owns the parsing of arguments. The command line supplies the function that opens paths on the grid.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import evolve

from grid.transfer.choices import STREAMS
from grid.transfer.ends import EndError, Located, SourceEnd, TargetEnd
from grid.transfer.engine import Transfer
from grid.transfer.journal import Journal, journal_path
from grid.transfer.outcome import Observer, Outcome, Plan
from grid.transfer.rates import RateLimit, Schedule, Slow, minute_of, unlimited
from grid.transfer.traits import identity_of, keep_times
from grid.values import frozen

OBJECT_SCHEMES = ("s3", "gs", "az")
SCHEMES = (*OBJECT_SCHEMES, "sftp", "http", "https")


class OpenOther(Protocol):
    """Opens an argument that is not a URL."""

    def __call__(self, text: str, *, is_target: bool) -> TargetEnd:
        """The end of a local path or a path on the grid."""


def scheme_of(text: str) -> str:
    """The argument's scheme if it is a URL of a known kind; "" otherwise."""
    scheme, found, _ = text.partition("://")
    return scheme.lower() if found and scheme.lower() in SCHEMES else ""


def choose_streams(sources: Sequence[str], target: str, is_remote: Callable[[str], bool]) -> int:
    """The default number of parallel ranges per file. is_remote: whether an argument that is not a URL is on the grid.

    A disk is no faster for several readers, unless the target can also be written in any order.
    """

    def is_disk(text: str) -> bool:
        return not scheme_of(text) and not is_remote(text)

    takes_any_order = is_disk(target) or scheme_of(target) == "sftp"
    return STREAMS if takes_any_order or not all(map(is_disk, sources)) else 1


def open_source(text: str, open_other: OpenOther) -> SourceEnd:
    """Open a source. open_other: opens what is not a URL. MissingExtraError, ConfigError, EndError."""
    if scheme_of(text) in ("http", "https"):
        from grid.transfer.http_end import HttpEnd

        return HttpEnd(text)
    return _open(text, open_other, is_target=False)


def open_target(text: str, open_other: OpenOther) -> TargetEnd:
    """Open the target, which cannot be a web server."""
    if scheme_of(text) in ("http", "https"):
        raise EndError(f"{scheme_of(text)}:// can only be a source")
    return _open(text, open_other, is_target=True)


def _open(text: str, open_other: OpenOther, *, is_target: bool) -> TargetEnd:
    scheme = scheme_of(text)
    if scheme in OBJECT_SCHEMES:
        from grid.transfer.object_end import open_object_end

        return open_object_end(text, is_target=is_target)
    if scheme == "sftp":
        from grid.transfer.sftp_end import open_sftp_end

        return open_sftp_end(text, is_target=is_target)
    return open_other(text, is_target=is_target)


def require_apart(sources: Sequence[SourceEnd], target: TargetEnd, plan: Plan) -> None:
    """Raise EndError if each run would copy the copies of earlier ones, or if --delete would remove a source; and if a source
    is given twice.

    Two names of one directory of the grid are not recognized.
    """
    for number, source in enumerate(sources):
        if identity_of(source) in map(identity_of, sources[:number]):
            raise EndError(f"{source.label} is given twice")
    there = tuple(target.location) if isinstance(target, Located) else ()
    for source in sources:
        here = tuple(source.location) if isinstance(source, Located) else ()
        if not here or not there:
            continue
        if here == there:
            raise EndError(f"{source.label} and {target.label} are the same")
        below = "/".join(max(here, there, key=len)[min(len(here), len(there)) :])
        if plan.selection.excludes(below, is_directory=True):
            continue
        if there[: len(here)] == here:
            why = f"{target.label} lies in {source.label}: each run would copy the copies, too"
            raise EndError(f"{why}; choose another target, or --exclude '/{below}'")
        if plan.delete and here[: len(there)] == there:
            raise EndError(f"{source.label} lies in {target.label}, and --delete would remove it")


@frozen(kw_only=True)
class Request:
    """A requested transfer. sources, target: arguments, as typed."""

    sources: Sequence[str]
    target: str
    plan: Plan
    schedule: Schedule | None = None


async def transfer(request: Request, open_other: OpenOther, observer: Observer) -> Outcome:
    """Open the ends and the journal, run the transfer, and close them.

    BusyError, and the errors of opening and listing.
    """
    sources = [open_source(text, open_other) for text in request.sources]
    target = open_target(request.target, open_other)
    try:
        require_apart(sources, target, request.plan)
        journal = await asyncio.to_thread(journal_path, list(map(identity_of, sources)), identity_of(target))
        opened = Journal(journal)
        plan = evolve(request.plan, keeps_times=keep_times(*sources, target))
        try:
            return await Transfer(sources, target, opened, plan, observer=observer, slow=limit(request.schedule)).run()
        finally:
            opened.close()
    finally:
        for end in (*sources, target):
            await end.close()


def limit(schedule: Schedule | None) -> Slow:
    """A function that counts bytes about to be sent."""
    if schedule is None:
        return unlimited
    return RateLimit(schedule, time.monotonic, lambda: minute_of(time.time())).take
