"""OpenSSH: scp over SFTP and over its old protocol, and sftp, with any cipher, against a private server."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from perf.network.contract import Host
from perf.peers.commands import read_peer, run_peer
from perf.peers.contract import Cost, Peer, Properties
from perf.peers.servers import ServerProcess, free_port

FAST_CIPHER = "aes128-gcm@openssh.com"
"""The tuned cipher: the fastest on processors with AES instructions."""

SFTP_TUNED = ("-R", "256", "-B", "261120")
"""Requests in flight, and bytes of each: messages are limited to 256 KiB."""

SHORT_NAMES = ("aes128-gcm", "aes256-gcm")


class Ssh(Peer):
    """A server with every cipher or its default ones, and a client. New host and user keys for each start."""

    programs: tuple[str, ...] = ("sshd", "ssh", "scp", "sftp")

    def __init__(self, label: str, options: Sequence[str] = ()) -> None:
        """options: `tuned`, `cipher=NAME`, `strict` for a server that refuses what OpenSSH refuses by default."""
        super().__init__(label)
        self.options = tuple(options)
        self._server: ServerProcess | None = None

    @property
    def properties(self) -> Properties:
        """Plain files at the far end of an encrypted connection."""
        return Properties(
            expansion=1.0, encrypts="line", proves="nothing beyond the line", syncs="sync" in self.options, survives=0
        )

    @property
    def cipher(self) -> str:
        """The client's only cipher; empty for its own preference."""
        named = [option.partition("=")[2] for option in self.options if option.startswith("cipher=")]
        if not named:
            return FAST_CIPHER if "tuned" in self.options else ""
        (name,) = named
        if name in SHORT_NAMES or name == "chacha20-poly1305":
            return f"{name}@openssh.com"
        return name

    @property
    def server_pids(self) -> Sequence[int]:
        """The listener: sessions are its children, and their usage counts as its own once they have ended."""
        return [self._server.pid] if self._server is not None else []

    def bring_up(self, server: Host) -> None:
        """Create keys and configurations, and start the server."""
        for name in ("host_key", "user_key"):
            self._run_tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.root / name))
        (self.root / "authorized_keys").write_text((self.root / "user_key.pub").read_text())
        port = free_port()
        self._write_server_configuration(server, port)
        self.write_client_configuration(server.address, port, self.root / "host_key.pub")
        Path("/run/sshd").mkdir(exist_ok=True)
        command = [self.program("sshd").path, "-D", "-e", "-f", str(self.root / "sshd_config")]
        self._server = ServerProcess(command, self.environment(), self.root / "server.log", server, [port])

    def take_down(self) -> None:
        """End the server."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def list_folder(self, name: str) -> list[str]:
        """`ls -1` in sftp."""
        lines = self._batch(f"ls -1 {self._remote(name)}")
        return sorted(line.strip().rpartition("/")[2] for line in lines if not line.startswith("sftp>"))

    def delete(self, name: str) -> Cost:
        """`rm` in sftp."""
        return self._sftp(f"rm {self._remote(name)}")

    def delete_folder(self, name: str) -> Cost:
        """`rm` and `rmdir` in sftp."""
        return self._sftp(f"rm {self._remote(name)}/*\nrmdir {self._remote(name)}")

    def _remote(self, name: str) -> str:
        return str(self.root / "remote" / name)

    def _sftp(self, commands: str, *words: str) -> Cost:
        command = [self.program("sftp").path, "-F", str(self.root / "ssh_config"), *words, "-b", "-", "peer"]
        return run_peer(self.client_host.command(command), self.environment(), data=commands.encode() + b"\n")

    def _batch(self, *words: str) -> list[str]:
        *options, commands = words
        command = [self.program("sftp").path, "-F", str(self.root / "ssh_config"), *options, "-b", "-", "peer"]
        return read_peer(
            self.client_host.command(command), self.environment(), data=commands.encode() + b"\n"
        ).splitlines()

    def _run_tool(self, *words: str) -> None:
        subprocess.run(words, check=True, env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def _write_server_configuration(self, server: Host, port: int) -> None:
        every = ",".join(ciphers(self.program("ssh").path))
        lines = [
            f"Port {port}",
            f"ListenAddress {server.address}",
            f"HostKey {self.root / 'host_key'}",
            "PidFile none",
            f"AuthorizedKeysFile {self.root / 'authorized_keys'}",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "Subsystem sftp internal-sftp",
            "MaxStartups 200",
            "MaxSessions 200",
        ]
        if "strict" not in self.options:
            lines.append(f"Ciphers {every}")
        (self.root / "sshd_config").write_text("\n".join(lines) + "\n")

    def write_client_configuration(self, address: str, port: int, host_key: Path, user: str = "") -> None:
        """Write the clients' configuration. host_key: the public half.

        user: at the server; the local user by default.
        """
        kind, key = host_key.read_text().split()[:2]
        (self.root / "known_hosts").write_text(f"peer {kind} {key}\n")
        lines = [
            "Host peer",
            f"  HostName {address}",
            f"  Port {port}",
            "  HostKeyAlias peer",
            f"  IdentityFile {self.root / 'user_key'}",
            "  IdentitiesOnly yes",
            f"  UserKnownHostsFile {self.root / 'known_hosts'}",
            "  GlobalKnownHostsFile none",
            "  StrictHostKeyChecking yes",
            "  UpdateHostKeys no",
            "  BatchMode yes",
        ]
        if user:
            lines.append(f"  User {user}")
        if self.cipher:
            lines.append(f"  Ciphers {self.cipher}")
        (self.root / "ssh_config").write_text("\n".join(lines) + "\n")


class Scp(Ssh):
    """`scp`; with the option `old`, over the protocol from before it used SFTP."""

    def put(self, source: Path, name: str) -> Cost:
        """`scp FILE HOST:`."""
        return self._scp(source, f"peer:{self._remote(name)}")

    def get(self, name: str, target: Path) -> Cost:
        """`scp HOST:FILE .`."""
        return self._scp(f"peer:{self._remote(name)}", target)

    def put_folder(self, source: Path, name: str) -> Cost:
        """`scp -r`."""
        return self._scp("-r", source, f"peer:{self._remote(name)}")

    def get_folder(self, name: str, target: Path) -> Cost:
        """`scp -r`."""
        return self._scp("-r", f"peer:{self._remote(name)}", target)

    def _scp(self, *words: str | Path) -> Cost:
        protocol = ["-O"] if "old" in self.options else []
        command = [self.program("scp").path, "-F", str(self.root / "ssh_config"), *protocol, *map(str, words)]
        return run_peer(self.client_host.command(command), self.environment())


class Sftp(Ssh):
    """`sftp` with a batch of commands; with the option `sync`, it asks the server to sync each file."""

    def put(self, source: Path, name: str) -> Cost:
        """`put`."""
        return self._sftp(f"put {self._sync()}{source} {self._remote(name)}", *self._tuning())

    def get(self, name: str, target: Path) -> Cost:
        """`get`."""
        return self._sftp(f"get {self._remote(name)} {target}", *self._tuning())

    def put_folder(self, source: Path, name: str) -> Cost:
        """`put` of all its files into a new folder."""
        remote = self._remote(name)
        return self._sftp(f"mkdir {remote}\nput {self._sync()}{source}/* {remote}/", *self._tuning())

    def get_folder(self, name: str, target: Path) -> Cost:
        """`get` of all its files."""
        target.mkdir()
        return self._sftp(f"get {self._remote(name)}/* {target}/", *self._tuning())

    def _tuning(self) -> Sequence[str]:
        return SFTP_TUNED if "tuned" in self.options else ()

    def _sync(self) -> str:
        return "-f " if "sync" in self.options else ""


def ciphers(ssh: str) -> list[str]:
    """Every cipher that the program knows."""
    return subprocess.run([ssh, "-Q", "cipher"], capture_output=True, text=True, check=True).stdout.split()
