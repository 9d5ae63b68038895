"""Steps that need the network: retried a few times, with their failures classified.

The scripts beside this file import it. It decides nothing about what is installed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

INSTALL = Path(__file__).resolve().parent / "install.sh"
ATTEMPTS = 3
PAUSE_S = 10.0
APT_LOCK = Path(tempfile.gettempdir()) / f"grid-apt-{os.geteuid()}.lock"
"""Held while apt-get runs, because a concurrent one would fail at once."""

APT_OPTIONS = ["-q", "-o", "DPkg::Lock::Timeout=300"]
"""Wait for programs that do not know our lock, such as unattended upgrades."""


def attempt(name: str, step: Callable[[], None], pause: Callable[[float], None] = time.sleep) -> str:
    """Run a step, which raises on failure, at most ATTEMPTS times; return the reason of a failure, or "".

    A step that raises PermissionError is not retried.
    """
    why = ""
    for number in range(ATTEMPTS):
        if number:
            print(f"{name}: {why}; trying again in {PAUSE_S:.0f} s", file=sys.stderr)
            pause(PAUSE_S)
        try:
            step()
        except PermissionError as error:
            return str(error)
        except (OSError, RuntimeError) as error:
            why = str(error)
        else:
            return ""
    return why


def install_packages(packages: Sequence[str]) -> None:
    """Install Debian packages; PermissionError if this is not root or has no apt-get, RuntimeError."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise PermissionError(f"it takes root and apt-get to install {' '.join(packages)}")
    with one_at_a_time(APT_LOCK):
        run(["apt-get", "update", *APT_OPTIONS])
        run(["apt-get", "install", *APT_OPTIONS, "-y", "--no-install-recommends", *packages])


def make_environment(folder: Path, *arguments: str | Path) -> None:
    """Create a virtual environment anew and install in it, with arguments of `pip install`; RuntimeError, OSError."""
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder)
    run(["sh", INSTALL, folder / "bin" / "python", *arguments])


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Hold the lock file, creating it if necessary; it is never removed."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(command: Sequence[str | Path]) -> None:
    """Run a command; on failure, RuntimeError with the last line of its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment.pop("PIP_CONSTRAINT", None)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**environment, "DEBIAN_FRONTEND": "noninteractive"}
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {said[-1] if said else 'nothing said'}")
