"""Real servers for the ends of a transfer: versitygw for S3, OpenSSH's sshd for SFTP."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from perf.network.contract import LOOPBACK, Placement
from perf.peers.object_servers import Versity
from perf.peers.programs import MissingPeerError
from perf.peers.servers import ServerProcess, free_port
from tests.cli.conftest import local_grid  # noqa: F401 - the fixture

BUCKET = "bucket"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals of each test by themselves."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a client of a running S3 server that has one bucket."""
    require("obstore")
    root = tmp_path_factory.mktemp("s3")
    (root / "remote" / BUCKET).mkdir(parents=True)
    server = Versity()
    try:
        server.start(root, Placement(), dict(os.environ))
    except MissingPeerError as error:
        pytest.skip(str(error))
    yield {
        "AWS_ACCESS_KEY_ID": server.access_key,
        "AWS_SECRET_ACCESS_KEY": server.secret_key,
        "AWS_ENDPOINT_URL": server.url,
    }
    server.stop()


@pytest.fixture(scope="session")
def sftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of a running SFTP server, and the home directory whose .ssh leads to it."""
    require("asyncssh")
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(program).exists():
        pytest.skip("OpenSSH's sshd is not installed")
    home = tmp_path_factory.mktemp("home")
    ssh = home / ".ssh"
    ssh.mkdir(mode=0o700)
    for key in (home / "host_key", ssh / "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    port = free_port()
    (home / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host_key\nPidFile none\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {ssh}/id_ed25519.pub\nPasswordAuthentication no\nSubsystem sftp internal-sftp\n"
    )
    kind, key_text = (home / "host_key.pub").read_text().split()[:2]
    (ssh / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key_text}\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    command = [program, "-D", "-e", "-f", str(home / "sshd_config")]
    server = ServerProcess(command, dict(os.environ), home / "sshd.log", LOOPBACK, [port])
    yield f"sftp://127.0.0.1:{port}", home
    server.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte."""
    path = tmp_path / "small"
    path.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(path)], check=False)
    if made.returncode:
        pytest.skip("file systems cannot be mounted here, so none can be full")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def require(package: str) -> None:
    """Skip the test if a package is not installed, and say which."""
    if find_spec(package) is None:
        pytest.skip(f"the package {package} is not installed: pip install '.[transfer]'")
