"""Every end passes one contract: local directories, the grid, S3 and SFTP with real servers."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.threads import deferToThread

from grid.caps import SliceCap
from grid.directory.file_store import FileStore
from grid.node.directory import open_directory
from grid.node.local_grid import LocalGrid
from grid.transfer.ends import PENDING, EndError, Entry, LeftOut, NotThereError, PassingError, SourceChangedError
from grid.transfer.grid_contents import Adoptable
from grid.transfer.grid_end import GridEnd
from grid.transfer.grid_session import GridSession
from grid.transfer.http_end import HttpEnd
from grid.transfer.local_end import LocalEnd
from grid.transfer.object_end import open_object_end
from grid.transfer.sftp_end import open_sftp_end
from tests.cli.conftest import local_grid  # noqa: F401 - the fixture
from tests.transfer.conftest import BUCKET
from tests.transfer.end_contract import BytesBody, check_contract, check_small_files, listed, read, stored
from tests.transfer.scripted_web import WebRequest, scripted_web


def run(case: Coroutine[Any, Any, object]) -> None:
    asyncio.run(case)


def test_contract_of_a_local_directory(tmp_path: Path) -> None:
    run(check_contract(LocalEnd(str(tmp_path / "new"))))
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if "partial" in name]


def test_contract_of_an_s3_bucket(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)

    run(check_contract(open_object_end(f"s3://{BUCKET}/{uuid.uuid4()}", is_target=True)))


def test_contract_of_an_sftp_server(sftp: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, home = sftp
    monkeypatch.setenv("HOME", str(home))

    async def case() -> None:
        end = open_sftp_end(f"{url}{tmp_path}/new")
        (tmp_path / "new").mkdir()
        try:
            await check_contract(end)
        finally:
            await end.close()

    run(case())
    assert not [name for _, _, names in os.walk(tmp_path) for name in names if "partial" in name]


async def test_contract_of_a_directory_of_the_grid(local_grid: LocalGrid) -> None:  # noqa: F811
    from twisted.internet import reactor

    async def case() -> None:
        session = GridSession(open_directory(local_grid.path / "client"), reactor)
        try:
            store = await session.store()
            cap = await session.run(store.create_directory())
            await check_contract(GridEnd(session, cap, ["new"], "work:new"))
            await _small_files_lie_in_one_pack(GridEnd(session, cap, ["packed"], "work:packed", packs=True), store)
            await check_small_files(GridEnd(session, cap, ["packed"], "work:packed", packs=True))
        finally:
            await session.close()

    await deferToThread(asyncio.run, case())


async def _small_files_lie_in_one_pack(end: GridEnd, store: FileStore) -> None:
    contents = {f"file-{size}": os.urandom(size) for size in (0, 55, 56, 4096, 2**18, 2**18 + 1)}
    entries = [Entry(name=name, size=len(data)) for name, data in contents.items()]
    tokens = [await end.store(entry, BytesBody(contents[entry.name])) for entry in entries]
    assert [token == PENDING for token in tokens] == [False, False, True, True, True, False]
    assert not await end.settle(list(zip(entries, tokens, strict=True)))
    assert {name: await read(end, entry) for name, entry in (await listed(end)).items()} == contents
    opened = [await end.open(Entry(name=f"file-{size}")) for size in (56, 4096, 2**18)]
    caps = [each.shortcut.cap for each in opened if isinstance(each.shortcut, Adoptable)]
    packs = {cap.pack for cap in caps if isinstance(cap, SliceCap)}
    assert len(packs) == 1 and len(caps) == 3
    assert 56 + 4096 + 2**18 <= store._extents.packs.fetched_bytes <= packs.pop().size, "each file fetched it anew"
    with pytest.raises(SourceChangedError):
        await end.store(Entry(name="early", size=100), BytesBody(b"x", 100))


def test_a_single_object_is_a_source_under_its_own_name(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    folder = str(uuid.uuid4())

    async def case() -> None:
        target = open_object_end(f"s3://{BUCKET}/{folder}", is_target=True)
        entry = Entry(name="one.txt", size=3, attributes={"Content-Type": "text/plain", "lens": "50mm"})
        await stored(target, entry, BytesBody(b"abc"))
        source = open_object_end(f"s3://{BUCKET}/{folder}/one.txt")
        found = await listed(source)
        assert list(found) == ["one.txt"]
        assert await read(source, found["one.txt"]) == b"abc"
        opened = await source.open(found["one.txt"])
        assert opened.entry.attributes == {"Content-Type": "text/plain", "lens": "50mm"}
        with pytest.raises(NotThereError):
            await listed(open_object_end(f"s3://{BUCKET}/{folder}/two.txt"))

    run(case())


def test_wrong_keys_for_s3_are_one_clear_error(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**s3, "AWS_SECRET_ACCESS_KEY": "wrong"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EndError, match="credentials") as caught:
        run(listed(open_object_end(f"s3://{BUCKET}/x")))
    assert not isinstance(caught.value, PassingError)
    assert "wrong" not in str(caught.value)


def test_an_unknown_host_key_is_refused(
    sftp: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(EndError, match="known_hosts"):
        run(listed(open_sftp_end(f"{sftp[0]}/tmp")))


def test_links_devices_and_partial_files_of_a_directory_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "up").symlink_to("..")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".grid-partial-0").write_bytes(b"")

    async def case() -> None:
        found = [each async for each in LocalEnd(str(tmp_path)).entries()]
        assert {each.name for each in found if isinstance(each, Entry)} == {"file"}
        assert {each.name for each in found if isinstance(each, LeftOut)} == {"link", "up", "pipe"}
        with pytest.raises((EndError, OSError)):
            await LocalEnd(str(tmp_path)).open(Entry(name="pipe"))

    run(case())


def test_zeros_become_holes(tmp_path: Path) -> None:
    size = 64 * 2**20
    run(stored(LocalEnd(str(tmp_path)), Entry(name="sparse", size=size), BytesBody(bytes(size - 1) + b"x")))
    status = (tmp_path / "sparse").stat()
    assert status.st_size == size
    assert status.st_blocks * 512 < 2**20


def test_a_web_file_is_read_whole_and_in_ranges() -> None:
    data = os.urandom(3_000_000)

    def serve(request: WebRequest) -> None:
        asked = request.headers.get("Range")
        if asked is None:
            request.answer(200, data, ETag='"one"', Content_Type="image/png")
        else:
            begin, end = map(int, asked.removeprefix("bytes=").split("-"))
            request.answer(206, data[begin : end + 1], ETag='"one"', Content_Range=f"bytes {begin}-{end}/{len(data)}")

    async def case(url: str) -> None:
        end = HttpEnd(f"{url}/a/photo%20one.png?token=1")
        (entry,) = (await listed(end)).values()
        assert (entry.name, entry.size, entry.attributes) == ("photo one.png", len(data), {"Content-Type": "image/png"})
        assert await read(end, entry) == data
        assert await read(end, entry, 1000, 2_000_000) == data[1000:2_001_000]
        assert "token" not in end.label

    with scripted_web(serve) as url:
        run(case(url))


@pytest.mark.parametrize(
    ("status", "kind"), [(404, NotThereError), (403, EndError), (500, PassingError), (503, PassingError)]
)
def test_statuses_of_a_web_server_are_errors_of_their_kind(status: int, kind: type[EndError]) -> None:
    with scripted_web(lambda request: request.answer(status)) as url, pytest.raises(kind) as caught:
        run(listed(HttpEnd(f"{url}/x")))
    assert type(caught.value) is kind


def test_a_redirect_to_another_scheme_is_refused() -> None:
    with (
        scripted_web(lambda request: request.answer(302, Location="file:///etc/passwd")) as url,
        pytest.raises(EndError),
    ):
        run(listed(HttpEnd(f"{url}/x")))
