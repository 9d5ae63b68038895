"""The files in deploy/: units that systemd accepts, commands that exist, a consistent compose file."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from grid.cli.commands.backup import INCOMPLETE
from grid.cli.main import cli, main
from grid.cli.terminal.runner import CLEAN_UP_S
from grid.node.config import parse_config

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
OWN_UNITS = sorted((DEPLOY / "user").iterdir())
BACKUP = DEPLOY / "user" / "grid-backup.service"

NO_SYSTEMD = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
"""It reads units without a running systemd."""

HARDENING = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "CapabilityBoundingSet": "",
    "UMask": "0077",
    "User": "grid",
}


def _read(unit: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.read_text())
    return parser


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def test_units_are_for_each_kind_of_node() -> None:
    assert [unit.stem for unit in UNITS] == ["grid-gateway", "grid-introducer", "grid-storage", "grid-watch@"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_when_read_takes_away_what_a_node_does_not_need(unit: Path) -> None:
    service = _read(unit)["Service"]
    assert {name: service[name] for name in HARDENING} == HARDENING
    named = re.search(r"GRID_NODE_DIR=(\S+)", service.get("Environment", ""))
    directory = service["ExecStart"].split()[-1] if named is None else named[1]
    assert service["ReadWritePaths"] == directory


@NO_SYSTEMD
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_when_verified_is_taken_by_systemd(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name.replace("@", "@microscope")
    program = _read(unit)["Service"]["ExecStart"].split()[0]
    copy.write_text(unit.read_text().replace(program, "/bin/true").replace("User=grid", "User=daemon"))
    assert _verify(copy) == ""


@NO_SYSTEMD
@pytest.mark.parametrize("unit", OWN_UNITS, ids=lambda unit: unit.name)
def test_unit_of_a_user_when_verified_is_taken_by_systemd(unit: Path, tmp_path: Path) -> None:
    installed = tmp_path / ".config" / "systemd" / "user"
    shutil.copytree(unit.parent, installed)
    program = tmp_path / ".local" / "bin" / "grid"
    program.parent.mkdir(parents=True)
    program.symlink_to("/bin/true")
    assert _verify(installed / unit.name, "--user", home=tmp_path) == ""


@NO_SYSTEMD
def test_unit_of_a_user_without_grid_is_not_taken_by_systemd(tmp_path: Path) -> None:
    assert f"{tmp_path}/.local/bin/grid is not executable" in _verify(BACKUP, "--user", home=tmp_path)


def _verify(unit: Path, *options: str, home: Path = Path("/")) -> str:
    """What systemd complains about in a unit. home: of the user whose unit it is; it also holds what belongs to the session."""
    done = subprocess.run(
        ["systemd-analyze", *options, "verify", "--man=no", str(unit)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_unit_when_started_runs_a_command_that_there_is(unit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, command, *_ = _read(unit)["Service"]["ExecStart"].split()
    assert program == "/opt/grid/bin/grid"
    assert main([command, "--help"]) == 0
    offered = capsys.readouterr().out
    assert offered
    options = re.findall(r"--[a-z-]+", _read(unit)["Service"]["ExecStart"])
    assert all(option in offered for option in options)


def test_backup_units_run_a_command_that_is_understood_every_day() -> None:
    service, timer = _read(BACKUP), _read(DEPLOY / "user" / "grid-backup.timer")
    program, command, *arguments = service["Service"]["ExecStart"].split()
    assert (program, command) == ("%h/.local/bin/grid", "backup")
    arguments.remove("$GRID_BACKUP_OPTIONS")
    named = set(re.findall(r"^Environment=(\w+)=", BACKUP.read_text(), re.MULTILINE))
    assert named == {*re.findall(r"GRID_BACKUP_\w+", service["Service"]["ExecStart"]), "GRID_NODE_DIR"}
    assert service["Service"]["RestartPreventExitStatus"] == str(int(INCOMPLETE))
    assert cli.get_command(click.Context(cli), command).make_context(command, arguments).params["source"]  # type: ignore[union-attr]
    assert (timer["Timer"]["OnCalendar"], timer["Timer"]["Persistent"]) == ("daily", "true")


def test_node_when_it_is_stopped_has_the_time_that_it_gives_its_requests() -> None:
    needed_s = parse_config("", "grid.cfg").web_drain_s + CLEAN_UP_S
    for unit in UNITS:
        assert float(_read(unit)["Service"]["TimeoutStopSec"].removesuffix("s")) > needed_s
    for service in _compose()["services"].values():
        assert float(service["stop_grace_period"].removesuffix("s")) > needed_s


def test_script_when_it_makes_nodes_uses_options_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DEPLOY / "start-node.sh").read_text()
    assert subprocess.run(["sh", "-n", str(DEPLOY / "start-node.sh")], check=False).returncode == 0
    made = re.findall(r'"\$grid" create (\w+) (.*)', text)
    assert {kind for kind, _ in made} == {"introducer", "storage", "client"}
    for kind, rest in made:
        assert main(["create", kind, "--help"]) == 0
        offered = capsys.readouterr().out
        assert all(option in offered for option in re.findall(r"--[a-z-]+", rest))


def test_compose_file_when_read_holds_together() -> None:
    found = _compose()
    services = found["services"]
    assert set(services) == {"introducer", "storage1", "storage2", "storage3", "gateway"}
    text = (DEPLOY / "start-node.sh").read_text()
    for service in services.values():
        (kind,) = service["command"]
        assert re.search(rf"^{kind}\)|^storage \| gateway\)", text, re.MULTILINE)
        assert service["cap_drop"] == ["ALL"]
        for volume in service["volumes"]:
            assert volume.split(":")[0] in found["volumes"]
    assert services["gateway"]["ports"] == ["127.0.0.1:3456:3456"]


def test_image_when_built_copies_what_there_is() -> None:
    root = DEPLOY.parent
    for line in (DEPLOY / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY") and "--from" not in line:
            *sources, _ = line.split()[1:]
            assert all((root / source).exists() for source in sources)
