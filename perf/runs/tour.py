"""`python -m perf tour`: many campaigns, one after the other, and one page of what they found.

A tour is a folder with a record for each campaign. Run again, it continues: what is measured is not measured again.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from attrs import field, frozen

from perf.campaigns.files import FOLDER, load
from perf.campaigns.toml_file import CampaignError
from perf.records.record import Record, RecordError, read_record
from perf.reports.page import page
from perf.reports.samples_table import write_csv, write_files_csv
from perf.runs.command import InterruptedRunError, tell

TOURS = FOLDER / "tours"
INTERRUPTED = 130


@frozen(kw_only=True)
class Stop:
    """A campaign of a tour. changes: values for keys of its file."""

    campaign: str
    changes: Mapping[str, Any] = field(factory=dict)


def add_tour(commands: Any) -> None:  # noqa: ANN401 - argparse keeps the type of its subparsers to itself
    """Add the command to the harness."""
    tour = commands.add_parser("tour", help="many campaigns, and one page of what they found; run again, it continues")
    tour.set_defaults(action=_tour)
    tour.add_argument(
        "tour", nargs="?", default="published", help="a .toml file with [[campaign]] tables, or `published`"
    )
    tour.add_argument("--smoke", action="store_true", help="each campaign in its smallest form, to see that it works")
    tour.add_argument("--minutes", type=float, help="after which no further campaign begins")
    tour.add_argument("--directory", type=Path, help="where the grids keep their data")
    tour.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="for the records and the page")


def read_tour(name: str) -> list[Stop]:
    """The campaigns of a tour, in order; CampaignError if it is missing, or names what is not a campaign or a value."""
    path = Path(name) if name.endswith(".toml") else TOURS / f"{name}.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("campaign")
    except OSError as error:
        raise CampaignError(f"no tour {name!r} ({error.strerror}); give `published` or a .toml file") from None
    except tomllib.TOMLDecodeError as error:
        raise CampaignError(f"{path}: {error}") from None
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise CampaignError(f"{path}: there is no [[campaign]]; a tour has at least one")
    stops = [_stop(path, cast(dict[str, Any], table)) for table in tables]
    if len({Path(stop.campaign).stem for stop in stops}) < len(stops):
        raise CampaignError(f"{path}: a campaign comes twice, and both would write the same record")
    return stops


def _stop(path: Path, table: Mapping[str, Any]) -> Stop:
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise CampaignError(f"{path}: a [[campaign]] has no name; `python -m perf list` tells them")
    stop = Stop(campaign=name, changes={key: value for key, value in table.items() if key != "name"})
    try:
        load(name, changes=stop.changes)
    except CampaignError as error:
        raise CampaignError(f"{path}, campaign {name}: {error}") from None
    return stop


def _tour(options: argparse.Namespace) -> int:
    stops = read_tour(options.tour)
    folder: Path = options.output
    folder.mkdir(parents=True, exist_ok=True)
    began, failed, left = time.monotonic(), [], []
    for index, stop in enumerate(stops, 1):
        name = Path(stop.campaign).stem
        if _is_finished(folder, name):
            tell(f"[{index}/{len(stops)}] {name}: measured before")
        elif options.minutes is not None and time.monotonic() - began >= options.minutes * 60:
            left.append(name)
        else:
            tell(f"[{index}/{len(stops)}] {name}, after {(time.monotonic() - began) / 60:.0f} min")
            if not _visit(stop, folder / f"{name}.jsonl", options):
                failed.append(name)
    for what, names in (("with failures (see the page)", failed), ("not begun; the same command continues", left)):
        if names:
            tell(f"{what}: {', '.join(names)}")
    _write_page(folder, [Path(stop.campaign).stem for stop in stops])
    return int(bool(failed))


def _is_finished(folder: Path, name: str) -> bool:
    return (folder / f"{name}.done").exists() and (folder / f"{name}.jsonl").exists()


def _begun(path: Path) -> Record | None:
    """The record, if anything was measured."""
    try:
        record = read_record(path)
    except (OSError, RecordError):
        return None
    return record if record.samples else None


def _visit(stop: Stop, record: Path, options: argparse.Namespace) -> bool:
    """Run a campaign, or continue it, in a process of its own. Returns whether all of it succeeded."""
    if _begun(record) is not None and not options.smoke:
        arguments = ["resume", str(record)]
    else:
        record.unlink(missing_ok=True)
        arguments = ["run", stop.campaign, "--output", str(record), *_settings(stop.changes)]
        arguments += ["--smoke"] if options.smoke else []
    if options.directory is not None:
        arguments += ["--directory", str(options.directory)]
    log = record.with_suffix(".txt")
    with log.open("a", encoding="utf-8") as out:
        child = subprocess.Popen([sys.executable, "-m", "perf", *arguments], stdout=out)
        try:
            status = child.wait()
        except KeyboardInterrupt:  # It reaches the child as well, which ends its nodes first.
            child.wait()
            status = INTERRUPTED
        except BaseException:
            child.send_signal(signal.SIGTERM)
            child.wait()
            raise
    if status == INTERRUPTED:
        raise InterruptedRunError(
            "interrupted: all nodes have ended, and what was measured is kept; the same command continues"
        )
    found = _begun(record)
    # Failures are part of a record that is complete. A campaign that came to no end says nothing of the kind.
    if found is not None and (status == 0 or found.has_ended):
        record.with_suffix(".done").touch()
    return status == 0


def _settings(changes: Mapping[str, Any]) -> Iterator[str]:
    for key, value in changes.items():
        yield "--set"
        yield f"{key}={_as_toml(value)}"


def _as_toml(value: Any) -> str:  # noqa: ANN401 - TOML's
    """A value as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_as_toml, cast(Sequence[Any], value)))}]"
    if isinstance(value, dict):
        pairs = (f"{key} = {_as_toml(one)}" for key, one in cast(Mapping[str, Any], value).items())
        return f"{{{', '.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _write_page(folder: Path, names: Sequence[str]) -> None:
    """One page with everything that was measured, and tables of all samples beside it."""
    records = [found for name in names if (found := _begun(folder / f"{name}.jsonl")) is not None]
    if not records:
        raise RecordError("nothing was measured")
    (folder / "index.html").write_text(page(records), encoding="utf-8")
    write_csv(records, folder / "samples.csv")
    write_files_csv(records, folder / "files.csv")
    tell(f"report: {folder / 'index.html'}")
