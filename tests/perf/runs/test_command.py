"""Options of `python -m perf run` that change a campaign are checked as its file is, before anything starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perf.__main__ import main
from perf.records.beside import Gap
from perf.records.record import RecordWriter


@pytest.fixture(autouse=True)
def own_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tree this environment has: nothing starts here."""
    monkeypatch.setattr("perf.runs.command.expect_own_tree", lambda: None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["put-get", "--clients", "foo"], "clients cannot be 'foo'; allowed: warm, gateway or cli"),
        (["put-get", "--runs", "-1"], "runs cannot be -1; allowed: a whole number from 1 to 1000"),
        (["put-get", "--runs", "0"], "runs cannot be 0"),
        (["put-get", "--repetitions", "-1"], "repetitions cannot be -1"),
        (["put-get", "--sizes", "0"], "put-get needs a size"),
        (["put-get", "--sizes", "-1"], "size cannot be -1000000"),
        (["put-get", "--sizes", "1,big"], "--sizes cannot be '1,big': give numbers of MB"),
        (["put-get", "--sizes", "inf"], "--sizes cannot be 'inf'"),
        (["put-get", "--systems", "gird"], "no system 'gird'"),
        (["idle", "--seconds", "0"], "idle needs seconds"),
        (["idle", "--seconds", "-1"], "seconds cannot be -1"),
        (["put-get", "--smoke", "--clients", "foo"], "clients cannot be 'foo'"),
        (["reverify", "--systems", "scp"], "cannot measure scp"),
        (["reverify", "--systems", "gird/cli"], "systems cannot be 'gird/cli'"),
        (["reverify", "--runs", "-1"], "runs cannot be -1"),
    ],
)
def test_option_that_makes_a_campaign_impossible_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    output = tmp_path / "record.jsonl"
    assert main(["run", *words, "--output", str(output)]) == 1
    assert says in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(("output", "says"), [(False, "kept nothing"), (True, "go on with: python -m perf resume ")])
def test_smoke_test_that_is_interrupted_names_its_record_only_if_it_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, output: bool, says: str
) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("perf.runs.command.run_workload", interrupt)
    words = ["--output", str(tmp_path / "record.jsonl")] if output else []
    assert main(["run", "ciphers-micro", "--smoke", "--directory", str(tmp_path), *words]) == 130
    assert says in capsys.readouterr().err


def test_smoke_test_that_measures_nothing_is_no_success_and_says_that_it_kept_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave_out(_campaign: object, _work: object, writer: RecordWriter, *_: object) -> int:
        writer.write_gap(Gap(system="scp", work="all", reason="it is missing"))
        return 0

    monkeypatch.setattr("perf.runs.command.run_workload", leave_out)
    assert main(["run", "ciphers-micro", "--smoke", "--directory", str(tmp_path)]) == 1
    assert "0 operations, 0 failed, 1 gaps\nNothing was kept" in capsys.readouterr().err


def test_campaign_that_finds_nothing_to_do_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perf.runs.command.run_workload", lambda *_: 0)
    assert main(["run", "ciphers-micro", "--directory", str(tmp_path), "--output", str(tmp_path / "record.jsonl")]) == 1
    assert "did nothing" in capsys.readouterr().err


def test_python_without_grid_is_told_how_to_install_it() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-S", "-m", "perf", "doctor"], cwd=root, env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("perf: Grid is not installed for this Python: run `make install`")
