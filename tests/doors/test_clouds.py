"""Transfers to and from Azure and Google, at emulators of them and beside a real grid."""

from __future__ import annotations

import asyncio
import os
import random
import uuid
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from grid.node.local_grid import LocalGrid
from grid.transfer.ends import Entry
from grid.transfer.object_end import ObjectEnd, open_object_end
from tests.cli.command import Outcome, grid, new_directory
from tests.cli.conftest import local_grid  # noqa: F401 - the fixture
from tests.doors.clouds import BUCKET, Cloud, GoogleEmulator, google_before_s3, running_azurite, running_fake_gcs
from tests.doors.files import contents
from tests.transfer.conftest import s3  # noqa: F401 - the fixture
from tests.transfer.end_contract import BytesBody, check_contract, listed
from tests.transfer.killed_transfer import killable_transfers

pytestmark = pytest.mark.doors

TIME_NS = 1_600_000_000 * 10**9
LARGE_SIZE = 30 * 10**6
NAMES = (
    "plain",
    "empty",
    "a/b/c/deep",
    "with space/and more ",
    "\u00fcnic\u00f6d\u00e9 \u65e5\u672c",
    "100%",
    "%41",
    "a+b",
    "q?x=1&y#z",
    "dot.",
)
KEPT = {"Content-Type": "image/tiff", "lens": "50mm", "operator_2": "A. Nother"}
NOT_BY_AZURE = {"camera-model": "X", "1st": "y", "a.b": "z"}
NOT_BY_HTTP = {"a b": "x", "broken": "two\nlines", "umlaut": "\u00fc"}


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """Azurite."""
    with running_azurite(tmp_path_factory.mktemp("azurite")) as running:
        yield running


@pytest.fixture(scope="module")
def google(s3: dict[str, str]) -> Iterator[Cloud]:  # noqa: F811
    """Google's interface before versitygw."""
    with google_before_s3(s3) as running:
        yield running


@pytest.fixture(params=["az", "gs"])
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """Each of them, in the environment."""
    found: Cloud = request.getfixturevalue({"az": "azure", "gs": "google"}[request.param])
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleEmulator]:
    """fake-gcs-server."""
    with running_fake_gcs(tmp_path_factory.mktemp("fake-gcs")) as running:
        yield running


@pytest.fixture
def place(cloud: Cloud) -> str:
    """An empty prefix."""
    return cloud.url(str(uuid.uuid4()))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with odd names, an empty file and a large one."""
    folder, draw = tmp_path / "source", random.Random(7)
    for number, name in enumerate((*NAMES, "large")):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes({"empty": 0, "large": LARGE_SIZE}.get(name, 100 + number)))
        os.utime(path, ns=(TIME_NS, TIME_NS))
    return folder


def transfer(*arguments: str | Path, **added: str) -> Outcome:
    """Run `grid transfer`."""
    return grid("transfer", "--no-progress", *arguments, stdin=b"", **added)


def said(ended: Outcome) -> str:
    """The summary of a transfer that succeeded."""
    assert (ended.code, ended.err) == (0, "")
    return ended.line


def put(url: str, name: str, data: bytes, notes: Mapping[str, str]) -> None:
    """Store an object with notes."""
    entry = Entry(name=name, size=len(data), mtime_ns=TIME_NS, mode=0o640, attributes=dict(notes))
    asyncio.run(open_object_end(url, is_target=True).store(entry, BytesBody(data)))


def notes_of(url: str, name: str) -> dict[str, str]:
    """The notes of an object."""

    async def look(end: ObjectEnd) -> dict[str, str]:
        opened = await end.open((await listed(end))[name])
        await opened.close()
        assert (opened.entry.mtime_ns, opened.entry.mode) == (TIME_NS, 0o640)
        return dict(opened.entry.attributes)

    return asyncio.run(look(open_object_end(url)))


def test_store_fulfills_the_contract_of_ends(cloud: Cloud, place: str) -> None:
    asyncio.run(check_contract(open_object_end(place, is_target=True)))


def test_folder_goes_through_the_store_and_the_grid_and_comes_back(
    cloud: Cloud,
    place: str,
    source: Path,
    tmp_path: Path,
    local_grid: LocalGrid,  # noqa: F811
) -> None:
    client, count = local_grid.client, len(NAMES) + 1
    on_grid = f"{new_directory(client)}/in"
    way = [str(source), f"{place}/1", on_grid, f"{place}/2", str(tmp_path / "back")]
    for begin, end in pairwise(way):
        for expected in (f"{count} files copied", f"0 files copied, {count} unchanged"):
            done = grid("-d", client, "transfer", "--no-progress", begin, end)
            assert said(done) == expected, (begin, end)
    assert contents(tmp_path / "back") == contents(source)
    assert {path.stat().st_mtime_ns for path in (tmp_path / "back").rglob("*") if path.is_file()} == {TIME_NS}


def test_changed_object_is_sent_again_and_nothing_else(place: str, source: Path, tmp_path: Path) -> None:
    back = tmp_path / "back"
    transfer(source, place)
    transfer(place, back)
    for name in ("plain", "large"):
        data = bytearray((source / name).read_bytes())
        data[-1] ^= 1
        (source / name).write_bytes(data)  # Of the same size, and newer.
    for begin, end in ((source, place), (place, back)):
        assert said(transfer(begin, end)) == f"2 files copied, {len(NAMES) - 1} unchanged", begin
    assert contents(back) == contents(source)


def test_mirror_removes_what_the_source_no_longer_has(place: str, source: Path, tmp_path: Path) -> None:
    back = tmp_path / "back"
    transfer(source, place)
    transfer(place, back)
    for name in ("plain", "%41", "a/b/c/deep"):
        (source / name).unlink()
    for begin, end in ((source, place), (place, back)):
        assert said(transfer("--delete", begin, end)) == f"0 files copied, {len(NAMES) - 2} unchanged, 3 removed"
    assert contents(back) == contents(source)


@pytest.mark.parametrize("size", [3, 9_000_000], ids=["small", "large"])
def test_notes_are_kept_as_far_as_the_store_can_hold_them(
    cloud: Cloud,
    place: str,
    size: int,
    tmp_path: Path,
    local_grid: LocalGrid,  # noqa: F811
) -> None:
    put(f"{place}/1", "photo", bytes(size), {**KEPT, **NOT_BY_AZURE, **NOT_BY_HTTP})
    held = KEPT if cloud.scheme == "az" else {**KEPT, **NOT_BY_AZURE}
    assert notes_of(f"{place}/1", "photo") == held
    on_grid = f"{new_directory(local_grid.client)}/in"
    for begin, end in ((f"{place}/1", on_grid), (on_grid, f"{place}/2")):
        assert said(grid("-d", local_grid.client, "transfer", "--no-progress", begin, end)) == "1 file copied"
    assert notes_of(f"{place}/2", "photo") == held


def test_wrong_secret_is_named_as_such_and_not_shown(cloud: Cloud, place: str, source: Path, tmp_path: Path) -> None:
    transfer(source, place)
    for begin, end in ((source, place), (place, tmp_path / "back")):
        ended = transfer(begin, end, **cloud.denied)
        assert (ended.code, ended.out) == (1, b"")
        assert "the server does not accept these credentials" in ended.err
        assert len(ended.err.splitlines()) == 1
        assert not any(secret in ended.err for secret in cloud.secrets)


def test_missing_container_is_not_found(cloud: Cloud, source: Path, tmp_path: Path) -> None:
    missing = cloud.url("in", "nosuchplace")
    what = "container" if cloud.scheme == "az" else "bucket"
    for begin, end in ((source, missing), (missing, tmp_path / "back")):
        ended = transfer(begin, end)
        assert (ended.code, ended.out) == (4, b"")
        assert ended.err == f"grid: {missing}: there is no such {what}\n"


@pytest.mark.parametrize("is_upload", [True, False], ids=["to", "from"])
def test_killed_transfer_goes_on_and_sends_no_finished_file_again(
    cloud: Cloud, place: str, source: Path, tmp_path: Path, *, is_upload: bool
) -> None:
    back, count = tmp_path / "back", len(NAMES) + 1
    with killable_transfers(cloud.environment) as transfers:

        def run(begin: str | Path, end: str | Path, name: str, fatal: int = 0) -> dict[str, object]:
            return transfers.transfer(begin, end, tmp_path / f"{name}.sqlite", fatal=fatal)

        ends: tuple[str | Path, str | Path] = (source, place)
        if not is_upload:
            run(source, place, "first")
            ends = (place, back)
        assert run(*ends, "killed", fatal=4)["killed"]
        done = run(*ends, "killed")
        assert done["failures"] == [] and 0 < int(str(done["copied"])) < count
        assert run(*ends, "killed")["copied"] == 0
        if is_upload:
            run(place, back, "last")
    assert contents(back) == contents(source)


def test_google_emulator_is_a_source_of_transfers(
    emulator: GoogleEmulator,
    tmp_path: Path,
    local_grid: LocalGrid,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = {
        name: random.Random(name).randbytes(LARGE_SIZE if name == "large" else len(name)) for name in (*NAMES, "large")
    }
    data["empty"] = b""
    for name, content in data.items():
        emulator.put(f"in/{name}", content, KEPT["Content-Type"], {"lens-x": "50mm"})
    on_grid = f"{new_directory(local_grid.client)}/in"

    def run(*arguments: str | Path) -> Outcome:
        return grid("-d", local_grid.client, "transfer", "--no-progress", *arguments, stdin=b"", **emulator.environment)

    begin = f"gs://{BUCKET}/in"
    assert said(run(begin, on_grid)) == f"{len(data)} files copied"
    assert said(run(begin, on_grid)) == f"0 files copied, {len(data)} unchanged"
    emulator.put("in/plain", b"other", KEPT["Content-Type"], {})
    assert said(run(begin, on_grid)) == f"1 file copied, {len(data) - 1} unchanged"
    assert said(run(on_grid, tmp_path / "back")) == f"{len(data)} files copied"
    assert contents(tmp_path / "back") == {**data, "plain": b"other"}
    ended = run("gs://nosuch/in", tmp_path / "none")
    assert (ended.code, ended.err) == (4, "grid: gs://nosuch/in: there is no such bucket\n")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator.url)

    async def attributes() -> dict[str, str]:
        end = open_object_end(begin)
        opened = await end.open((await listed(end))["a+b"])
        await opened.close()
        return dict(opened.entry.attributes)

    assert asyncio.run(attributes()) == {"Content-Type": "image/tiff", "lens-x": "50mm"}
