"""Demonstrates the grid: starts ten storage nodes, puts a file, kills seven nodes, and gets the file back unchanged.

Exits with 0 only if every step worked. Its processes and files are removed in any event.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NODES = 10
KILLED = 7
BIG_SIZE = 128 * 10**6
SMALL_SIZE = 1000
CHUNK = 4 * 2**20

SPEED_SIZE = 10**6
"""Smaller files mostly measure the start of the command, not the speed."""


class DemoError(Exception):
    """A step did not work."""


def main() -> int:
    """Run the demonstration; 0 on success."""
    signal.signal(signal.SIGTERM, _interrupt)
    place = Path(tempfile.mkdtemp(prefix="grid-demo-"))
    status = 1
    try:
        _demonstrate(place)
        status = 0
    except DemoError as problem:
        print(f"\nThe demonstration FAILED: {problem}", file=sys.stderr)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        status = 130
    finally:
        if not _clean_up(place):
            status = status or 1
    if status == 0:
        print("\nAll is well: both files came back from three of ten servers.")
    return status


def _demonstrate(place: Path) -> None:
    grid = place / "grid"
    _say(f"Starting an introducer and {NODES} storage nodes, each a process of its own")
    began_at = time.monotonic()
    print(_grid("up", "--nodes", str(NODES), "--dir", str(grid), "--detach"))
    print(f"ready after {time.monotonic() - began_at:.1f} s")
    client = grid / "client"

    _say(f"Making a file of {BIG_SIZE / 1e6:.0f} MB and one of {SMALL_SIZE} bytes")
    files = {place / "big": BIG_SIZE, place / "small": SMALL_SIZE}
    digests = {file: _make_file(file, size) for file, size in files.items()}

    _say("Putting them: encrypted, and cut into ten shares each, of which any three suffice")
    caps = {}
    for file, size in files.items():
        began_at = time.monotonic()
        caps[file] = _grid("-d", str(client), "put", str(file)).strip()
        _report(f"put {file.name}", size, time.monotonic() - began_at)
        print(f"  {caps[file]}")

    _say(f"Killing {KILLED} of the {NODES} storage nodes (SIGKILL)")
    for index in range(KILLED):
        pid = int((grid / f"storage{index}" / "running.process").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        print(f"  storage{index}, process {pid}")

    _say("Getting both files back from what is left")
    for file, size in files.items():
        copy = place / f"{file.name}.copy"
        began_at = time.monotonic()
        _grid("-d", str(client), "get", "-", str(copy), text=caps[file])
        _report(f"get {file.name}", size, time.monotonic() - began_at)
        digest = _digest(copy)
        print(f"  SHA-256 put {digests[file]}\n  SHA-256 got {digest}")
        if digest != digests[file]:
            raise DemoError(f"{file.name} came back different")


def _grid(*arguments: str, text: str = "") -> str:
    """The stdout of one `grid` command; DemoError if it fails."""
    command = [sys.executable, "-m", "grid.cli", *arguments]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"`grid {' '.join(arguments)}` ended with status {done.returncode}")
    return done.stdout


def _make_file(path: Path, size: int) -> str:
    """Fill the file with random bytes, and return their SHA-256."""
    hasher = hashlib.sha256()
    with path.open("wb") as file:
        for offset in range(0, size, CHUNK):
            chunk = os.urandom(min(CHUNK, size - offset))
            hasher.update(chunk)
            file.write(chunk)
    return hasher.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _report(step: str, size: int, elapsed_s: float) -> None:
    speed = f", {size / 1e6 / elapsed_s:.1f} MB/s" if size >= SPEED_SIZE else ""
    print(f"{step}: {size} bytes in {elapsed_s:.2f} s{speed}")


def _say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def _clean_up(place: Path) -> bool:
    """Stop every node and remove every file; return whether that succeeded."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    clean = True
    try:
        if (place / "grid" / "introducer").exists():
            _say("Stopping what still runs, and removing the files")
            print(_grid("down", "--dir", str(place / "grid")).strip())
    except DemoError as problem:
        print(f"cleaning up FAILED: {problem}", file=sys.stderr)
        clean = False
    shutil.rmtree(place, ignore_errors=True)
    return clean and not place.exists()


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
