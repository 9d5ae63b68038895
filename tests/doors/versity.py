"""versitygw with its POSIX backend, for tests that compare it with the S3 door."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perf.network.contract import LOOPBACK
from perf.peers.servers import ServerProcess, free_port
from perf.processes.node_process import child_environment
from tests.doors.grid import program
from tests.doors.s3_suite import Target


@contextmanager
def running_versitygw(folder: Path, *, keeps_versions: bool = False) -> Iterator[Target]:
    """A server with a main and another account, with the same secret, until the context ends."""
    port, secret = free_port(), os.urandom(16).hex()
    target = Target(port, "main-of-a-test", "other-of-a-test", secret)
    for name in ("data", "versions", "accounts"):
        (folder / name).mkdir()
    versions = ["--versioning-dir", str(folder / "versions")] if keeps_versions else []
    words = ["--port", f"127.0.0.1:{port}", "--quiet", "--iam-dir", str(folder / "accounts"), "posix", *versions]
    account = {"ROOT_ACCESS_KEY": target.main, "ROOT_SECRET_KEY": secret}
    command = [program("versitygw"), *words, str(folder / "data")]
    process = ServerProcess(command, {**child_environment(), **account}, folder / "log", LOOPBACK, [port])
    try:
        asking = ["admin", "-a", target.main, "-s", secret, "-er", f"http://127.0.0.1:{port}"]
        making = ["create-user", "-a", target.other, "-s", secret, "-r", "userplus"]
        subprocess.run([program("versitygw"), *asking, *making], check=True, stdout=subprocess.DEVNULL)
        yield target
    finally:
        process.stop()
