"""1.20's SFTP server on Grid's storage servers, with OpenSSH's client: Grid reads what it stores, and vice versa."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from attrs import frozen

from perf.processes.clients import COMMAND_S, GridClient, TahoeClient
from perf.processes.node_process import child_environment, free_ports, wait_until
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.interop.programs.conftest import program

pytestmark = pytest.mark.interop

CONTENTS = random.Random(3).randbytes(5_000_000)


@frozen
class Sftp:
    """A running 1.20 client with an SFTP server, whose root directory is `root` to a client of Grid."""

    port: int
    key: Path
    root: str
    ours: GridClient

    def run(self, folder: Path, *commands: str) -> str:
        """Give the client these commands; returns its output and the server's. 1.20 may never close the session that `bye` ends."""
        options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes", "BatchMode=yes"]
        arguments = [word for option in options for word in ("-o", option)]
        log = folder / "sftp.log"
        with log.open("wb") as out:
            client = subprocess.Popen(
                [program("sftp"), *arguments, "-i", str(self.key), "-P", str(self.port), "alice@127.0.0.1"],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=child_environment(),
            )
            try:
                assert client.stdin is not None
                client.stdin.write("".join(f"{command}\n" for command in (*commands, "!touch done")).encode())
                client.stdin.flush()
                wait_until(lambda: (folder / "done").exists() or client.poll() is not None, "sftp to end", COMMAND_S)
            finally:
                client.kill()
                client.communicate()
        (folder / "done").unlink(missing_ok=True)
        return log.read_text(errors="replace")


@pytest.fixture(scope="module")
def sftp(grid: ProcessGrid, tmp_path_factory: pytest.TempPathFactory) -> Sftp:
    """Its accounts file has one key and one directory."""
    program("sftp")
    folder = tmp_path_factory.mktemp("keys")
    for name in ("host", "alice"):
        command = [
            "ssh-keygen",
            "-q",
            "-t",
            "rsa",
            "-b",
            "2048",
            "-m",
            "PEM",
            "-N",
            "",
            "-C",
            name,
            "-f",
            str(folder / name),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=COMMAND_S)
    ours = grid.add_client(ClientSettings(kind="grid", needed=2, happy=2, total=3))
    client = grid.add_client(ClientSettings(kind="tahoe", needed=2, happy=2, total=3))
    assert isinstance(ours, GridClient) and isinstance(client, TahoeClient)
    root = ours.run("mkdir").decode().strip()
    (port,) = free_ports(1)
    public = " ".join((folder / "alice.pub").read_text().split()[:2])
    (folder / "accounts").write_text(f"alice {public} {root}\n")
    with (client.directory / "tahoe.cfg").open("a") as file:
        file.write(
            f"[sftpd]\nenabled = true\nport = tcp:{port}:interface=127.0.0.1\naccounts.file = {folder}/accounts\n"
            f"host_pubkey_file = {folder}/host.pub\nhost_privkey_file = {folder}/host\n"
        )
    client.node.stop()
    client.node.start()
    grid.wait_connected(client)
    return Sftp(port, folder / "alice", root, ours)


def test_sftp_when_files_are_uploaded_moved_and_downloaded_keeps_them_the_same_for_grid(
    sftp: Sftp, tmp_path: Path
) -> None:
    (tmp_path / "up").write_bytes(CONTENTS)
    said = sftp.run(tmp_path, "mkdir d", "put up d/first", "rename d/first d/second", "get d/second back", "ls -l d")
    assert (tmp_path / "back").read_bytes() == CONTENTS, said
    assert "second" in said and "first" not in said.partition("ls -l d")[2]
    sftp.ours.run("get", f"{sftp.root}/d/second", str(tmp_path / "ours"))
    assert (tmp_path / "ours").read_bytes() == CONTENTS


def test_sftp_when_grid_stored_the_files_reads_and_removes_them(sftp: Sftp, tmp_path: Path) -> None:
    (tmp_path / "up").write_bytes(CONTENTS[:100_000])
    sftp.ours.run("put", str(tmp_path / "up"), f"{sftp.root}/of-grid")
    said = sftp.run(tmp_path, "get of-grid back", "rm of-grid")
    assert (tmp_path / "back").read_bytes() == CONTENTS[:100_000], said
    assert b"of-grid" not in sftp.ours.run("ls", sftp.root)
