"""Install Tahoe-LAFS 1.20 from PyPI in its own virtual environment: make_tahoe_peer.py FOLDER.

It serves interoperability tests and benchmarks, and is only run as a program: Grid imports nothing of it. Failed steps
are retried. Does nothing if FOLDER already has a working one.
uv installs it where it works, and otherwise pip (install.sh).
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from steps import attempt, make_environment

VERSION = "1.20.0"

EXPECTED = f"tahoe-lafs/{VERSION}"


def main(arguments: list[str]) -> int:
    """Exit code 0 if FOLDER/bin/tahoe runs in the end."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0]).absolute()
    if works(folder):
        return 0
    why = attempt(f"Tahoe-LAFS {VERSION}", partial(install, folder))
    if why:
        print(f"Tahoe-LAFS {VERSION} cannot be installed: {why}", file=sys.stderr)
        return 1
    return 0


def install(folder: Path) -> None:
    """Create the environment anew; OSError or RuntimeError on failure, or if its tahoe does not run."""
    # Some dependencies still import pkg_resources, which setuptools 81 removed.
    make_environment(folder, f"tahoe-lafs=={VERSION}", "setuptools<81")
    if not works(folder):
        raise RuntimeError(f"{folder}/bin/tahoe does not run as Tahoe-LAFS {VERSION}")


def works(folder: Path) -> bool:
    """Whether the folder's tahoe reports the expected version."""
    tahoe = folder / "bin" / "tahoe"
    if not tahoe.exists():
        return False
    answer = subprocess.run([tahoe, "--version"], capture_output=True, text=True, check=False, env=_plain_environment())
    return answer.returncode == 0 and EXPECTED in answer.stdout


def _plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
