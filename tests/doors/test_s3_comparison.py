"""The table that compares S3 servers in docs/s3.md, against each server that is installed: its column says what boto3 finds."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from perf.network.contract import Placement
from perf.peers.object_servers import Minio
from perf.processes.node_process import child_environment
from tests.doors.grid import open_door, program
from tests.doors.versity import running_versitygw

pytestmark = [pytest.mark.doors, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[2] / "docs" / "s3.md"

FEATURES = {
    "Tags of objects and buckets": ("object_tags", "bucket_tags"),
    "GetObjectAttributes": ("attributes",),
    "ListObjectVersions": ("list_versions",),
    "Versions of objects": ("versions",),
    "Object locks": ("locks",),
    "Access control lists": ("lists_shown", "bucket_lists", "object_lists"),
    "Bucket policies": ("policies",),
    "CORS": ("bucket_cors",),
    "Websites": ("websites",),
    "Forms (POST)": ("forms",),
    "Lifecycle rules": ("lifecycle",),
    "Encryption with a client's key (SSE-C)": ("customer_keys",),
    "Notifications": ("bucket_notifications",),
}
"""Rows of the table, and what `feature_program.py` finds."""

FOLLOWS = {"Reading without an access key": "Bucket policies"}
"""Rows that another row decides: who has policies reads by policy."""

MEANINGS = {
    "shown": (True, False, False),
    "of buckets": (False, True, False),
    "for the server": (False,),
    "by bucket": (True,),
    "with a setting": (True,),
    "over TLS": (False,),
}
"""What other words than yes and no say of a row's features. Here, a setting of the server is on, and there is no TLS."""


def column(server: str) -> dict[str, str]:
    """The cells of a server by row."""
    lines = re.findall(r"^\| (.+) \|$", PAGE.read_text(encoding="utf-8").partition("| Feature |")[2], re.MULTILINE)
    head = re.search(r"^\| Feature \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert head is not None
    place = head[1].split(" | ").index(server) + 1
    rows = [line.split(" | ") for line in lines if len(line.split(" | ")) == len(head[1].split(" | ")) + 1]
    return {row[0]: row[place] for row in rows}


def tried(url: str, access_key: str, secret_key: str, folder: Path) -> Mapping[str, bool]:
    """What boto3 finds."""
    account = {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key, "AWS_DEFAULT_REGION": "us-east-1"}
    script = Path(__file__).with_name("feature_program.py")
    done = subprocess.run(
        [program("boto3"), str(script), url], capture_output=True, text=True, check=False, timeout=300,
        env={**child_environment(), **account, "HOME": str(folder), "AWS_EC2_METADATA_DISABLED": "true"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    (folder / "refusals").write_text(done.stderr)
    found: Mapping[str, bool] = json.loads(done.stdout)
    return found


def require_column(server: str, found: Mapping[str, bool]) -> None:
    """AssertionError if a cell of the server says something else."""
    said, wrong = column(server), []
    assert set(said) == {*FEATURES, *FOLLOWS}
    for row, names in FEATURES.items():
        word = re.split("[:,]", said[row])[0]
        meant = MEANINGS.get(word, tuple(word == "yes" for _ in names))
        if meant != tuple(found[name] for name in names) and not (word == "no" and row == "Access control lists"):
            wrong.append(f"{row}: {said[row]!r}, but { ({name: found[name] for name in names}) }")
    assert not found["object_lists"] or said["Access control lists"].startswith("yes")
    for row, other in FOLLOWS.items():
        assert ("by policy" in said[row]) == said[other].startswith("yes"), row
    assert not wrong, wrong


def test_column_of_grid_says_what_boto3_finds_at_the_door(tmp_path: Path) -> None:
    with open_door(tmp_path / "grid", storage_count=1) as door:
        require_column("Grid", tried(door.url, door.access_key, door.secret_key, tmp_path))


def test_column_of_versitygw_says_what_boto3_finds_there(tmp_path: Path) -> None:
    with running_versitygw(tmp_path, keeps_versions=True) as target:
        require_column("versitygw", tried(f"http://127.0.0.1:{target.port}", target.main, target.secret, tmp_path))


def test_column_of_minio_says_what_boto3_finds_there(tmp_path: Path) -> None:
    program("minio")
    server = Minio()
    server.start(tmp_path, Placement(), child_environment())
    try:
        require_column("MinIO", tried(server.url, server.access_key, server.secret_key, tmp_path))
    finally:
        server.stop()
