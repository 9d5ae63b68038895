"""Install the programs that tests/interop/programs runs against Grid: make_programs.py FOLDER.

magic-folder and duplicity, pinned by scripts/programs/*.txt, each in its own virtual environment below FOLDER; and
Debian's curl, wget, aria2, apache2-utils and openssh-client, with apt-get if missing and run as root. Failed steps are
retried. Whatever cannot be installed is listed with the reason, here and in FOLDER/missing.json, which makes its tests
skip; everything else continues. Installed programs are skipped.
uv installs the Python programs where it works, and otherwise pip (install.sh).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from functools import partial
from pathlib import Path

from steps import attempt, install_packages, make_environment, run

LOCKS = Path(__file__).resolve().parent / "programs"
PYTHON_PROGRAMS = ("magic-folder", "duplicity")
"""The names of lock files and commands."""

DEBIAN_PROGRAMS = {"curl": "curl", "wget": "wget", "aria2c": "aria2", "ab": "apache2-utils", "sftp": "openssh-client"}
"""Command to Debian package."""


def main(arguments: list[str]) -> int:
    """Exit code 0 unless the arguments are wrong: FOLDER/missing.json lists what is missing."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    missing = {name: why for name in PYTHON_PROGRAMS if (why := attempt(name, partial(install, folder, name)))}
    wanted = {name: package for name, package in DEBIAN_PROGRAMS.items() if shutil.which(name) is None}
    if wanted:
        why = attempt(", ".join(wanted), partial(install_packages, sorted(set(wanted.values()))))
        missing |= {name: why or "its package has no such command" for name in wanted if shutil.which(name) is None}
    (folder / "missing.json").write_text(json.dumps(missing, indent=1) + "\n")
    for name, why in missing.items():
        print(f"{name} cannot be installed, its tests will be skipped: {why}", file=sys.stderr)
    return 0


def install(folder: Path, name: str) -> None:
    """Install exactly the lock file's packages in a new virtual environment; RuntimeError, OSError."""
    lock, home = LOCKS / f"{name}.txt", folder / name
    mark, digest = home / "installed", hashlib.sha256(lock.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return
    # The lock file is complete, and some of its packages demand versions that others do not have.
    make_environment(home, "--no-deps", "--requirement", lock)
    run([home / "bin" / name, "--version"])
    mark.write_text(digest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
