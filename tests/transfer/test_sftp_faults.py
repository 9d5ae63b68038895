"""Faults of SFTP servers: they run out of space."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from grid.transfer.engine import Transfer
from grid.transfer.journal import Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import Outcome
from grid.transfer.sftp_end import open_sftp_end
from tests.transfer.conftest import require
from tests.transfer.test_engine import FAST, contents


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A key that is the host's and the user's, in a home directory of its own."""
    require("asyncssh")
    import asyncssh

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    ssh = tmp_path / "home" / ".ssh"
    ssh.mkdir(parents=True, mode=0o700)
    made = asyncssh.generate_private_key("ssh-ed25519")
    made.write_private_key(str(ssh / "id_ed25519"))
    made.write_public_key(str(ssh / "id_ed25519.pub"))
    return made


def upload(tmp_path: Path, key: Any) -> Outcome:
    """Send `local` to `remote`, both below the temporary directory, over a server whose disk is full."""
    import asyncssh

    class FullServer(asyncssh.SFTPServer):
        def write(self, file: object, offset: int, data: bytes) -> int:
            raise asyncssh.SFTPFailure("No space left on device")

    async def case() -> Outcome:
        server = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[key],
            authorized_client_keys=str(tmp_path / "home" / ".ssh" / "id_ed25519.pub"),
            sftp_factory=FullServer,
        )
        port = server.get_port()
        kind, text = key.export_public_key().decode().split()[:2]
        (tmp_path / "home" / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {text}\n")
        remote = open_sftp_end(f"sftp://127.0.0.1:{port}{tmp_path}/remote")
        journal = Journal(tmp_path / "state" / "journal.sqlite")
        try:
            return await Transfer([LocalEnd(str(tmp_path / "local"))], remote, journal, FAST).run()
        finally:
            journal.close()
            await remote.close()
            server.close()
            await server.wait_closed()

    return asyncio.run(case())


@pytest.mark.parametrize("size", [100, 3 * 2**20 + 5])
def test_upload_when_the_server_is_full_fails_by_itself_and_leaves_nothing(
    tmp_path: Path, key: object, size: int
) -> None:
    for name in ("local", "remote"):
        (tmp_path / name).mkdir()
    (tmp_path / "local" / "file").write_bytes(os.urandom(size))
    (tmp_path / "remote" / "file").write_bytes(b"older")

    outcome = upload(tmp_path, key)

    ((name, error),) = outcome.failures
    assert name == "file"
    assert "No space left on device" in str(error)
    assert contents(tmp_path / "remote") == {"file": b"older"}
