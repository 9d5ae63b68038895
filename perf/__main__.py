"""The command line of the harness."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import asdict

from perf.campaigns.campaign import plan_cells
from perf.campaigns.files import load, names
from perf.campaigns.workload import Workload
from perf.faults.command import add_faults
from perf.records.likeness import differences
from perf.records.record import Record, RecordError, read_record
from perf.reports.history import history
from perf.reports.markdown import found_section, quarrels_section
from perf.reports.published import publish, records_below
from perf.reports.renewed import renew
from perf.reports.report import compare, report
from perf.reports.samples_table import write_csv, write_files_csv, write_parquet
from perf.reports.target_rows import target_tables
from perf.runs.command import InterruptedRunError, add_run, resumed_section, tell
from perf.runs.doctor import add_doctor
from perf.runs.tour import add_tour
from perf.soak.command import add_soak

TIMELINES_DRAWN = 6
"""Timelines of outliers drawn for each record of a report."""


def main(arguments: list[str] | None = None) -> int:
    """Return the exit code: 0 if everything requested succeeded, 1 otherwise, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        status: int = options.action(options)
    except InterruptedRunError as error:
        print(f"perf: {error}", file=sys.stderr)
        return 130
    except (RecordError, OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"perf: {error}", file=sys.stderr)
        return 1
    return status


def _report(options: argparse.Namespace) -> int:
    if not options.records and options.renew is None:
        options.refuse("the following arguments are required: records")
    paths = records_below(options.records)
    records = [read_record(path) for path in paths]
    if options.renew is not None or options.publish is not None:
        return _publish(records, options)
    if options.output is not None and options.output.suffix == ".html":
        return _write_page(records, options)
    parts = [target_tables(records, all_rows=len(records) > 1), quarrels_section(records)]
    for record in records:
        mine = options.subject if options.subject in record.header.systems else None
        parts += [report(record, options.subject), found_section(record, mine), resumed_section(record)]
    text = "\n".join(part for part in parts if part)
    if options.output is None:
        print(text)
        return 0
    options.output.parent.mkdir(parents=True, exist_ok=True)
    names = [path.stem for path in paths]
    pictures = [_pictures(record, options.output.parent / name) for record, name in zip(records, names, strict=True)]
    links = [f"![{picture.stem}]({picture.name})" for drawn in pictures for picture in drawn]
    options.output.write_text("\n".join([text, *links, ""]))
    tell(f"report: {options.output}")
    return 0


def _publish(records: Sequence[Record], options: argparse.Namespace) -> int:
    """Publish the records alone, or with what is published of other campaigns."""
    if options.renew is not None:
        written = renew(records, options.renew, options.quote, force=options.force)
    else:
        written = publish(records, options.publish, options.quote)
    tell("\n".join(f"written: {path}" for path in written))
    return 0


def _pictures(record: Record, stem: Path) -> list[Path]:
    """A picture of the record, if there is anything to draw, and one of each of its timelines."""
    from perf.reports.plot import plot, plot_timeline

    drawn = []
    if next(iter(record.measured()), None) is not None:
        drawn.append(stem.with_suffix(".png"))
        plot(record, drawn[-1])
    for kept in [one for one in record.timelines if one.events][:TIMELINES_DRAWN]:
        drawn.append(stem.with_name(f"{stem.name}-{kept.run}-{kept.order}.png"))
        plot_timeline(record, kept, drawn[-1])
    return drawn


def _compare(options: argparse.Namespace) -> int:
    before, after = read_record(options.before), read_record(options.after)
    unlike = differences(before.header.environment, after.header.environment)
    if unlike and not options.force:
        what = "; ".join(f"{name}: {old} and {new}" for name, (old, new) in unlike.items())
        raise RecordError(
            f"these were measured in unlike environments, so that times say nothing: {what}. --force compares"
        )
    print(compare(before, after))
    return 0


def _history(options: argparse.Namespace) -> int:
    print(history([read_record(path) for path in options.records], options.row, force=options.force))
    return 0


def _write_page(records: Sequence[Record], options: argparse.Namespace) -> int:
    """Write the page, with the table of all samples beside it."""
    from perf.reports.page import page

    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page(records, options.subject), encoding="utf-8")
    write_csv(records, options.output.with_suffix(".csv"))
    write_files_csv(records, options.output.with_name(f"{options.output.stem}-files.csv"))
    if not write_parquet(records, options.output.with_suffix(".parquet")):
        tell("no Parquet: pyarrow is not installed (pip install grid-storage[perf])")
    tell(f"report: {options.output}")
    return 0


def _plot(options: argparse.Namespace) -> int:
    from perf.reports.plot import plot

    plot(read_record(options.record), options.picture)
    return 0


def _timeline(options: argparse.Namespace) -> int:
    from perf.reports.plot import plot_timeline

    record = read_record(options.record)
    for kept in record.timelines:
        if (kept.run, kept.order) == (options.run, options.order) and kept.events:
            plot_timeline(record, kept, options.picture)
            return 0
    raise ValueError(f"{options.record} has no timeline of run {options.run}, order {options.order}")


def _list(options: argparse.Namespace) -> int:
    for name in names():
        campaign = load(name)
        print(f"{name:18} {campaign.duration:>11}  {campaign.purpose}")
    return 0


def _show(options: argparse.Namespace) -> int:
    campaign = load(options.campaign)
    if isinstance(campaign, Workload):
        print(f"{campaign.name}: {campaign.purpose}")
        known = asdict(campaign, filter=lambda attribute, value: value != attribute.default and bool(value))
        for name in known.keys() - {"name", "purpose"}:
            value = known[name]
            print(f"  {name}: {', '.join(map(str, value)) if isinstance(value, tuple) else value}")
        return 0
    cells = [plan_cells(campaign, 0, 0, site) for site in campaign.sites]
    print(f"{campaign.name}: {campaign.purpose}")
    print(f"systems: {', '.join(campaign.systems)}; clients: {', '.join(campaign.clients)}; {campaign.servers} servers")
    print(f"encodings: {', '.join(f'{one.needed}-of-{one.total}' for one in campaign.encodings)}")
    print(f"sites: {'; '.join(map(str, campaign.sites))}")
    print(f"{campaign.runs} runs of {sum(map(len, cells))} cells, warm-ups included; about {campaign.duration}")
    for work in campaign.loads:
        known = asdict(work, filter=lambda attribute, value: value != attribute.default)
        print(
            "  "
            + ", ".join([work.scenario, *(f"{name} {value}" for name, value in known.items() if name != "scenario")])
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m perf", description="Measure grids side by side.")
    commands = parser.add_subparsers(required=True)
    commands.add_parser("list", help="the campaigns").set_defaults(action=_list)
    described = commands.add_parser("show", help="what a campaign would do")
    described.set_defaults(action=_show)
    described.add_argument("campaign", help="a name, or a .toml file")
    add_run(commands)
    add_tour(commands)
    shown = commands.add_parser("report", help="the targets, and what records say, in Markdown")
    shown.set_defaults(action=_report, refuse=shown.error)
    shown.add_argument(
        "--subject",
        help="the system that the others are compared with; the first Grid if not given, or the first of all",
    )
    shown.add_argument(
        "--output",
        type=Path,
        help="a file to write: .html for one page with everything (.csv beside it), else Markdown with pictures",
    )
    published = shown.add_mutually_exclusive_group()
    published.add_argument(
        "--publish",
        type=Path,
        metavar="FOLDER",
        help="write measured.html, samples.csv, files.csv and speed.png there, and the tables into its README.md",
    )
    published.add_argument(
        "--renew",
        type=Path,
        metavar="FOLDER",
        help="like --publish, but keep what is published there of campaigns that have no record here",
    )
    shown.add_argument("--force", action="store_true", help="with --renew: although targets have changed since")
    shown.add_argument(
        "--quote",
        type=Path,
        metavar="README",
        help="with --publish or --renew: five numbers, the plot and a sentence about needed shares into this file",
    )
    shown.add_argument("records", type=Path, nargs="*", help="records, or folders of them")
    compared = commands.add_parser("compare", help="one record against another")
    compared.set_defaults(action=_compare)
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    compared.add_argument("--force", action="store_true", help="although they were measured in unlike environments")
    past = commands.add_parser("history", help="rows over records of many commits, with the steps in them")
    past.set_defaults(action=_history)
    past.add_argument("--row", default="", help="only rows that have this text in their names")
    past.add_argument("--force", action="store_true", help="although they were measured in unlike environments")
    past.add_argument("records", type=Path, nargs="+")
    drawn = commands.add_parser("plot", help="a picture of a record (needs matplotlib)")
    drawn.set_defaults(action=_plot)
    drawn.add_argument("record", type=Path)
    drawn.add_argument("picture", type=Path)
    add_soak(commands)
    add_faults(commands)
    told = commands.add_parser("timeline", help="a picture of one operation that took long (needs matplotlib)")
    told.set_defaults(action=_timeline)
    told.add_argument("record", type=Path)
    told.add_argument("run", type=int)
    told.add_argument("order", type=int)
    told.add_argument("picture", type=Path)
    add_doctor(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
