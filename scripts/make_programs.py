"""Install the programs that tests/interop/programs runs on Grid: make_programs.py FOLDER.

magic-folder and duplicity, pinned by scripts/programs/*.txt, each in a virtual environment of its own below FOLDER; and
Debian's curl, wget, aria2, apache2-utils and openssh-client, with apt-get where they are absent and this is root. A step
that fails is tried again. What cannot be installed is named, with the reason, here and in FOLDER/missing.json, by which its
tests are skipped; nothing else fails for it. Nothing is done that is done already.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import venv
from functools import partial
from pathlib import Path

from steps import attempt, install_packages, run

LOCKS = Path(__file__).resolve().parent / "programs"
PYTHON_PROGRAMS = ("magic-folder", "duplicity")
"""Each the name of its lock file, and of its command."""

DEBIAN_PROGRAMS = {"curl": "curl", "wget": "wget", "aria2c": "aria2", "ab": "apache2-utils", "sftp": "openssh-client"}
"""Command -> package."""


def main(arguments: list[str]) -> int:
    """Exit status 0 unless it was called wrongly: what is missing is in FOLDER/missing.json."""
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
    """A virtual environment with what the program's lock file says, and nothing else; RuntimeError, OSError."""
    lock, home = LOCKS / f"{name}.txt", folder / name
    mark, digest = home / "installed", hashlib.sha256(lock.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    # The lock file is complete, and some of what is in it asks for versions that its neighbors do not have.
    run([home / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", lock])
    run([home / "bin" / name, "--version"])
    mark.write_text(digest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
