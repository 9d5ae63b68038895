"""Command-line clients of an S3 server: rclone, s5cmd and aws."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from perf.network.contract import Host
from perf.peers.commands import read_peer, run_peer
from perf.peers.contract import Cost, Peer, PeerError, Properties, new_secret
from perf.peers.object_servers import OBJECT_SERVERS

BUCKET = "bench"
REGION = "us-east-1"

# fmt: off
RCLONE_TUNED = (
    "--s3-chunk-size", "128000", "--buffer-size", "128000", "--s3-upload-cutoff", "0", "--s3-upload-concurrency", "32",
    "--multi-thread-streams", "32", "--multi-thread-cutoff", "0", "--s3-disable-http2", "--no-check-dest", "--transfers",
    "32", "--fast-list",
)
# fmt: on
"""Exactly the options of the published comparison of transfer agents. A bare number is in KiB: chunks are 125 MiB."""

AWS_TUNED = """  max_concurrent_requests = 32
  max_queue_size = 10000
  multipart_threshold = 20MB
  multipart_chunksize = 20MB
"""

TUNED_WORKERS = 32
"""Files of a folder that a tuned s5cmd moves at once."""

S5CMD_TUNED = ("--concurrency", "32", "--part-size", "20")


class S3Peer(Peer):
    """A client of an S3 server, which starts and ends with it."""

    client = ""

    def __init__(self, label: str, server: str, options: Sequence[str] = ()) -> None:
        super().__init__(label)
        self.server = OBJECT_SERVERS[server]()
        self.options = tuple(options)
        self.programs = (self.client, *filter(None, [self.server.program]))

    @property
    def properties(self) -> Properties:
        """The server's properties: these clients send files unchanged."""
        return self.server.properties

    @property
    def server_pids(self) -> Sequence[int]:
        """The S3 server, or the storage nodes behind it."""
        return self.server.pids

    @property
    def client_pids(self) -> Sequence[int]:
        """What serves S3 on the client's machine."""
        return self.server.gateway_pids

    @property
    def other_pids(self) -> Sequence[int]:
        """What is neither."""
        return self.server.other_pids

    @property
    def tuned(self) -> bool:
        """Whether it runs with options for speed."""
        return "tuned" in self.options

    def bring_up(self, server: Host) -> None:
        """Start the server, and create the account and a bucket."""
        self.server.start(self.root, self.placement, super().environment())
        self.write_secret(
            "credentials",
            f"[default]\naws_access_key_id = {self.server.access_key}\naws_secret_access_key = {self.server.secret_key}\n",
        )
        self.make_bucket()

    def take_down(self) -> None:
        """End the server."""
        self.server.stop()

    @abstractmethod
    def make_bucket(self) -> None:
        """Create the bucket for everything."""

    def stored_bytes(self) -> int:
        """Bytes of the server's files."""
        found = (path for folder in self.store_folders for path in folder.rglob("*"))
        return sum(path.stat().st_blocks * 512 for path in found if path.is_file())

    @property
    def store_folders(self) -> Sequence[Path]:
        """The server's."""
        return self.server.folders(self.root)

    def environment(self) -> dict[str, str]:
        """Uses the account's file instead of the account itself."""
        return {
            **super().environment(),
            "AWS_SHARED_CREDENTIALS_FILE": str(self.root / "credentials"),
            "AWS_CONFIG_FILE": str(self.root / "aws.cfg"),
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def run(self, *words: str | Path) -> Cost:
        """Run the client's program with these arguments on the client's host."""
        return run_peer(self.command(*words), self.environment())

    def read(self, *words: str | Path) -> str:
        """The output of the client's program."""
        return read_peer(self.command(*words), self.environment())

    def command(self, *words: str | Path) -> list[str]:
        """The client's command with its fixed arguments."""
        return self.client_host.command([self.program(self.client).path, *map(str, words)])


class Rclone(S3Peer):
    """rclone with its defaults, tuned, or with its own encryption in front of the server."""

    client = "rclone"
    words: Sequence[str] = ()
    """Options in addition to those of the label."""

    @property
    def properties(self) -> Properties:
        """With crypt, the client encrypts each chunk of 64 KiB."""
        if "crypt" not in self.options:
            return super().properties
        sealed = "each chunk of 64 KiB is authenticated; an old or another file in its place is not noticed"
        return evolve(super().properties, encrypts="server", proves=sealed)

    def make_bucket(self) -> None:
        """Write a configuration, and create the bucket that it names."""
        provider = "Minio" if self.server.program == "minio" else "Other"
        lines = [
            "[server]",
            "type = s3",
            f"provider = {provider}",
            f"endpoint = {self.server.url}",
            f"access_key_id = {self.server.access_key}",
            f"secret_access_key = {self.server.secret_key}",
            f"region = {REGION}",
        ]
        if "crypt" in self.options:
            password = read_peer(self.command("obscure", "-"), self.environment(), data=new_secret().encode())
            lines += ["[sealed]", "type = crypt", f"remote = server:{BUCKET}", f"password = {password.strip()}"]
        self.write_secret("rclone.conf", "\n".join(lines) + "\n")
        self.run("mkdir", f"server:{BUCKET}")

    def environment(self) -> dict[str, str]:
        """Adds the path of its configuration."""
        return {**super().environment(), "RCLONE_CONFIG": str(self.root / "rclone.conf")}

    def put(self, source: Path, name: str) -> Cost:
        """`rclone copyto`."""
        return self.run("copyto", *self._tuning(), source, self._remote(name))

    def get(self, name: str, target: Path) -> Cost:
        """`rclone copyto`; check the result, since it also succeeds if there is nothing to copy."""
        cost = self.run("copyto", *self._tuning(), self._remote(name), target)
        if not target.exists():
            raise PeerError(f"rclone ended well and brought no {name}")
        return cost

    def put_folder(self, source: Path, name: str) -> Cost:
        """`rclone copy`."""
        return self.run("copy", *self._tuning(), source, self._remote(name))

    def get_folder(self, name: str, target: Path) -> Cost:
        """`rclone copy`."""
        return self.run("copy", *self._tuning(), self._remote(name), target)

    def list_folder(self, name: str) -> list[str]:
        """`rclone lsf`."""
        return sorted(self.read("lsf", self._remote(name)).splitlines())

    def delete(self, name: str) -> Cost:
        """`rclone deletefile`."""
        return self.run("deletefile", self._remote(name))

    def delete_folder(self, name: str) -> Cost:
        """`rclone purge`."""
        return self.run("purge", self._remote(name))

    def _tuning(self) -> Sequence[str]:
        return (*RCLONE_TUNED, *self.words) if self.tuned else self.words

    def _remote(self, name: str) -> str:
        return f"sealed:{name}" if "crypt" in self.options else f"server:{BUCKET}/{name}"


class S5cmd(S3Peer):
    """s5cmd."""

    client = "s5cmd"

    def make_bucket(self) -> None:
        """`s5cmd mb`."""
        self.run("mb", f"s3://{BUCKET}")

    def command(self, *words: str | Path) -> list[str]:
        """The server's address goes before the command's name."""
        workers = ("--numworkers", str(TUNED_WORKERS)) if self.tuned else ()
        before = ("--endpoint-url", self.server.url, "--credentials-file", self.root / "credentials", *workers)
        return super().command(*before, *words)

    def put(self, source: Path, name: str) -> Cost:
        """`s5cmd cp`."""
        return self.run("cp", *self._tuning(), source, _object(name))

    def get(self, name: str, target: Path) -> Cost:
        """`s5cmd cp`."""
        return self.run("cp", *self._tuning(), _object(name), target)

    def put_folder(self, source: Path, name: str) -> Cost:
        """`s5cmd cp FOLDER/ s3://...`."""
        return self.run("cp", *self._tuning(), f"{source}/", _object(f"{name}/"))

    def get_folder(self, name: str, target: Path) -> Cost:
        """`s5cmd cp s3://.../* FOLDER/`."""
        return self.run("cp", *self._tuning(), _object(f"{name}/*"), f"{target}/")

    def list_folder(self, name: str) -> list[str]:
        """`s5cmd ls`: the name is the last column."""
        return sorted(line.split(maxsplit=3)[3] for line in self.read("ls", _object(f"{name}/*")).splitlines())

    def count_keys(self, prefix: str) -> tuple[int, Cost]:
        """Count the lines of `s5cmd ls`, which lists the keys page by page."""
        started = time.perf_counter()
        count = len(self.read("ls", _object(f"{prefix}*")).splitlines())
        return count, Cost(seconds=time.perf_counter() - started)

    def delete(self, name: str) -> Cost:
        """`s5cmd rm`."""
        return self.run("rm", _object(name))

    def delete_folder(self, name: str) -> Cost:
        """`s5cmd rm s3://.../*`."""
        return self.run("rm", _object(f"{name}/*"))

    def _tuning(self) -> Sequence[str]:
        return S5CMD_TUNED if self.tuned else ()


class AwsCommand(S3Peer):
    """`aws s3`, version 1 of the aws command line."""

    client = "awscli"

    def make_bucket(self) -> None:
        """Write a configuration, then `aws s3 mb`."""
        (self.root / "aws.cfg").write_text(
            f"[default]\nregion = {REGION}\ns3 =\n  addressing_style = path\n{AWS_TUNED if self.tuned else ''}"
        )
        self.run("s3", "mb", f"s3://{BUCKET}")

    def command(self, *words: str | Path) -> list[str]:
        """Adds the server's address."""
        return super().command("--endpoint-url", self.server.url, *words)

    def put(self, source: Path, name: str) -> Cost:
        """`aws s3 cp`."""
        return self.run("s3", "cp", "--only-show-errors", source, _object(name))

    def get(self, name: str, target: Path) -> Cost:
        """`aws s3 cp`."""
        return self.run("s3", "cp", "--only-show-errors", _object(name), target)

    def put_folder(self, source: Path, name: str) -> Cost:
        """`aws s3 cp --recursive`."""
        return self.run("s3", "cp", "--only-show-errors", "--recursive", source, _object(name))

    def get_folder(self, name: str, target: Path) -> Cost:
        """`aws s3 cp --recursive`."""
        return self.run("s3", "cp", "--only-show-errors", "--recursive", _object(name), target)

    def list_folder(self, name: str) -> list[str]:
        """`aws s3 ls`: the name is the last column."""
        return sorted(line.split(maxsplit=3)[3] for line in self.read("s3", "ls", _object(f"{name}/")).splitlines())

    def delete(self, name: str) -> Cost:
        """`aws s3 rm`."""
        return self.run("s3", "rm", "--only-show-errors", _object(name))

    def delete_folder(self, name: str) -> Cost:
        """`aws s3 rm --recursive`."""
        return self.run("s3", "rm", "--only-show-errors", "--recursive", _object(f"{name}/"))


def _object(name: str) -> str:
    return f"s3://{BUCKET}/{name}"
