"""Histories of rows over records."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from perf.__main__ import main
from perf.records.record import Record, RecordWriter
from perf.reports.history import history
from tests.perf.samples import record


def at(day: int, seconds: float, **machine: object) -> Record:
    made = record({"grid": [[seconds * (0.99 + 0.001 * day)], [seconds], [seconds * 1.01]]})
    environment = {"date": f"2026-01-{day:02}", "commit": f"{day:010}", **machine}
    return evolve(made, header=evolve(made.header, environment=environment))


@pytest.mark.parametrize("first", [5, 6, 10])
def test_history_names_the_commit_of_a_step(first: int) -> None:
    """Also that of the newest record."""
    text = history([at(day, 1.0 if day < first else 2.0) for day in range(10, 0, -1)], "put")
    assert text.index("2026-01-01") < text.index("2026-01-10")
    assert f"A step at {first:010}: 0.5 times what was before" in text


def test_history_without_a_step_or_a_row_says_so() -> None:
    assert "No step shown." in history([at(day, 1.0) for day in range(1, 9)])
    assert "Too few records for a step" in history([at(day, 1.0 if day < 4 else 9.0) for day in range(1, 8)])
    assert history([at(1, 1.0)], "nothing like it") == "no row has 'nothing like it' in its name\n"


def test_history_of_unlike_machines_is_refused_unless_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for day, cpu in ((1, "A"), (2, "B")):
        made = at(day, 1.0, cpu=cpu)
        with RecordWriter(tmp_path / f"{cpu}.jsonl", made.header) as writer:
            for one in made.samples:
                writer.write(one)
    paths = [str(tmp_path / f"{cpu}.jsonl") for cpu in "AB"]
    assert main(["history", *paths]) == 1
    assert "measured in unlike environments, so their times make no history: cpu: A and B" in capsys.readouterr().err
    assert main(["history", "--force", *paths]) == 0
    assert "| 2026-01-02 |" in capsys.readouterr().out
