"""Records the machine and software, so that readers can judge a record's numbers later."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import grid
from perf.campaigns.campaign import Encoding
from perf.processes.node_process import child_environment
from perf.sampling.sampler import PRESSURES

PACKAGES = ("grid-storage", "Twisted", "foolscap", "zfec", "pyeclib", "cryptography", "pycryptodome", "treq")
ROOT = Path(__file__).resolve().parent.parent.parent


def capture(work_directory: Path) -> dict[str, Any]:
    """The current environment; None for what cannot be determined.

    work_directory: where the grids keep their data.
    """
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": _output("git", "-C", str(ROOT), "rev-parse", "HEAD"),
        "modified": bool(_output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")),
        "cpu": _cpu_model(),
        "cpu_count": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "filesystem": _output("stat", "-f", "-c", "%T", str(work_directory)),
        "load": os.getloadavg()[0],
        "congestion_control": _read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "pressure": {name: _read(f"/proc/pressure/{name}") for name in PRESSURES},
        "nice": os.nice(0),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "codec": _engine("grid.codec.erasure", "codec_name"),
        "hashing": _engine("grid.crypto.hashing", "hash_name"),
        "tahoe": _output(os.environ["GRID_TAHOE"], "--version") if os.environ.get("GRID_TAHOE") else None,
    }


def expect_own_tree(ours: Path = Path(grid.__file__), children: Mapping[str, str] | None = None) -> None:
    """Raise ValueError if the measured tree would not be the one whose commit the record names.

    ours: the Grid that this process imports; one outside any tree counts as this tree's. children: the environment of
    started processes; by default that of all nodes.
    """
    ours = ours.resolve()
    tree = ours.parents[2]
    if tree != ROOT and (tree / "setup.cfg").exists():
        raise ValueError(
            f"this would measure {tree}, and the record would name the commit of {ROOT}: install Grid from where it is "
            "to be measured (pip install -e)"
        )
    imported = subprocess.run(
        [sys.executable, "-c", "import grid; print(grid.__file__)"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=child_environment() if children is None else children,
        check=True,
    ).stdout.strip()
    theirs = Path(imported).resolve()
    if theirs != ours:
        raise ValueError(
            f"nodes would run {theirs.parent}, but this is {ours.parent}: they are started without PYTHONPATH, "
            "so install Grid where it is to be measured (pip install -e)"
        )


def measure_floor(encodings: Iterable[Encoding]) -> dict[str, float]:
    """Run perf.sampling.floor as a process; CalledProcessError if it fails."""
    pairs = dict.fromkeys(f"{encoding.needed}-of-{encoding.total}" for encoding in encodings)
    command = [sys.executable, "-m", "perf.sampling.floor", *pairs]
    floor: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=True).stdout)
    return floor


_DESCRIBED = re.compile(
    r"(?P<date>\S+), commit (?P<commit>\S+?)(?P<modified> \(modified\))?\. "
    r"(?P<cpu_count>\w+) cores \((?P<cpu>.*)\), (?P<memory_bytes>\d+) GiB, (?P<filesystem>[^,]*), (?P<system>[^,]*), "
    r"load (?P<load>\d+\.\d) at the start, nice (?P<nice>\S+)\. "
    r"(?P<python>[^,]*), codec (?P<codec>[^,]*), hashing (?P<hashing>[^,]*), peer (?P<tahoe>.*)\.",
    re.DOTALL,
)
"""What `describe` makes."""

_NUMBERS: dict[str, Callable[[str], object]] = {
    "cpu_count": int,
    "memory_bytes": lambda text: int(text) * 2**30,
    "load": float,
    "nice": int,
}


def commit_of(environment: Mapping[str, Any]) -> str:
    """The measured commit, as texts show it."""
    return str(environment.get("commit") or "unknown")[:10]


def day_of(environment: Mapping[str, Any]) -> str:
    """The day of the measurement, as texts show it."""
    return str(environment.get("date"))[:10]


def describe(environment: dict[str, Any]) -> str:
    """One paragraph for a report."""
    commit = (environment.get("commit") or "unknown")[:10] + (" (modified)" if environment.get("modified") else "")
    memory = (environment.get("memory_bytes") or 0) / 2**30
    return (
        f"{environment.get('date')}, commit {commit}. {environment.get('cpu_count')} cores ({environment.get('cpu')}), "
        f"{memory:.0f} GiB, {environment.get('filesystem')}, {environment.get('system')}, load "
        f"{environment.get('load', 0):.1f} at the start, nice {environment.get('nice', 'unknown')}. {environment.get('python')}, codec {environment.get('codec')}, hashing {environment.get('hashing', 'hashlib')}, "
        f"peer {environment.get('tahoe')}."
    )


def parse_described(text: str) -> dict[str, Any]:
    """The environment that `describe` makes this paragraph of; ValueError if it makes none such.

    Memory, load and commit are as precise as the text. What was unknown is missing, except for the load, which is 0.
    """
    found = _DESCRIBED.fullmatch(text)
    if found is None:
        raise ValueError("this does not describe an environment")
    known = {name: value for name, value in found.groupdict().items() if value not in (None, "None", "unknown")}
    environment = {name: _NUMBERS.get(name, str)(value) for name, value in known.items()}
    return environment | {"modified": "modified" in known}


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _engine(module: str, function: str) -> str | None:
    try:
        name = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError):
        return None
    return str(name)


def _output(*command: str) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
