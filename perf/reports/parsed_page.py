"""Reads the published page and the table of campaigns beside it back. Pure: texts in, campaigns out.

RecordError, naming the file, if a text is not what `perf.reports.page` and `perf.reports.published_texts` make.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import Any

from attrs import frozen

from perf.records.record import RecordError
from perf.reports.markdown import table
from perf.reports.page import END, is_anchor
from perf.reports.published_texts import ORIGIN_TITLES
from perf.sampling.environment import parse_described

_HEADING = re.compile(r'^<h2 id="campaign-[^"<>]*">([^<>]*)</h2>\n', re.MULTILINE)
_BEGIN = re.compile(r'<h2 id="([^"]*)">[^<>]*</h2>\n<p>([^<>]*)</p>\n<p class="soft">([^<>]*)</p>\n')
_OVERVIEW = re.compile(r"<li>([^<>]+?) has [^\s<>]+ to [^\s<>]+ times the speed of ([^<>]+?) \(median ")
"""The sentences of perf.reports.findings.overviews, which name the subject, and the others in the order of their record."""


@frozen(kw_only=True)
class Section:
    """A campaign's part of the page. html: from its heading on. systems: those that it compares, the subject first."""

    campaign: str
    purpose: str
    environment: Mapping[str, Any]
    systems: Sequence[str]
    html: str


def parse_page(text: str, path: Path) -> tuple[str, list[Section]]:
    """What the page has before its sections, and these. path: named in errors."""
    if not text.endswith(END):
        raise RecordError(f"{path}: the end of the page is missing")
    headings = list(_HEADING.finditer(text))
    if not headings:
        raise RecordError(f"{path} has no section of a campaign")
    begins = [found.start() for found in headings]
    # A line end is between parts of the page, not in them.
    ends = [*(begin - 1 for begin in begins[1:]), len(text) - len(END)]
    sections = [
        _parse_section(unescape(found[1]), text[begin:end], path)
        for found, begin, end in zip(headings, begins, ends, strict=True)
    ]
    twice = {one.campaign for one in sections if sum(one.campaign == other.campaign for other in sections) > 1}
    if twice:
        raise RecordError(
            f"{path} has several sections of {', '.join(sorted(twice))}, whose samples nothing separates: publish it from "
            "records"
        )
    return text[: begins[0]], sections


def parse_origins(text: str, path: Path) -> dict[str, list[str]]:
    """The rows under ORIGIN_TITLES, by campaign."""
    lines = text.split("\n")
    head = table(ORIGIN_TITLES, [])
    places = [number for number in range(len(lines)) if lines[number : number + 2] == head]
    if len(places) != 1:
        raise RecordError(f"{path} does not have one table that begins with {head[0]}")
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines[places[0] + 2 :], places[0] + 3):
        if not line.startswith("|"):
            break
        cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
        if len(cells) != len(ORIGIN_TITLES):
            raise RecordError(f"{path}: line {number} is not a row of the table of campaigns")
        found[cells[0]] = cells
    return found


def _parse_section(campaign: str, html: str, path: Path) -> Section:
    begin = _BEGIN.match(html)
    if begin is None or not is_anchor(begin[1], campaign):
        raise RecordError(f"{path}: the section of {campaign} does not begin with its purpose and environment")
    try:
        environment = parse_described(unescape(begin[3]))
    except ValueError as error:
        raise RecordError(f"{path}: the environment of {campaign}: {error}") from None
    pairs = [(unescape(found[1]), unescape(found[2])) for found in _OVERVIEW.finditer(_findings(html))]
    return Section(
        campaign=campaign,
        purpose=unescape(begin[2]),
        environment=environment,
        systems=list(dict.fromkeys([subject for subject, _ in pairs] + [other for _, other in pairs])),
        html=html,
    )


def _findings(html: str) -> str:
    """The list below `What was found`."""
    return html.partition("<h3>What was found</h3>\n")[2].partition("</ul>")[0]
