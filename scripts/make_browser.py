"""See to it that a browser can be tested with: make_browser.py FOLDER.

Debian's chromium, installed with apt-get where it is absent and this is root; and axe-core, which finds faults of
accessibility, fetched with npm into FOLDER. Nothing is done that is done already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

AXE = "axe-core@4.10.3"


def main(arguments: list[str]) -> int:
    """Exit status 0 if both are there in the end."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0]).absolute()
    wanted = {"chromium": "chromium", "npm": "npm"}
    if (folder / "node_modules" / "axe-core" / "axe.min.js").exists():
        del wanted["npm"]
    missing = [package for program, package in wanted.items() if shutil.which(program) is None]
    if missing and not install(missing):
        print(f"not here, and it takes root to install: {' '.join(missing)}", file=sys.stderr)
        return 1
    if "npm" in wanted:
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            "npm",
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
            str(folder),
            AXE,
        ]
        subprocess.run(command, check=True)
    return 0


def install(packages: list[str]) -> bool:
    """Whether Debian's packages could be installed."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-q"], check=True, env=environment)
    command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]
    subprocess.run(command, check=True, env=environment)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
