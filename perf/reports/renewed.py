"""Renews the published report campaign by campaign: what records measured again, the rest as it is published.

Raw records stay out of the tree. The samples of campaigns without one are read from the published tables, and their
environment from the page, so that what is said about all campaigns together is made of old and new samples.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from perf.records.record import Header, Record, RecordError
from perf.reports.page import QUARRELS, assemble, quarrels, section, stated
from perf.reports.parsed_page import Section, parse_origins, parse_page
from perf.reports.parsed_tables import PublishedSamples, parse_samples, parse_transfers
from perf.reports.published import LEFT_OUT, Contents, expect_places, write
from perf.reports.published_rows import measured
from perf.reports.published_texts import OF_TARGETS, origin
from perf.reports.samples_table import Table, joined, table_of, transfer_lines
from perf.reports.target_rows import counts, outcomes


@frozen(kw_only=True)
class Part:
    """A campaign of the report. transfers: the lines of its own, as they are written."""

    record: Record
    html: str
    samples: Table
    transfers: Sequence[Sequence[object]]


def renew(records: Sequence[Record], folder: Path, quoted_in: Path | None, *, force: bool = False) -> list[Path]:
    """Publish these records in place of those of the same campaigns, or below all; return the written paths.

    quoted_in: as in perf.reports.published.publish. force: although what is judged of the published samples is no longer
    what the page says. RecordError, before anything is written, if the published report cannot be read.
    """
    expect_places(folder, quoted_in)
    parts, are_transfers_known = _read(folder, force=force)
    names = [record.header.campaign for record in records]
    for name, record in zip(names, records, strict=True):
        if names.count(name) > 1:
            raise RecordError(f"several of these records are of campaign {name}: renew it from one")
        parts[name] = Part(
            record=record,
            html=section(record),
            samples=table_of([record]),
            transfers=transfer_lines([record]),
        )
    everything = [one.record for one in parts.values()]
    contents = Contents(
        records=everything,
        found=measured(everything),
        page=assemble(everything, [one.html for one in parts.values()]),
        samples=joined([one.samples for one in parts.values()]),
        transfers=[line for one in parts.values() for line in one.transfers] if are_transfers_known else None,
    )
    return write(contents, folder, quoted_in)


def _read(folder: Path, *, force: bool) -> tuple[dict[str, Part], bool]:
    """What is published, in order, and whether it has the transfers; RecordError if its files contradict each other."""
    paths = {name: folder / name for name in ("measured.html", "README.md", "samples.csv", "files.csv")}
    texts = {name: _text(path) for name, path in paths.items() if name != "files.csv"}
    if paths["files.csv"].exists() or "](files.csv)" in texts["README.md"]:
        texts["files.csv"] = _text(paths["files.csv"])
    head, sections = parse_page(texts["measured.html"], paths["measured.html"])
    origins = parse_origins(texts["README.md"], paths["README.md"])
    campaigns = parse_samples(io.StringIO(texts["samples.csv"], newline=""), paths["samples.csv"])
    if "files.csv" in texts:
        campaigns = parse_transfers(io.StringIO(texts["files.csv"], newline=""), paths["files.csv"], campaigns)
    for path, found in ((paths["README.md"], origins), (paths["samples.csv"], campaigns)):
        if strange := set(found) - {one.campaign for one in sections}:
            raise RecordError(f"{path} has {', '.join(sorted(strange))}, of which measured.html has no section")
    parts = {one.campaign: _part(one, campaigns.get(one.campaign), origins, folder) for one in sections}
    if not force:
        _expect_stated([one.record for one in parts.values()], head, texts["README.md"], folder)
    return parts, "files.csv" in texts or LEFT_OUT not in texts["README.md"]


def _text(path: Path) -> str:
    """A published file, its line ends unchanged."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        raise RecordError(
            f"{path} is missing: there is nothing to renew. --publish makes it from all records"
        ) from None
    except UnicodeDecodeError:
        raise RecordError(f"{path} is not a text in UTF-8") from None


def _part(one: Section, campaign: PublishedSamples | None, origins: dict[str, list[str]], folder: Path) -> Part:
    """A published campaign; RecordError if the page, the README and the table of samples differ about it."""
    environment = dict(one.environment)
    row = origins.get(one.campaign, [])
    if row and not row[3]:
        del environment["load"]
    samples = () if campaign is None else tuple(campaign.samples)
    systems = dict.fromkeys([*one.systems, *(sample.system for sample in samples)])
    header = Header(
        campaign=one.campaign, seed=0, environment=environment, systems=systems, plan={"purpose": one.purpose}
    )
    record = Record(header, samples)
    if origin(record) != row:
        raise RecordError(
            f"{folder / 'README.md'} says of {one.campaign}: {' | '.join(row[1:]) or 'nothing'}; measured.html and samples.csv "
            f"say: {' | '.join(origin(record)[1:])}"
        )
    if campaign is None:
        return Part(record=record, html=one.html, samples=Table([], []), transfers=[])
    if (campaign.date, campaign.commit[:10]) != (environment.get("date", ""), environment.get("commit", "")):
        raise RecordError(
            f"{folder / 'samples.csv'} has {one.campaign} of {campaign.date}, commit {campaign.commit[:10]}, but README.md "
            f"and measured.html say: {' | '.join(row[1:3])}"
        )
    return Part(record=record, html=one.html, samples=campaign.table, transfers=campaign.transfers)


def _expect_stated(records: Sequence[Record], head: str, readme: str, folder: Path) -> None:
    """RecordError unless the records give the counts of targets, and the disagreements, that the page states."""
    found = outcomes(records)
    sentence = counts(found)
    says = readme.partition(OF_TARGETS)[2].partition("\n")[0]
    unless = "Nothing was written. --force renews it all the same, if {} changed since it was published"
    if says != sentence or (stated(sentence) in head) != any(one.findings for one in found):
        raise RecordError(
            f"{folder} says of its targets: {says or 'nothing'} Its samples say: {sentence} {unless.format('targets have')}"
        )
    disagreeing = quarrels(records)
    if (QUARRELS in head) != bool(disagreeing) or not all(part in head for part in disagreeing):
        raise RecordError(
            f"{folder / 'measured.html'} names other campaigns that disagree than its samples do. {unless.format('intervals have')}"
        )
