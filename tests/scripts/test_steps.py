"""Failing steps of the setup scripts: retried, and reported with the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(scope="module")
def steps() -> ModuleType:
    spec = spec_from_file_location("steps", SCRIPTS / "steps.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_step_when_it_succeeds_at_last_is_no_failure(steps: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    pauses: list[float] = []
    outcomes = [OSError("no route to host"), RuntimeError("pip ended with 1: timed out"), None]

    def step() -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome

    assert steps.attempt("a program", step, pauses.append) == ""
    assert pauses == [10.0, 10.0]
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "a program: no route to host; trying again in 10 s",
        "a program: pip ended with 1: timed out; trying again in 10 s",
    ]


def test_step_when_it_never_succeeds_says_why(steps: ModuleType) -> None:
    tries: list[float] = []

    def step() -> None:
        raise OSError(f"failure {len(tries)}")

    assert steps.attempt("a program", step, tries.append) == "failure 2"
    assert len(tries) == 2


def test_step_when_it_is_not_for_us_to_do_is_not_tried_again(steps: ModuleType) -> None:
    def step() -> None:
        raise PermissionError("it takes root")

    def never(seconds: float) -> None:
        raise AssertionError("it was tried again")

    assert steps.attempt("a program", step, never) == "it takes root"


def test_command_when_it_fails_gives_its_last_line(steps: ModuleType) -> None:
    with pytest.raises(RuntimeError, match=r"ended with 3: the reason$"):
        steps.run([sys.executable, "-c", "import sys; print('much\\nthe reason', file=sys.stderr); sys.exit(3)"])
    with pytest.raises(RuntimeError, match=r"ended with 4: nothing said$"):
        steps.run([sys.executable, "-c", "import sys; sys.exit(4)"])


@pytest.mark.parametrize(("successes_from", "expected"), [(1, 0), (3, 0), (4, 7)])
def test_retried_command_when_it_fails_is_run_three_times_at_most(
    tmp_path: Path, successes_from: int, expected: int
) -> None:
    count = tmp_path / "count"
    script = f'echo x >>{count}; test "$(wc -l <{count})" -ge {successes_from} || exit 7'
    done = subprocess.run(
        ["sh", str(SCRIPTS / "retry.sh"), "sh", "-c", script],
        env={**os.environ, "RETRY_PAUSE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    runs = min(successes_from, 3)
    assert (done.returncode, len(count.read_text().splitlines())) == (expected, runs)
    assert done.stderr.count("ended with 7") == min(successes_from - 1, 2)


def test_lock_when_another_process_holds_it_is_waited_for(steps: ModuleType, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    take = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import steps\n"
        "print('asking', flush=True)\n"
        "with steps.one_at_a_time(Path(sys.argv[2])): print(Path(sys.argv[2]).with_name('done').exists(), flush=True)\n"
    )
    with steps.one_at_a_time(lock):
        command = [sys.executable, "-c", take, str(SCRIPTS), str(lock)]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "asking\n"
        (tmp_path / "done").touch()
    with other:
        assert other.stdout.read() == "True\n"
    assert other.returncode == 0
