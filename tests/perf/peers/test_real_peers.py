"""Every peer with its real program: up, down, list, delete, refusals, what it stores, and what it leaves behind."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from perf.peers.catalogue import default_and_tuned, make_peer
from perf.peers.contract import Peer, PeerError
from perf.peers.grids import GridPeer
from perf.peers.programs import MissingPeerError
from perf.peers.servers import server_use
from perf.processes.node_process import wait_until

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300)]

LABELS = [
    *default_and_tuned(),
    "rclone@versitygw+crypt",
    "rclone@minio+crypt",
    "scp+old",
    "scp+cipher=aes256-ctr",
    "sftp+sync",
    "sftp+cipher=chacha20-poly1305",
    "cp+sync",
]
SIZES = (1, 70_000, 6_000_000)
Running = Callable[[str], Peer]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random files of a few sizes; none is empty, since every peer has its own opinion of those."""
    folder = tmp_path_factory.mktemp("sources")
    for number, size in enumerate(SIZES):
        (folder / f"file{number}").write_bytes(os.urandom(size))
    return folder


@pytest.mark.parametrize("label", LABELS)
def test_a_file_comes_back_as_it_was_and_is_gone_once_deleted(
    running: Running, label: str, folder: Path, tmp_path: Path
) -> None:
    peer, source = running(label), folder / "file2"

    assert peer.put(source, "one").seconds > 0
    peer.settle()
    assert peer.get("one", tmp_path / "back").seconds > 0
    peer.settle()
    peer.delete("one")

    assert digests([tmp_path / "back"]) == digests([source])
    with pytest.raises(PeerError):
        peer.get("one", tmp_path / "again")


@pytest.mark.parametrize("label", LABELS)
def test_a_folder_comes_back_whole_is_listed_and_takes_the_room_that_the_peer_says(
    running: Running, label: str, folder: Path, tmp_path: Path
) -> None:
    peer = running(label)
    before = peer.stored_bytes()

    peer.put_folder(folder, "many")
    stored = peer.stored_bytes() - before
    listed = peer.list_folder("many")
    peer.get_folder("many", tmp_path / "back")
    peer.get_one_of("many", "file1", tmp_path / "one")
    kept = [path for store in peer.store_folders for path in store.rglob("*") if path.is_file()]
    peer.delete_folder("many")

    assert listed == sorted(path.name for path in folder.iterdir())
    assert digests(sorted((tmp_path / "back").iterdir())) == digests(sorted(folder.iterdir()))
    assert digests([tmp_path / "one"]) == digests([folder / "file1"])
    assert kept
    assert stored == pytest.approx(peer.properties.expansion * sum(SIZES), rel=0.1)


@pytest.mark.parametrize("client", ["cli", "gateway", "links"])
@pytest.mark.parametrize("system", ["grid@http", "tahoe@foolscap"])
def test_a_grid_stores_files_and_folders_as_peers_do(
    system: str, client: Literal["cli", "gateway", "links"], folder: Path, tmp_path: Path
) -> None:
    peer = GridPeer(system, client, servers=4)
    try:
        peer.start(tmp_path / "grid")
    except MissingPeerError as gap:
        pytest.skip(str(gap))
    try:
        peer.put(folder / "file1", "one")
        peer.get("one", tmp_path / "one")
        peer.put_folder(folder, "many")
        listed = peer.list_folder("many")
        peer.get_folder("many", tmp_path / "many")
        peer.get_one_of("many", "file1", tmp_path / "one of many")
        stored = peer.stored_bytes()
        peer.delete("one")
        with pytest.raises(PeerError):
            peer.get("one", tmp_path / "again")
    finally:
        peer.stop()

    assert digests([tmp_path / "one"]) == digests([folder / "file1"]) == digests([tmp_path / "one of many"])
    assert listed == sorted(path.name for path in folder.iterdir())
    assert digests(sorted((tmp_path / "many").iterdir())) == digests(sorted(folder.iterdir()))
    assert stored == pytest.approx(peer.properties.expansion * (sum(SIZES) + SIZES[1]), rel=0.1)


@pytest.mark.parametrize("label", ["scp+strict+cipher=3des-cbc", "sftp+strict+cipher=aes128-cbc"])
def test_a_cipher_that_the_server_refuses_is_an_error_that_says_so(running: Running, label: str, folder: Path) -> None:
    with pytest.raises(PeerError, match="no matching cipher"):
        running(label).put(folder / "file1", "refused")


@pytest.mark.parametrize("label", ["rclone@versitygw", "rclone@minio", "s5cmd@versitygw", "boto3@versitygw"])
def test_no_secret_is_in_a_command_line_or_in_a_file_that_others_can_read(running: Running, label: str) -> None:
    peer = running(label)
    server = peer.__dict__["server"]

    for pid in [*peer.server_pids, *peer.client_pids]:
        assert server.secret_key.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    for path in peer.root.iterdir():
        if path.is_file() and server.secret_key in path.read_text(errors="replace"):
            assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("label", ["scp", "rclone@versitygw"])
def test_what_a_server_spends_on_an_operation_is_counted(running: Running, label: str, folder: Path) -> None:
    peer = running(label)
    (pid,) = peer.server_pids
    before = server_use(pid)

    for number in range(4):
        peer.put(folder / "file2", f"counted{number}")
    peer.settle()

    after = server_use(pid)
    assert after.user_s + after.system_s > before.user_s + before.system_s
    assert after.peak_rss > 0


@pytest.mark.parametrize("label", ["scp", "rclone@versitygw", "rclone@minio"])
def test_a_server_ends_with_a_run_that_is_killed(label: str, tmp_path: Path) -> None:
    try:
        make_peer(label).versions()
    except MissingPeerError as gap:
        pytest.skip(str(gap))
    run = (
        "import os, signal, sys; from pathlib import Path; from perf.peers.catalogue import make_peer; "
        f"peer = make_peer({label!r}); peer.start(Path({str(tmp_path / 'files')!r})); "
        "print(peer.server_pids[0], flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", run], stdout=subprocess.PIPE, text=True, check=False)

    wait_until(lambda: not Path(f"/proc/{int(done.stdout)}").exists(), "the server to end")


def digests(paths: list[Path]) -> list[tuple[int, str]]:
    """Size and SHA-256 of each file."""
    return [(path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths]
