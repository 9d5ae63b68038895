"""Freed memory goes back to the system while a gateway runs: when there was work, and then only."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

from grid.node.process_limits import BUSY_S, LOOK_S, MemoryReturn
from perf.processes.clients import GridGateway
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.sampling.usage import peak_resident, resident
from perf.systems.hostile_client import Gateway, web_never_read
from tests.support.virtual_time import VirtualRuntime

PEAK = 300 * 2**20
RESIDENT_AFTER = 150 * 2**20
WAVES = 2
READERS = 40
UPLOADS = 100
UPLOAD_SIZE = 300_000
PATIENCE_S = 30


def test_memory_is_returned_only_after_work_and_not_after_the_end() -> None:
    clock = VirtualRuntime().clock
    used, returned = [1.0], [0]

    def give_back() -> None:
        returned[0] += 1
        used[0] += BUSY_S / 2  # Its own work does not count.

    memory = MemoryReturn(clock, give_back, lambda: used[0])
    clock.task_clock.advance(LOOK_S)
    assert returned == [0]
    used[0] += BUSY_S
    for _ in range(5):
        clock.task_clock.advance(LOOK_S)
    assert returned == [1]
    memory.close()
    used[0] += BUSY_S
    clock.task_clock.advance(3 * LOOK_S)
    assert returned == [1]


def test_gateway_after_floods_of_uploads_and_of_reads_that_nobody_takes_is_small_again(tmp_path: Path) -> None:
    draw = Random(1)
    with ProcessGrid(
        tmp_path / "grid", introducer="grid", storage=["grid"], force_foolscap=False, durability="none"
    ) as grid:
        client = grid.add_client(ClientSettings(kind="grid", needed=3, happy=1, total=3, gateway=True))
        assert isinstance(client, GridGateway)
        web = Gateway(client.url)
        for _ in range(WAVES):
            readers = [web_never_read(web, draw) for _ in range(READERS)]
            for reader in readers:
                reader.settimeout(PATIENCE_S)
                assert reader.recv(1)
            for reader in readers:
                reader.close()
        head = f"PUT /uri HTTP/1.1\r\nHost: {web.host}\r\nConnection: close\r\nContent-Length: {UPLOAD_SIZE}\r\n\r\n"
        uploads = [web.connect() for _ in range(UPLOADS)]
        for upload in uploads:
            upload.sendall(head.encode() + draw.randbytes(UPLOAD_SIZE))
        for upload in uploads:
            upload.settimeout(PATIENCE_S)
            assert upload.recv(100).startswith(b"HTTP/1.1 200")
            upload.close()
        end = time.monotonic() + PATIENCE_S
        while resident([client.node.pid]) >= RESIDENT_AFTER and time.monotonic() < end:
            time.sleep(0.2)
        assert resident([client.node.pid]) < RESIDENT_AFTER
        assert peak_resident(client.node.pid) < PEAK
