"""Commands turn Python's garbage collector off while they import, and on again before they work, however long that takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import environment

_PROBE = """
import gc, sys
from grid.cli.main import main
from grid.transfer.engine import Transfer
run = Transfer.run
async def looked(self):
    outcome = await run(self)
    print("collects:", gc.isenabled(), gc.get_freeze_count() > 0, file=sys.stderr)
    return outcome
Transfer.run = looked
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", [["transfer"], ["sync"], ["watch", "--once", "--settle", "0"]])
def test_transfer_of_any_length_collects_garbage(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").write_bytes(b"x")
    ends = [str(tmp_path / "source"), str(tmp_path / "target")]
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, *command, *ends],
        env=environment(XDG_STATE_HOME=str(tmp_path), HOME=str(tmp_path)),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "collects: True True" in done.stderr
    assert (tmp_path / "target" / "file").read_bytes() == b"x"
