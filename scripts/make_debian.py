"""Install programs that tests need, from Debian with apt-get: make_debian.py [--optional] PROGRAM[=PACKAGE]...

Failed steps are retried, and installed programs are skipped. With --optional, it succeeds even if nothing can be
installed: the tests that need the programs say so and are skipped.
"""

from __future__ import annotations

import shutil
import sys
from functools import partial

from steps import attempt, install_packages

SYSTEM = ":/usr/sbin:/sbin"
"""Directories of servers, which are not on every user's PATH."""


def main(arguments: list[str]) -> int:
    """Exit code 0 if the programs are installed in the end, or are optional."""
    is_optional = arguments[:1] == ["--optional"]
    wanted = [argument.partition("=") for argument in arguments[is_optional:]]
    if not wanted or any(program.startswith("-") for program, _, _ in wanted):
        print(__doc__, file=sys.stderr)
        return 2
    missing = [package or program for program, _, package in wanted if not is_there(program)]
    if missing:
        names = ", ".join(missing)
        why = attempt(names, partial(install_packages, missing))
        if why:
            print(f"cannot be installed: {names}: {why}", file=sys.stderr)
            return 0 if is_optional else 1
    return 0


def is_there(program: str) -> bool:
    """Whether the program is on the path."""
    return bool(shutil.which(program) or shutil.which(program, path=SYSTEM))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
