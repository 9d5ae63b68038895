"""Brings outstanding.txt up to date: `python -m tests.tidy [--accept]`."""

from __future__ import annotations

import sys
from collections import Counter

from tests.tidy.allowed import ALLOWED
from tests.tidy.outstanding import read, write
from tests.tidy.rules import SHRINKING


def main() -> None:
    """Take out what is right by now. --accept: put in what is found as well."""
    found = Counter(finding for rule in SHRINKING for finding in rule() if finding not in ALLOWED)
    write(found if "--accept" in sys.argv[1:] else found & read())


main()
