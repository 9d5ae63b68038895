"""What `ssh` would use for a host: names and jump hosts of ~/.ssh/config, and keys that only an agent has."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from grid.transfer.ends import EndError, Entry, PassingError
from grid.transfer.sftp_end import open_sftp_end
from tests.transfer.end_contract import listed


@pytest.fixture
def home(sftp: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory whose .ssh knows the server, and nothing else."""
    made = tmp_path / "home"
    (made / ".ssh").mkdir(parents=True, mode=0o700)
    shutil.copy(sftp[1] / ".ssh" / "known_hosts", made / ".ssh" / "known_hosts")
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_bytes(b"x")
    return made


def names_at(url: str) -> set[str]:
    """What a listing of an SFTP server has."""

    async def case() -> dict[str, Entry]:
        end = open_sftp_end(url)
        try:
            return await listed(end)
        finally:
            await end.close()

    return set(asyncio.run(case()))


@pytest.mark.parametrize("jump", ["", "ProxyJump gate", "ProxyJump lost"])
def test_host_of_the_configuration_is_reached_as_it_says(
    sftp: tuple[str, Path], home: Path, tmp_path: Path, jump: str
) -> None:
    port = urlsplit(sftp[0]).port
    (home / ".ssh" / "config").write_text(
        f"Host instrument\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {sftp[1]}/.ssh/id_ed25519\n  {jump}\n"
        f"Host gate\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {sftp[1]}/.ssh/id_ed25519\n"
        "Host lost\n  HostName 127.0.0.1\n  Port 1\n"
    )
    if "lost" in jump:
        with pytest.raises(PassingError, match="instrument"):
            names_at(f"sftp://instrument{tmp_path}/there")
    else:
        assert names_at(f"sftp://instrument{tmp_path}/there") == {"file"}


@pytest.fixture
def agent(sftp: tuple[str, Path], tmp_path: Path) -> Iterator[str]:
    """The socket of an agent that has the key."""
    if shutil.which("ssh-agent") is None or shutil.which("ssh-add") is None:
        pytest.fail("OpenSSH's client belongs to its server, and brings an agent")
    socket = str(tmp_path / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        subprocess.run(
            ["ssh-add", "-q", str(sftp[1] / ".ssh" / "id_ed25519")], env={"SSH_AUTH_SOCK": socket}, check=True
        )
        yield socket
    finally:
        process.terminate()
        process.communicate()


def test_key_of_an_agent_is_used_and_without_it_the_error_says_so(
    sftp: tuple[str, Path], home: Path, agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{sftp[0]}{tmp_path}/there"
    with pytest.raises(EndError, match="none of your keys"):
        names_at(url)
    monkeypatch.setenv("SSH_AUTH_SOCK", agent)
    assert names_at(url) == {"file"}
