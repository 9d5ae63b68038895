"""Real clients of S3 at the door of a real grid: each stores, lists, reads and removes; all read while seven of ten nodes are dead."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from perf.processes.node_process import wait_until
from tests.doors.files import contents, make_files
from tests.doors.grid import BUCKET, DOMAIN, OpenDoor, open_door, program
from tests.doors.sftp_grid import require_mounts, required

pytestmark = [pytest.mark.doors, pytest.mark.timeout(600)]

COMMAND_S = 300.0


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    with open_door(tmp_path_factory.mktemp("door")) as opened:
        yield opened


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_files(tmp_path_factory.mktemp("data") / "files")


def run(door: OpenDoor, folder: Path, *words: str | Path, data: bytes = b"", more: dict[str, str] | None = None) -> str:
    """What a client prints; fails with its last words."""
    done = subprocess.run(
        [str(word) for word in words], input=data, capture_output=True, check=False, timeout=COMMAND_S,
        env={**door.environment(folder), **(more or {})},
    )  # fmt: skip
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{words}\n{said[-2000:]}\n{done.stderr.decode(errors='replace')[-4000:]}"
    return said


def rclone_settings(door: OpenDoor) -> dict[str, str]:
    """The door as rclone's remote `grid:`."""
    return {
        "RCLONE_CONFIG": "",
        "RCLONE_CONFIG_GRID_TYPE": "s3",
        "RCLONE_CONFIG_GRID_PROVIDER": "Other",
        "RCLONE_CONFIG_GRID_ENDPOINT": door.url,
        "RCLONE_CONFIG_GRID_ENV_AUTH": "true",
        "RCLONE_CONFIG_GRID_REGION": "us-east-1",
        "RCLONE_S3_CHUNK_SIZE": "5Mi",
        "RCLONE_S3_UPLOAD_CUTOFF": "5Mi",
    }


def rclone(door: OpenDoor, folder: Path, *words: str | Path) -> str:
    return run(door, folder, program("rclone"), *words, more=rclone_settings(door))


@contextmanager
def mounted(door: OpenDoor, folder: Path, remote: str) -> Iterator[Path]:
    """A directory of the bucket, mounted with rclone; skipped where file systems cannot be mounted."""
    mount = folder / "mnt"
    mount.mkdir(exist_ok=True)
    require_mounts()
    unmount = [required("fusermount3"), "-u", str(mount)]
    words = [program("rclone"), "mount", remote, str(mount), "--vfs-cache-mode", "writes", "--vfs-write-back", "0s"]
    environment = {**door.environment(folder), **rclone_settings(door)}
    with (
        (folder / "mount.log").open("ab") as log,
        subprocess.Popen(words, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            wait_until(lambda: mount.is_mount() or process.poll() is not None, "the mount", 60.0)
            assert process.poll() is None, (folder / "mount.log").read_text()[-2000:]
            yield mount
        finally:
            subprocess.run(unmount, check=False)
            process.wait(COMMAND_S)


def restic(door: OpenDoor, folder: Path, *words: str | Path) -> str:
    more = {
        "RESTIC_REPOSITORY": f"s3:{door.url}/{BUCKET}/restic",
        "RESTIC_PASSWORD": "of a test",
        "RESTIC_CACHE_DIR": str(folder / "cache"),
    }
    return run(door, folder, program("restic"), *words, more=more)


def kopia(door: OpenDoor, folder: Path, *words: str | Path) -> str:
    more = {
        "KOPIA_PASSWORD": "of a test",
        "KOPIA_CONFIG_PATH": str(folder / "kopia.config"),
        "KOPIA_CACHE_DIRECTORY": str(folder / "kopia-cache"),
        "KOPIA_LOG_DIR": str(folder / "kopia-logs"),
        "KOPIA_CHECK_FOR_UPDATES": "false",
    }
    return run(door, folder, program("kopia"), "--no-progress", *words, more=more)


def aws(door: OpenDoor, folder: Path, *words: str | Path) -> str:
    return run(door, folder, program("awscli"), "--endpoint-url", door.url, *words)


def s5cmd(door: OpenDoor, folder: Path, *words: str | Path) -> str:
    return run(door, folder, program("s5cmd"), "--endpoint-url", door.url, *words)


def test_boto3_with_buckets_in_the_path_does_all_that_the_door_offers(door: OpenDoor, tmp_path: Path) -> None:
    words = ("http", str(door.port), DOMAIN, "path", "boto3-path")
    assert run(door, tmp_path, program("boto3"), _boto3(), *words).split()[-1] == "done"


def test_boto3_with_buckets_in_the_hosts_name_does_all_that_the_door_offers(door: OpenDoor, tmp_path: Path) -> None:
    words = ("http", str(door.port), DOMAIN, "virtual", "boto3-virtual")
    assert run(door, tmp_path, program("boto3"), _boto3(), *words).split()[-1] == "done"


def test_boto3_over_tls_trusts_the_certificate_of_the_door(tmp_path: Path) -> None:
    with open_door(tmp_path / "tls", storage_count=2, tls=True) as door:
        for style in ("path", "virtual"):
            words = ("https", str(door.port), DOMAIN, style, f"boto3-{style}")
            assert run(door, tmp_path, program("boto3"), _boto3(), *words).split()[-1] == "done"


def _boto3() -> Path:
    return Path(__file__).with_name("boto3_program.py")


def test_aws_syncs_a_folder_both_ways_and_does_nothing_the_second_time(
    door: OpenDoor, data: Path, tmp_path: Path
) -> None:
    target = f"s3://{BUCKET}/aws"
    assert "upload" in aws(door, tmp_path, "s3", "sync", data, target)
    assert aws(door, tmp_path, "s3", "sync", data, target) == ""
    aws(door, tmp_path, "s3", "sync", target, tmp_path / "back")
    assert contents(tmp_path / "back") == contents(data)
    assert "large" in aws(door, tmp_path, "s3", "ls", f"{target}/")
    aws(door, tmp_path, "s3", "mv", f"{target}/small", f"{target}/moved")
    aws(door, tmp_path, "s3", "rm", "--recursive", target)
    listed = aws(door, tmp_path, "s3api", "list-objects-v2", "--bucket", BUCKET, "--prefix", "aws/")
    assert "Contents" not in listed


def test_rclone_copies_checks_and_removes_a_folder(door: OpenDoor, data: Path, tmp_path: Path) -> None:
    target = f"grid:{BUCKET}/rclone"
    rclone(door, tmp_path, "copy", data, target)
    rclone(door, tmp_path, "check", "--download", data, target)
    rclone(door, tmp_path, "check", data, target)
    rclone(door, tmp_path, "copy", target, tmp_path / "back")
    assert contents(tmp_path / "back") == contents(data)
    assert sorted(json.loads(rclone(door, tmp_path, "lsjson", target)), key=lambda each: each["Name"])[0]["Name"]
    rclone(door, tmp_path, "moveto", f"{target}/small", f"{target}/moved")
    rclone(door, tmp_path, "purge", target)
    assert rclone(door, tmp_path, "lsf", "-R", "--files-only", f"grid:{BUCKET}/rclone") == ""


def test_rclone_finds_that_it_can_stream_and_that_names_stay_as_they_are(door: OpenDoor, tmp_path: Path) -> None:
    found = tmp_path / "info.json"
    rclone(
        door,
        tmp_path,
        "test",
        "info",
        "--check-normalization",
        "--check-streaming",
        "--write-json",
        found,
        f"grid:{BUCKET}/info",
    )
    said = json.loads(found.read_text())
    assert said["CanStream"] and said["CanWriteUnnormalized"] and said["CanReadUnnormalized"]
    assert not said["CanReadRenormalized"]
    rclone(door, tmp_path, "purge", f"grid:{BUCKET}/info")


def test_rclone_mounts_a_bucket_as_a_file_system(door: OpenDoor, data: Path, tmp_path: Path) -> None:
    remote = f"grid:{BUCKET}/mounted"
    with mounted(door, tmp_path, remote) as mount:
        shutil.copytree(data, mount / "files")
        (mount / "files" / "small").rename(mount / "files" / "moved")
        (mount / "files" / "empty").unlink()
        here = contents(mount / "files")
        wait_until(lambda: _listed(door, tmp_path, remote) == {f"files/{name}" for name in here}, "the uploads", 120.0)
    wanted = contents(data)
    wanted["moved"] = wanted.pop("small")
    del wanted["empty"]
    assert here == wanted
    with mounted(door, tmp_path, remote) as mount:
        assert contents(mount / "files") == wanted
        with (mount / "files" / "large").open("rb") as file:
            file.seek(9_000_000)
            assert file.read(10) == wanted["large"][9_000_000:9_000_010]
    rclone(door, tmp_path, "purge", remote)


def _listed(door: OpenDoor, folder: Path, remote: str) -> set[str]:
    return set(rclone(door, folder, "lsf", "-R", "--files-only", remote).splitlines())


def test_s5cmd_copies_lists_and_removes_files(door: OpenDoor, data: Path, tmp_path: Path) -> None:
    s5cmd(door, tmp_path, "cp", f"{data}/", f"s3://{BUCKET}/s5/")
    s5cmd(door, tmp_path, "cp", f"s3://{BUCKET}/s5/*", f"{tmp_path}/back/")
    assert contents(tmp_path / "back") == contents(data)
    assert len(s5cmd(door, tmp_path, "ls", f"s3://{BUCKET}/s5/*").splitlines()) == len(contents(data))
    s5cmd(door, tmp_path, "rm", f"s3://{BUCKET}/s5/*")


def test_restic_keeps_a_repository_in_a_bucket(door: OpenDoor, data: Path, tmp_path: Path) -> None:
    restic(door, tmp_path, "init")
    for _ in range(2):
        restic(door, tmp_path, "backup", data)
    restic(door, tmp_path, "forget", "--prune", "--keep-last", "1")
    restic(door, tmp_path, "check", "--read-data")
    restic(door, tmp_path, "restore", "latest", "--target", tmp_path / "back")
    assert contents(tmp_path / "back" / data.relative_to("/")) == contents(data)


def test_kopia_keeps_a_repository_in_a_bucket(door: OpenDoor, data: Path, tmp_path: Path) -> None:
    where = ["--bucket", BUCKET, "--prefix", "kopia/", "--endpoint", f"127.0.0.1:{door.port}", "--disable-tls"]
    kopia(door, tmp_path, "repository", "create", "s3", *where)
    for _ in range(2):
        kopia(door, tmp_path, "snapshot", "create", data)
    kopia(door, tmp_path, "snapshot", "verify", "--verify-files-percent", "100")
    kopia(door, tmp_path, "maintenance", "run", "--full")
    listed = json.loads(kopia(door, tmp_path, "snapshot", "list", "--json"))
    kopia(door, tmp_path, "snapshot", "restore", listed[-1]["id"], tmp_path / "back")
    assert contents(tmp_path / "back") == contents(data)


def test_a_door_that_was_killed_keeps_every_object_that_it_answered(door: OpenDoor, tmp_path: Path) -> None:
    answered = _put_until_killed(door, tmp_path)
    before = door.node.log.count("S3 interface at")
    door.node.start()
    door.node.wait_for(lambda: door.node.log.count("S3 interface at") > before, "its S3 door")
    listed = {line.split()[-1] for line in aws(door, tmp_path, "s3", "ls", f"s3://{BUCKET}/killed/").splitlines()}
    assert answered and answered <= listed
    aws(door, tmp_path, "s3", "sync", f"s3://{BUCKET}/killed", tmp_path / "back")
    assert all(path.read_bytes() == path.name.encode() for path in (tmp_path / "back").iterdir())


def _put_until_killed(door: OpenDoor, folder: Path) -> set[str]:
    """Kill the door's process while many puts are under way; the names of those that were answered."""
    words: Sequence[str] = (program("boto3"), str(Path(__file__).with_name("boto3_putting.py")), door.url, BUCKET)
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=door.environment(folder), text=True) as putting:
        assert putting.stdout is not None
        answered = {putting.stdout.readline().strip() for _ in range(40)}
        door.node.kill()
        answered |= {line.strip() for line in putting.stdout}
    return answered


def test_every_client_reads_while_seven_of_ten_nodes_are_dead(door: OpenDoor, data: Path, tmp_path: Path) -> None:
    rclone(door, tmp_path, "copy", data, f"grid:{BUCKET}/kept")
    for node in door.grid.storage[:7]:
        node.kill()
    rclone(door, tmp_path, "copy", f"grid:{BUCKET}/kept", tmp_path / "rclone")
    aws(door, tmp_path, "s3", "sync", f"s3://{BUCKET}/kept", tmp_path / "aws")
    s5cmd(door, tmp_path, "cp", f"s3://{BUCKET}/kept/*", f"{tmp_path}/s5cmd/")
    for name in ("rclone", "aws", "s5cmd"):
        assert contents(tmp_path / name) == contents(data)
    restic(door, tmp_path, "restore", "latest", "--no-lock", "--target", tmp_path / "restic")
    assert contents(tmp_path / "restic" / data.relative_to("/")) == contents(data)
