"""docs/other-tools.md, typed as it is: each tool stores, seven of ten nodes are killed, and each tool reads everything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from grid.node.local_grid import log_file
from perf.processes.node_process import child_environment, free_ports
from tests.cli.command import grid
from tests.docs.console import in_place_of
from tests.doors.grid import program
from tests.doors.sftp_grid import require_mounts, required

pytestmark = [pytest.mark.doors, pytest.mark.timeout(900)]

PAGE = Path(__file__).parents[2] / "docs" / "other-tools.md"
PORTS = ("3456", "9000", "8022")
PAGE_S = 600.0

TOOLS = ("aws", "restic", "rclone")
"""Commands of the page that `make peers` installs; sshfs and scp are Debian's."""

PROMISED = (
    "s3 sync photos s3://",
    "s3 sync s3://",
    "restic -r s3:",
    "rclone mount",
    "sshfs -F",
    "scp -F",
    'pandas.read_parquet("grid://',
)
"""What the page must not lose."""

_BLOCK = re.compile(r"^```(sh|py)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def script(page: str) -> str:
    """The page as one program for a shell that ends at the first command that fails."""
    lines = ["set -e -o pipefail"]
    for kind, body, output in _BLOCK.findall(page):
        if kind == "sh":
            lines.append(body)
        else:
            lines += [
                "python - > printed <<'PROGRAM'",
                f"{body}PROGRAM",
                f"diff printed - <<'PRINTED'\n{output}PRINTED",
            ]
    return "\n".join(lines)


def tools(folder: Path) -> Path:
    """A folder with the page's commands; the test is skipped with the reason if one is not installed."""
    tables = Path(program("tables")).parents[1]
    packages = sysconfig.get_path("purelib", vars={"base": str(tables), "platbase": str(tables)})
    folder.mkdir()
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    for name in TOOLS:
        (folder / name).symlink_to(program({"aws": "awscli"}.get(name, name)))
    for name in ("sshfs", "scp", "ssh-keygen", "fusermount3"):
        required(name)
    return folder


def environment(home: Path, folder: Path) -> dict[str, str]:
    """Of the shell: the commands and this interpreter's programs, and nothing of the user's own."""
    path = [str(folder), str(Path(sys.executable).parent), os.environ["PATH"]]
    names = ("AWS_", "GRID_", "RCLONE_", "RESTIC_")
    kept = {name: value for name, value in child_environment().items() if not name.startswith(names)}
    return {**kept, "HOME": str(home), "PATH": os.pathsep.join(path)}


def test_page_has_every_tool_that_it_is_for() -> None:
    assert not [each for each in PROMISED if each not in script(PAGE.read_text())]


def test_page_when_typed_stores_with_every_tool_and_reads_after_seven_of_ten_nodes_were_killed(tmp_path: Path) -> None:
    require_mounts()
    home, page = tmp_path / "home", PAGE.read_text()
    home.mkdir()
    page = in_place_of(page, dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True)))
    known = environment(home, tools(tmp_path / "bin"))
    try:
        with (tmp_path / "output").open("wb") as output:
            done = subprocess.run(
                ["bash", "-x", "-c", script(page)],
                cwd=home, env=known, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False,
                timeout=PAGE_S,
            )  # fmt: skip
        assert done.returncode == 0, (tmp_path / "output").read_text(errors="replace")[-4000:]
    finally:
        for mount in ("bucket", "home"):
            if os.path.ismount(home / mount):
                subprocess.run([required("fusermount3"), "-u", "-z", str(home / mount)], check=False)
        grid("down", "--dir", home / "mygrid")
    for name in ("from-aws", "from-restic/photos", "from-scp"):
        assert len(list((home / name).iterdir())) == 3
    log = log_file(home / "mygrid" / "client").read_text(errors="replace")
    assert "S3 interface at" in log and "SFTP interface at" in log
    secret = (home / "s3-key").read_text().split()[-1]
    assert not [hidden for hidden in ("URI:", secret, ".jpg", "numbers.parquet") if hidden in log]
