"""Files of a web server that change while their ranges are fetched: no copy mixes two versions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest
from attrs import evolve, frozen

from grid.transfer.http_end import HttpEnd
from grid.transfer.outcome import Outcome
from tests.transfer.scripted_web import Script, WebRequest, scripted_web
from tests.transfer.test_engine import FAST, contents, send

SIZE = 3 * 2**20 + 7
DATE, LATER = "Sun, 22 Nov 2026 12:00:00 GMT", "Sun, 22 Nov 2026 12:00:01 GMT"


@frozen
class Version:
    """What the server has. tag, date: "" if it does not say."""

    data: bytes
    tag: str = ""
    date: str = ""


def versions(first: Version, second: Version, count: int) -> Iterator[Version]:
    """The first version for a number of requests, then the second."""
    return chain(repeat(first, count), repeat(second))


def serve(served: Iterator[Version], asked: list[dict[str, str]]) -> Script:
    """A server of ranges, which does not look at If-Range."""

    def answer(request: WebRequest) -> None:
        asked.append(dict(request.headers))
        version = next(served)
        headers = {"ETag": version.tag, "Last_Modified": version.date}
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        if match is None:
            request.answer(200, version.data, None, **headers)
            return
        if int(match[1]) >= len(version.data):
            request.answer(416, b"", None, **headers)
            return
        begin, end = int(match[1]), min(int(match[2]) + 1, len(version.data))
        total = f"bytes {begin}-{end - 1}/{len(version.data)}"
        request.answer(206, version.data[begin:end], None, **headers, Content_Range=total)

    return answer


def fetch(served: Iterator[Version], tmp_path: Path, asked: list[dict[str, str]] | None = None) -> Outcome:
    """Send the file in ranges, if that is possible."""
    with scripted_web(serve(served, [] if asked is None else asked)) as url:
        return send(HttpEnd(f"{url}/file"), tmp_path / "target", tmp_path, evolve(FAST, retries=1))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries do not wait."""
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)


OLD, NEW = os.urandom(SIZE), os.urandom(SIZE)
LISTED, OPENED, ONE_RANGE = 1, 1, 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Version(OLD, 'W/"1"', DATE), Version(NEW, 'W/"2"', DATE)),
        (Version(OLD, 'W/"1"', DATE), Version(NEW, 'W/"1"', LATER)),
        (Version(OLD, '"1"', DATE), Version(NEW, '"2"', DATE)),
        (Version(OLD, "", DATE), Version(NEW, "", LATER)),
        (Version(OLD, "", DATE), Version(NEW + b"more", "", DATE)),
        (Version(OLD, '"1"', DATE), Version(b"short", '"2"', DATE)),
        (Version(OLD), Version(NEW)),
    ],
)
def test_file_when_it_changes_between_its_ranges_is_one_version(
    first: Version, second: Version, tmp_path: Path
) -> None:
    outcome = fetch(versions(first, second, LISTED + OPENED + ONE_RANGE), tmp_path)
    assert not outcome.failures
    found = contents(tmp_path / "target")["file"]
    assert found in (first.data, second.data)


def test_ranges_require_the_strongest_that_is_known_of_the_first_answer(tmp_path: Path) -> None:
    conditions = {'"1"': '"1"', 'W/"1"': DATE, "": DATE}
    for number, (tag, condition) in enumerate(conditions.items()):
        version, asked = Version(OLD, tag, DATE), list[dict[str, str]]()
        (tmp_path / str(number)).mkdir()
        assert not fetch(repeat(version), tmp_path / str(number), asked).failures
        ranges = [each for each in asked if "Range" in each]
        assert len(ranges) == 4 and {each.get("If-Range") for each in ranges} == {condition}


def test_file_of_which_nothing_tells_the_version_is_one_answer(tmp_path: Path) -> None:
    asked = list[dict[str, str]]()
    assert not fetch(repeat(Version(OLD)), tmp_path, asked).failures
    assert contents(tmp_path / "target") == {"file": OLD}
    assert len(asked) == LISTED + OPENED and not any("Range" in each for each in asked)


def test_range_of_which_nothing_tells_the_version_is_refused(tmp_path: Path) -> None:
    first = Version(OLD, 'W/"1"')
    outcome = fetch(versions(first, Version(NEW), LISTED + OPENED), tmp_path)
    assert "--mode stream" in str(outcome.failures[0][1])
    assert contents(tmp_path / "target") == {}
