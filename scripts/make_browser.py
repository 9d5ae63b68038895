"""Install Debian's chromium, in which the pages are tested, with apt-get: make_browser.py.

A step that fails is tried again. Nothing is done if chromium is there already.
"""

from __future__ import annotations

import shutil
import sys
from functools import partial

from steps import attempt, install_packages


def main(arguments: list[str]) -> int:
    """Exit status 0 if chromium is there in the end."""
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    if shutil.which("chromium") is None:
        why = attempt("chromium", partial(install_packages, ["chromium"]))
        if why:
            print(f"chromium cannot be installed: {why}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
