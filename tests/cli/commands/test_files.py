"""put, get, check and repair on a real grid."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from grid.codec import base32
from grid.crypto.hashing import tagged_hash
from grid.node.local_grid import LocalGrid
from tests.cli.command import environment, grid

DATA = random.Random(1).randbytes(300_000)


def _put(local_grid: LocalGrid, data: bytes, *options: str) -> str:
    outcome = grid("-d", local_grid.client, "put", *options, "-", stdin=data)
    assert outcome.code == 0, outcome.err
    return outcome.line


def _shares(local_grid: LocalGrid, cap: str) -> list[Path]:
    """The share files of a file, on all servers."""
    key = base32.decode(cap.split(":")[2])
    index = base32.encode(tagged_hash(b"allmydata_immutable_key_to_storage_index_v1", key, 16))
    return [
        path for node in local_grid.storages for path in (node / "storage" / "shares" / index[:2] / index).glob("*")
    ]


def _wait(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


def test_file_comes_back_whole_and_in_parts(local_grid: LocalGrid, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(DATA)
    put = grid("-d", local_grid.client, "put", tmp_path / "file")
    assert (put.code, put.err) == (0, "")
    assert put.out.startswith(b"URI:CHK:")
    assert put.out.count(b"\n") == 1
    (tmp_path / "cap").write_bytes(put.out)
    got = grid("-d", local_grid.client, "get", "--cap-file", tmp_path / "cap", tmp_path / "copy")
    assert (got.code, got.out, got.err) == (0, b"", "")
    assert (tmp_path / "copy").read_bytes() == DATA
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cap", "copy", "file"]
    part = grid("-d", local_grid.client, "get", "-", "--range", "100000-200000", stdin=put.out)
    assert part.out == DATA[100_000:200_001]
    assert grid("-d", local_grid.client, "get", put.line, "--range", "-7").out == DATA[-7:]


def test_equal_files_share_a_capability_unless_told_otherwise(local_grid: LocalGrid) -> None:
    first, second = _put(local_grid, DATA), _put(local_grid, DATA)
    others = [_put(local_grid, DATA, option) for option in ("--unique", "--no-convergence")]
    assert first == second
    assert len({first, *others}) == 3
    assert grid("-d", local_grid.client, "get", others[0]).out == DATA


def test_encoding_may_be_chosen(local_grid: LocalGrid) -> None:
    cap = _put(local_grid, DATA, "--needed", "2", "--happy", "2", "--total", "4", "--no-convergence")
    assert cap.split(":")[4:] == ["2", "4", str(len(DATA))]
    assert len(_shares(local_grid, cap)) == 4
    wrong = grid("-d", local_grid.client, "put", "--needed", "9", "-", stdin=DATA)
    assert (wrong.code, wrong.out) == (2, b"")


def test_json_reports_progress_and_result(local_grid: LocalGrid, tmp_path: Path) -> None:
    put = grid("-d", local_grid.client, "put", "--json", "-", stdin=DATA)
    result = json.loads(put.out)
    assert (result["event"], result["size"]) == ("put", len(DATA))
    progress = [json.loads(line) for line in put.err.splitlines()]
    assert progress[-1]["done"] == progress[-1]["total"] == len(DATA)
    got = grid("-d", local_grid.client, "get", "--json", result["cap"], tmp_path / "copy")
    assert json.loads(got.err.splitlines()[-1])["size"] == len(DATA)


def test_missing_shares_are_seen_and_repaired(local_grid: LocalGrid) -> None:
    cap = _put(local_grid, DATA, "--no-convergence")
    healthy = grid("-d", local_grid.client, "check", "--verify", "--json", cap)
    assert healthy.code == 0
    assert json.loads(healthy.out)["results"]["count-shares-good"] == 5
    for share in _shares(local_grid, cap)[:2]:
        share.unlink()
    ill = grid("-d", local_grid.client, "check", cap)
    assert ill.code == 1
    assert ill.line.startswith("Summary: Not Healthy: 3 shares (enc 1-of-5)")
    repaired = grid("-d", local_grid.client, "repair", cap)
    assert repaired.code == 0, repaired.line + repaired.err
    assert "repair successful" in repaired.line
    assert grid("-d", local_grid.client, "check", cap).code == 0


def test_file_without_shares_is_not_found_and_leaves_the_target_alone(local_grid: LocalGrid, tmp_path: Path) -> None:
    cap = _put(local_grid, DATA, "--no-convergence")
    for share in _shares(local_grid, cap):
        share.unlink()
    (tmp_path / "target").write_bytes(b"old")
    got = grid("-d", local_grid.client, "get", cap, tmp_path / "target")
    assert (got.code, got.err.count("\n")) == (4, 1)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("target", b"old")]
    assert grid("-d", local_grid.client, "check", cap).code == 4


def test_damaged_shares_are_an_integrity_error(local_grid: LocalGrid, tmp_path: Path) -> None:
    cap = _put(local_grid, DATA, "--no-convergence")
    for share in _shares(local_grid, cap):
        data = bytearray(share.read_bytes())
        data[1000:250_000] = bytes(249_000)
        share.write_bytes(data)
    got = grid("-d", local_grid.client, "get", cap, tmp_path / "target")
    assert got.code == 6, got.err
    assert list(tmp_path.iterdir()) == []
    assert grid("-d", local_grid.client, "check", cap).code == 0
    verified = grid("-d", local_grid.client, "check", "--verify", cap)
    assert verified.code == 4
    assert "corrupt shares:" in verified.line


def test_too_few_servers_are_named_and_nothing_remains(local_grid: LocalGrid) -> None:
    put = grid("-d", local_grid.client, "put", "--total", "9", "--happy", "9", "-", stdin=DATA[::-1])
    assert (put.code, put.out, put.err.count("\n")) == (5, b"", 1)
    assert "only 5 servers are known, and 9 are needed; `grid status` lists servers that are offline" in put.err
    assert "--happy" in put.err and "config set client.shares.total 5" in put.err


def test_status_lists_every_server(local_grid: LocalGrid) -> None:
    status = grid("-d", local_grid.client, "status", "--json")
    found = json.loads(status.out)
    assert status.code == 0
    assert [server["nickname"] for server in found["servers"]] == [f"storage{index}" for index in range(5)]
    assert all(server["reachable"] and server["batched_reads"] for server in found["servers"])
    assert all((server["transport"], server["fallback"]) == ("http", "") for server in found["servers"])
    assert "5 of 5 answer" in grid("-d", local_grid.client, "status").line


def test_client_directory_of_1_20_simply_works(local_grid: LocalGrid, tmp_path: Path) -> None:
    client = tmp_path / "client"
    shutil.copytree(local_grid.client / "private", client / "private")
    (client / "private" / "secret").unlink(missing_ok=True)
    (client / "tahoe-client.tac").write_text("import sys\n")
    (client / "tahoe.cfg").write_text(
        "# -*- mode: conf; coding: utf-8 -*-\n[node]\nnickname =\nweb.port = tcp:3456:interface=127.0.0.1\n"
        "web.static = public_html\ntub.port = disabled\ntub.location = disabled\n#timeout.keepalive =\n"
        "[client]\nhelper.furl =\nshares.needed = 2\nshares.happy = 3\nshares.total = 5\n"
        "[storage]\nenabled = false\nreserved_space = 1G\n[helper]\nenabled = false\n"
    )
    put = grid("-d", client, "put", "-", stdin=DATA)
    assert (put.code, put.err) == (0, "")
    assert put.line.split(":")[4:6] == ["2", "5"]
    assert grid("-d", client, "get", put.line).out == DATA


def test_interrupted_put_ends_with_130_and_takes_its_shares_back(local_grid: LocalGrid, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(2_000_000_000)
    command = [sys.executable, "-m", "grid.cli", "-d", str(local_grid.client), "put", "--no-convergence", "--json"]
    with subprocess.Popen(
        [*command, str(tmp_path / "file")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        first = process.stderr.readline()
        assert json.loads(first)["event"] == "progress"
        process.send_signal(signal.SIGINT)
        error = process.stderr.read().decode().splitlines()
        assert process.stdout.read() == b""
    told = json.loads(error[-1])["error"]
    assert (process.returncode, told["kind"], told["exit_code"]) == (130, "interrupted", 130)
    incoming = [node / "storage" / "shares" / "incoming" for node in local_grid.storages]
    _wait(lambda: not any(file for path in incoming for _, _, files in os.walk(path) for file in files))


def test_servers_without_room_are_reported_as_no_space(local_grid: LocalGrid) -> None:
    before = {node: (node / "grid.cfg").read_text() for node in local_grid.storages[1:]}
    try:
        for node, text in before.items():
            (node / "grid.cfg").write_text(text + "[storage]\nreserved_space = 900P\n")
        assert grid("down", "--dir", local_grid.path).code == 0
        assert grid("up", "--dir", local_grid.path, "--detach").code == 0
        put = grid("-d", local_grid.client, "put", "--no-convergence", "-", stdin=DATA)
        assert (put.code, put.out, put.err.count("\n")) == (12, b"", 1)
        assert all(f"{node.name} is full" in put.err for node in local_grid.storages[1:])
        assert "lower storage.reserved_space of that node, or ask for fewer with `--happy 1`" in put.err
        status = grid("-d", local_grid.client, "status")
        assert status.code == 12 and "1 have room, and" in status.line
    finally:
        for node, text in before.items():
            (node / "grid.cfg").write_text(text)
        grid("down", "--dir", local_grid.path)
        assert grid("up", "--dir", local_grid.path, "--detach").code == 0


def test_reader_that_closes_the_output_early_gets_no_error_message(local_grid: LocalGrid) -> None:
    cap = _put(local_grid, DATA * 4)
    command = [sys.executable, "-m", "grid.cli", "-d", str(local_grid.client), "get", cap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as get:
        assert get.stdout is not None
        assert get.stderr is not None
        assert get.stdout.read(10) == DATA[:10]
        get.stdout.close()
        assert get.stderr.read() == b""
        assert get.wait() == 1


def test_closed_stdout_is_an_error_and_nothing_is_written_elsewhere(local_grid: LocalGrid) -> None:
    cap = _put(local_grid, DATA)
    for arguments in (["get", cap], ["put", __file__]):
        command = [sys.executable, "-m", "grid.cli", "-d", str(local_grid.client), *arguments]
        script = 'exec "$@" >&-'
        done = subprocess.run(["sh", "-c", script, "sh", *command], capture_output=True, env=environment(), check=False)
        assert (done.returncode, done.stderr) == (1, b"grid: Bad file descriptor\n")
