"""A program that reports how it was started, and ends as requested: python -m tests.support.warm_probe HOW [MORE]."""

from __future__ import annotations

import json
import os
import sys
import time


def main(how: str, *more: str) -> None:
    """Do what the command line says."""
    if how == "tell":
        print(os.environ["PROBE"], "heard on stderr", file=sys.stderr)
        told = [more, os.getcwd(), os.environ["PROBE"], sys.stdin.read(), sys.stdout.encoding, sys.stdout.errors]
        print(json.dumps(told))
    elif how == "exit":
        print("said before the end")
        sys.exit(int(more[0]) if more[0].isdigit() else more[0])
    elif how == "wait":
        print("waiting", flush=True)
        time.sleep(600)
    raise ValueError(how)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValueError as error:
        if str(error) != "tell":
            raise
