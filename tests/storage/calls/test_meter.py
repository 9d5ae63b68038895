"""Counts and latencies of a server's operations."""

from __future__ import annotations

from grid.ports import NewShares, StorageIndex, TestWrite
from grid.storage.calls.meter import MAX_SAMPLES, Meter
from tests.contract.storage_server import begin, lease, piece, share_numbers, slot_secrets
from tests.support.storage import ServiceScene
from tests.support.virtual_time import VirtualRuntime

INDEX = StorageIndex(bytes(range(16)))
OTHER = StorageIndex(bytes(range(1, 17)))


def test_meter_when_asked_reports_only_what_its_samples_support() -> None:
    runtime = VirtualRuntime()
    meter = Meter(runtime.clock)
    assert meter.latencies() == {}
    for took in range(20, 0, -1):
        began = meter.now()
        runtime.clock.task_clock.advance(took)
        meter.took("get", began)
    found = meter.latencies()
    assert (found["get.samplesize"], found["get.mean"]) == (20, 10.5)
    assert (found["get.10_0_percentile"], found["get.50_0_percentile"], found["get.95_0_percentile"]) == (3, 11, 20)
    assert found["get.01_0_percentile"] is found["get.99_0_percentile"] is found["get.99_9_percentile"] is None
    assert "read.mean" not in found


def test_meter_when_asked_often_keeps_the_latest_only() -> None:
    runtime = VirtualRuntime()
    meter = Meter(runtime.clock)
    for _ in range(MAX_SAMPLES + 5):
        meter.count("read", 2)
        meter.took("read", meter.now())
    assert meter.latencies()["read.samplesize"] == MAX_SAMPLES
    assert meter.latencies()["read.99_9_percentile"] == 0
    assert meter.counts == {"read": 2 * MAX_SAMPLES + 10}


def test_meter_when_nothing_is_counted_has_no_name() -> None:
    meter = Meter(VirtualRuntime().clock)
    meter.count("abort", 0)
    assert meter.counts == {}


def test_service_when_used_counts_every_operation_and_measures_it() -> None:
    scene = ServiceScene()
    service = scene.service
    upload = scene.run(begin(service, INDEX, [0, 1, 2], 100))
    scene.run(upload.write([piece(number, 0, bytes(100)) for number in (0, 1)]))
    scene.run(upload.close(share_numbers(0, 1)))
    scene.run(upload.abort())
    scene.run(service.find_shares(INDEX))
    scene.run(service.read_shares(INDEX, {number: [(0, 5), (7, 3)] for number in share_numbers(0, 1)}))
    scene.run(service.add_lease(INDEX, lease()))
    (number,) = share_numbers(0)
    scene.run(service.test_and_write(OTHER, slot_secrets(), {number: TestWrite(writes=[(0, b"new")])}))
    scene.run(service.read_slot(OTHER, share_numbers(0), [(0, 3)]))
    assert service.meter.counts == {
        "allocate": 1,
        "write": 2,
        "close": 2,
        "abort": 1,
        "bytes_added": 200,
        "get": 1,
        "read": 4,
        "add-lease": 1,
        "writev": 1,
        "readv": 1,
    }
    measured = {name.partition(".")[0] for name in service.meter.latencies()}
    assert measured == {"allocate", "write", "close", "get", "read", "add-lease", "writev", "readv"}


def test_service_when_whole_shares_are_stored_counts_them_as_if_one_by_one() -> None:
    scene = ServiceScene()
    (number,) = share_numbers(3)
    new = NewShares(storage_index=INDEX, secrets=lease(), shares={number: [b"abc", b"de"]})
    scene.run(scene.service.store_shares([new]))
    assert scene.service.meter.counts == {"allocate": 1, "write": 1, "close": 1, "bytes_added": 5}
    scene.run(scene.service.store_shares([new]))
    counts = scene.service.meter.counts
    assert (counts["allocate"], counts["bytes_added"]) == (2, 5)


def test_service_when_asked_for_space_says_what_is_free_and_what_may_be_used() -> None:
    scene = ServiceScene()
    space, available = scene.run(scene.service.space())
    assert space is not None
    assert available is not None
    assert space.total >= space.free_for_root >= space.free >= available > 0
