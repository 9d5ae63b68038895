#!/bin/sh
# Make a virtual environment in the folder given, unless there is a working one, with the first Python that will do.
# PYTHON=/path/to/python3 chooses another.
set -eu

target=$1

if [ -x "$target/bin/python" ] && "$target/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

found=
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        found=$candidate
        break
    fi
done
if [ -z "$found" ]; then
    echo "Grid needs Python 3.11 or newer, and none of these is: ${PYTHON:-python3 python3.13 python3.12 python3.11}." >&2
    echo "On Debian 12 or newer: apt-get install python3 python3-venv. Or name one: make PYTHON=/path/to/python3 ..." >&2
    exit 1
fi

if ! "$found" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    echo "$found cannot make virtual environments: its modules venv and ensurepip are missing." >&2
    echo "On Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
fi

rm -rf "$target"
mkdir -p "$(dirname "$target")"
"$found" -m venv "$target"
