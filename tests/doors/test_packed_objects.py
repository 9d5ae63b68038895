"""boto3 at a door that packs small objects: all that it does with an object, and kill -9 of the door while it puts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.grid import BUCKET, OpenDoor, open_door, program

pytestmark = [pytest.mark.doors, pytest.mark.timeout(600)]

COMMAND_S = 300.0
COUNT = 120
FEWEST_PACKED = 60
"""Of the objects; the others came when none was under way."""


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    with open_door(tmp_path_factory.mktemp("door"), packs=True) as opened:
        yield opened


def words(door: OpenDoor, count: int) -> list[str]:
    return [program("boto3"), str(Path(__file__).with_name("boto3_packing.py")), door.url, BUCKET, str(count)]


def test_boto3_does_with_objects_in_packs_all_that_it_does_with_others(door: OpenDoor, tmp_path: Path) -> None:
    done = subprocess.run(
        words(door, COUNT), capture_output=True, check=False, timeout=COMMAND_S, env=door.environment(tmp_path)
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-4000:]
    listed = door.client.run("ls", "--uri", f"home:{BUCKET}/copies/packed").decode()
    assert listed.count("URI:") == COUNT // 4
    assert listed.count("GRID-SLICE") >= FEWEST_PACKED // 4


def test_a_door_that_was_killed_keeps_every_packed_object_that_it_answered(door: OpenDoor, tmp_path: Path) -> None:
    with subprocess.Popen(words(door, 0), stdout=subprocess.PIPE, env=door.environment(tmp_path), text=True) as putting:
        assert putting.stdout is not None
        answered = {putting.stdout.readline().strip() for _ in range(200)}
        door.node.kill()
        answered |= {line.strip() for line in putting.stdout}
    before = door.node.log.count("S3 interface at")
    door.node.start()
    door.node.wait_for(lambda: door.node.log.count("S3 interface at") > before, "its S3 door")
    door.client.run("cp", "-r", f"home:{BUCKET}/packed", str(tmp_path / "back"))
    found = {path.name: path.read_bytes() for path in (tmp_path / "back").rglob("*") if path.is_file()}
    assert answered
    for name in answered:
        assert found[name.rpartition("/")[2]].startswith(name.encode())
