"""restic with a repository in a folder, or in a bucket of an S3 server. Each name is the tag of one snapshot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from perf.network.contract import Host
from perf.peers.commands import read_peer, run_peer
from perf.peers.contract import Cost, Peer, PeerError, Properties, new_secret
from perf.peers.object_servers import OBJECT_SERVERS

TUNED = ("--pack-size", "64", "--compression", "off")
CONNECTIONS = "32"


class Restic(Peer):
    """A backup for each put: content-defined chunks, compressed, encrypted and packed."""

    def __init__(self, label: str, server: str = "", options: Sequence[str] = ()) -> None:
        """server: of perf.peers.object_servers; empty for a folder."""
        super().__init__(label)
        self.server = OBJECT_SERVERS[server]() if server else None
        self.options = tuple(options)
        self.programs = ("restic", self.server.program) if self.server is not None else ("restic",)

    @property
    def properties(self) -> Properties:
        """The client encrypts everything; a folder is synced, and a server syncs as it does by itself."""
        own = Properties(
            expansion=1.0,
            encrypts="server",
            proves="every byte, from the repository's key; not that it is the newest snapshot",
            syncs=True,
            survives=0,
            notes="stores equal chunks once, and compresses unless tuned",
        )
        if self.server is None:
            return own
        below = self.server.properties
        return evolve(own, expansion=below.expansion, syncs=below.syncs, survives=below.survives)

    @property
    def server_pids(self) -> Sequence[int]:
        """The S3 server, if there is one."""
        return self.server.pids if self.server is not None else []

    @property
    def store_folders(self) -> Sequence[Path]:
        """The repository, or what its server keeps."""
        return super().store_folders if self.server is None else self.server.folders(self.root)

    def bring_up(self, server: Host) -> None:
        """Create a password, the server, and an empty repository."""
        self.write_secret("password", new_secret())
        if self.server is not None:
            self.server.start(self.root, self.placement, super().environment())
            self.write_secret(
                "credentials",
                f"[default]\naws_access_key_id = {self.server.access_key}\naws_secret_access_key = {self.server.secret_key}\n",
            )
        self._run("init")

    def take_down(self) -> None:
        """End the server."""
        if self.server is not None:
            self.server.stop()

    def environment(self) -> dict[str, str]:
        """Adds the files of the password and the account."""
        remote = str(self.root / "remote")
        return {
            **super().environment(),
            "RESTIC_REPOSITORY": f"s3:{self.server.url}/bench" if self.server is not None else remote,
            "RESTIC_PASSWORD_FILE": str(self.root / "password"),
            "RESTIC_CACHE_DIR": str(self.root / "home" / "cache"),
            "AWS_SHARED_CREDENTIALS_FILE": str(self.root / "credentials"),
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def put(self, source: Path, name: str) -> Cost:
        """`restic backup FILE`."""
        return self._run("backup", "--tag", name, source.name, directory=source.parent)

    def get(self, name: str, target: Path) -> Cost:
        """`restic dump`."""
        (path,) = self._files(name)
        return self._run("dump", "--tag", name, "latest", path, output=target)

    def get_one_of(self, folder: str, entry: str, target: Path) -> Cost:
        """`restic dump`."""
        path = next((path for path in self._files(folder) if path.endswith(f"/{entry}")), "")
        return self._run("dump", "--tag", folder, "latest", path, output=target)

    def put_folder(self, source: Path, name: str) -> Cost:
        """`restic backup .`."""
        return self._run("backup", "--tag", name, ".", directory=source)

    def get_folder(self, name: str, target: Path) -> Cost:
        """`restic restore`."""
        return self._run("restore", f"{self._snapshot(name)}:{self._top(name)}", "--target", str(target))

    def list_folder(self, name: str) -> list[str]:
        """`restic ls`."""
        return sorted(path.rpartition("/")[2] for path in self._files(name))

    def delete(self, name: str) -> Cost:
        """`restic forget --prune`."""
        return self._run("forget", "--prune", self._snapshot(name))

    def delete_folder(self, name: str) -> Cost:
        """`restic forget --prune`."""
        return self.delete(name)

    def _run(self, *words: str, directory: Path | None = None, output: Path | None = None) -> Cost:
        return run_peer(self._command(*words), self.environment(), directory=directory, output=output)

    def _command(self, *words: str) -> list[str]:
        tuning: list[str] = []
        if "tuned" in self.options:
            back_end = "local" if self.server is None else "s3"
            tuning = [*TUNED, "-o", f"{back_end}.connections={CONNECTIONS}"]
        return self.client_host.command([self.program("restic").path, "--quiet", *tuning, *words])

    def _nodes(self, name: str) -> list[dict[str, Any]]:
        said = read_peer(self._command("ls", "--json", "--tag", name, "latest"), self.environment())
        return [node for node in map(json.loads, said.splitlines()) if node.get("struct_type") == "node"]

    def _files(self, name: str) -> list[str]:
        return [str(node["path"]) for node in self._nodes(name) if node["type"] == "file"]

    def _top(self, name: str) -> str:
        """The folder that holds the snapshot's files."""
        return self._files(name)[0].rpartition("/")[0] or "/"

    def _snapshot(self, name: str) -> str:
        found = json.loads(read_peer(self._command("snapshots", "--json", "--tag", name), self.environment()))
        if not found:
            raise PeerError(f"restic has no snapshot {name}")
        return str(found[-1]["id"])
