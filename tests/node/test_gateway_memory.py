"""Returning freed memory to the system while a gateway runs: only after work."""

from __future__ import annotations

import gc
import time
from functools import partial
from pathlib import Path
from random import Random
from weakref import ref

from grid.node.process_limits import BUSY_S, LOOK_S, MOST_BUSY_LOOKS, MemoryReturn, collect_garbage
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


def test_memory_is_returned_after_work_and_collected_at_rest_and_neither_after_the_end() -> None:
    clock = VirtualRuntime().clock
    used = [1.0]
    done: list[str] = []

    def do(what: str) -> None:
        done.append(what)
        used[0] += BUSY_S / 2  # Its own work does not count.

    def look(looks: int) -> list[str]:
        done.clear()
        for _ in range(looks):
            clock.task_clock.advance(LOOK_S)
        return done

    memory = MemoryReturn(clock, partial(do, "return"), lambda: used[0], partial(do, "collect"))
    assert look(2) == []
    used[0] += 2 * BUSY_S
    assert look(1) == ["return"]
    assert look(5) == ["collect", "return"], "it rests"
    for number in range(MOST_BUSY_LOOKS + 1):
        used[0] += 2 * BUSY_S
        assert look(1) == (["return"] if number < MOST_BUSY_LOOKS else ["collect", "return"])
    assert look(2) == ["collect", "return"], "what came after that is garbage too"
    memory.close()
    used[0] += 2 * BUSY_S
    assert look(3) == []


def test_garbage_is_left_alone_while_collection_is_off() -> None:
    class Ring:
        def __init__(self) -> None:
            self.itself = self

    ring = ref(Ring())
    gc.disable()
    try:
        collect_garbage()
        assert ring() is not None
    finally:
        gc.enable()
    collect_garbage()
    assert ring() is None


def test_gateway_after_floods_of_uploads_and_of_unread_answers_is_small_again(tmp_path: Path) -> None:
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
