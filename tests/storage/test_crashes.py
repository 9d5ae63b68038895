"""Every change of a server, with the machine stopped, the power cut or a system call failed at every step.

An acknowledged change is there whole afterwards; one that was under way is there whole, share by share, or not
at all; leases are never lost; nothing else is left behind; and the change can be made again.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable

import pytest

from grid.errors import GridError
from grid.ports import NewShares, ShareNumber, ShareWrite, StorageIndex
from grid.storage.calls.service import StorageService
from grid.storage.files import slot_writes
from grid.storage.files.paths import INCOMING
from tests.contract.storage_server import lease, piece, share_numbers, slot_secrets, vector, whole
from tests.support.crash_disk import CrashDisk
from tests.support.faulty_disk import GROWING, FaultyDisk, Stopped
from tests.support.storage import ServiceScene
from tests.support.stored_shares import State, files_below, stored_shares

FILE = StorageIndex(b"immutable index!")
SLOT = StorageIndex(b"the mutable one!")
WHOLE_FILE = StorageIndex(b"stored at once..")
OTHER_FILE = StorageIndex(b"and another one.")
SHARE_SIZE = 1500
LARGE = bytes(range(256)) * 20


async def upload(service: StorageService, numbers: tuple[int, ...], owner: bytes, held: tuple[int, ...] = ()) -> None:
    allocation = await service.allocate(FILE, lease(owner), share_numbers(*numbers), SHARE_SIZE)
    mine = allocation.upload.share_numbers
    try:
        await allocation.upload.write([piece(number, 0, b"front", bytes(990)) for number in mine])
        await allocation.upload.write([piece(number, 995, b"%05d" % number * 101) for number in mine])
        await allocation.upload.close(mine)
    finally:
        await allocation.upload.abort()
    if not share_numbers(*numbers) <= mine | allocation.already or not share_numbers(*held) <= allocation.already:
        raise GridError("not everything could be done")


async def first_upload(service: StorageService) -> None:
    await upload(service, (0, 1, 2), b"r")


async def second_upload(service: StorageService) -> None:
    await upload(service, (1, 5), b"s", held=(0, 1, 2))


async def abandoned_upload(service: StorageService) -> None:
    allocation = await service.allocate(FILE, lease(b"r"), share_numbers(8, 9), SHARE_SIZE)
    mine = allocation.upload.share_numbers
    try:
        await allocation.upload.write([piece(number, 0, b"never seen") for number in mine])
    finally:
        await allocation.upload.abort()
    if mine != {8, 9} or allocation.already != {0, 1, 2, 5}:
        raise GridError("not everything could be done")


async def whole_shares(service: StorageService) -> None:
    """Two new files at once, and one that is held: its leases are renewed."""
    stores = [
        whole(WHOLE_FILE, {4: b"whole" * 300, 6: b"shares" * 250}),
        whole(FILE, {7: b"not stored"}, owner=b"q"),
        whole(OTHER_FILE, {0: b"another" * 9}),
    ]
    answers = await service.store_shares(stores)
    for new, answer in zip(stores, answers, strict=True):
        if not answer.stored and not answer.already:
            raise GridError("there was no room")
        if answer.already and new.storage_index != FILE:
            await _complete(service, new)
    if answers[1].already != {0, 1, 2, 5}:
        raise GridError("not every share was found")


async def _complete(service: StorageService, new: NewShares) -> None:
    """A share of these was there already: add the others in the usual way."""
    allocation = await service.allocate(new.storage_index, new.secrets, frozenset(new.shares), new.share_size)
    mine = allocation.upload.share_numbers
    try:
        await allocation.upload.write([ShareWrite(number, 0, new.shares[number]) for number in mine])
        await allocation.upload.close(mine)
    finally:
        await allocation.upload.abort()
    if mine | allocation.already != set(new.shares):
        raise GridError("not everything could be done")


async def lease_on_file(service: StorageService) -> None:
    await service.add_lease(FILE, lease(b"t"))


async def new_slot(service: StorageService) -> None:
    writes = {ShareNumber(number): vector((0, LARGE)) for number in (0, 1)}
    await service.test_and_write(SLOT, slot_secrets(letter=b"r"), writes)


async def rewritten_slot(service: StorageService) -> None:
    writes = {ShareNumber(0): vector((0, b"anew" * 1300)), ShareNumber(2): vector((10, b"another"))}
    await service.test_and_write(SLOT, slot_secrets(letter=b"s"), writes)


async def changed_slot(service: StorageService) -> None:
    patch = vector((100, b"in place"), (4000, b"at the end" * 130), (5500, b"behind a gap"))
    await service.test_and_write(SLOT, slot_secrets(letter=b"t"), {ShareNumber(0): patch, ShareNumber(1): patch})


async def cut_slot(service: StorageService) -> None:
    writes = {ShareNumber(0): vector((7, b"and shorter"), new_length=4100), ShareNumber(2): vector(new_length=0)}
    await service.test_and_write(SLOT, slot_secrets(letter=b"t"), writes)


async def fourth_lease(service: StorageService) -> None:
    await service.add_lease(SLOT, lease(b"u"))


async def fifth_lease(service: StorageService) -> None:
    await service.add_lease(SLOT, lease(b"v"))


async def gapped_slot(service: StorageService) -> None:
    """Leaves a gap where data was before it was cut off."""
    await service.test_and_write(SLOT, slot_secrets(letter=b"t"), {ShareNumber(0): vector((4200, b"behind a gap"))})


async def grown_slot(service: StorageService) -> None:
    """Moves the fifth lease, and adds a sixth."""
    patch = vector((4096, b"behind the old end" * 90))
    await service.test_and_write(SLOT, slot_secrets(letter=b"w"), {ShareNumber(0): patch, ShareNumber(1): patch})


async def roomy_slot(service: StorageService) -> None:
    """Grows both shares by enough to be given room behind the data."""
    await _append(service, 4096 + 18 * 90, bytes(range(200)) * 20)


async def filled_slot(service: StorageService) -> None:
    """Grows both shares within their room."""
    await _append(service, 4096 + 18 * 90 + 4000, b"no log is needed" * 90)


async def trimmed_slot(service: StorageService) -> None:
    """Says how long the shares are, so that the room goes."""
    await _append(service, 4096 + 18 * 90 + 4000 + 16 * 90, b"end", new_length=7159)


async def _append(service: StorageService, offset: int, data: bytes, new_length: int | None = None) -> None:
    patch = vector((offset, data), new_length=new_length)
    answer = await service.test_and_write(
        SLOT, slot_secrets(letter=b"w"), {ShareNumber(0): patch, ShareNumber(1): patch}
    )
    assert answer.passed


async def no_slot(service: StorageService) -> None:
    writes = {ShareNumber(number): vector(new_length=0) for number in (0, 1)}
    await service.test_and_write(SLOT, slot_secrets(letter=b"t"), writes)


Step = Callable[[StorageService], Awaitable[None]]
STEPS: tuple[Step, ...] = (
    first_upload,
    second_upload,
    abandoned_upload,
    whole_shares,
    lease_on_file,
    new_slot,
    rewritten_slot,
    changed_slot,
    cut_slot,
    fourth_lease,
    fifth_lease,
    gapped_slot,
    grown_slot,
    roomy_slot,
    filled_slot,
    trimmed_slot,
    no_slot,
)


@pytest.fixture(autouse=True)
def small_slots_change_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_writes, "COPY_LIMIT", 100)
    monkeypatch.setattr(slot_writes, "COPY_FACTOR", 1)
    monkeypatch.setattr(slot_writes, "ROOM_FROM", 3000)


@pytest.fixture(scope="module", params=range(len(STEPS)), ids=[step.__name__ for step in STEPS])
def change(request: pytest.FixtureRequest) -> tuple[Step, CrashDisk]:
    """A step, and a disk on which the steps before it were taken."""
    disk = CrashDisk()
    scene = ServiceScene(disk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slot_writes, "COPY_LIMIT", 100)
        patch.setattr(slot_writes, "COPY_FACTOR", 1)
        patch.setattr(slot_writes, "ROOM_FROM", 3000)
        for step in STEPS[: request.param]:
            scene.run(_taken(step, scene.service))
    scene.run(scene.service.stop())
    return STEPS[request.param], disk


async def _taken(step: Step, service: StorageService) -> None:
    await step(service)


def _one_of(state: State, before: State, after: State) -> bool:
    """Whether each share is as it was before, or as it should be after."""
    return all(state.get(key) in (before.get(key), after.get(key)) for key in {*state, *before, *after})


def _after(step: Step, disk: CrashDisk) -> State:
    scene = ServiceScene(disk.copied())
    scene.run(_taken(step, scene.service))
    return stored_shares(scene.disk)


def _check_restart(step: Step, disk: CrashDisk, before: State, after: State) -> None:
    """Restart: every share is complete, nothing else exists, and the step can be repeated."""
    scene = ServiceScene(disk)
    assert _one_of(stored_shares(disk), before, after)
    assert files_below(disk, INCOMING) == []
    scene.run(_taken(step, scene.service))
    assert stored_shares(disk) == after
    assert disk.open_count == 0


@pytest.mark.parametrize("seed", ["killed", None, 1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (2, 3))])
def test_change_when_the_machine_stops_at_any_call_is_whole_or_absent(
    change: tuple[Step, CrashDisk], seed: str | int | None
) -> None:
    step, base = change
    before, after = stored_shares(base), _after(step, base)
    for count in range(10_000):
        inside = base.copied()
        disk = FaultyDisk(inside)
        scene = ServiceScene(disk)
        disk.stop_in(count)
        try:
            scene.run(_taken(step, scene.service))
        except Stopped:
            assert disk.fired
        else:
            assert not disk.fired
        survivor = inside.killed() if isinstance(seed, str) else inside.after_power_loss(seed)
        if not disk.fired:
            assert stored_shares(survivor) == after, "an acknowledged change was lost"
            break
        _check_restart(step, survivor, before, after)
    else:
        pytest.fail("the step never came to its end")


@pytest.mark.parametrize(
    ("error", "names", "lasting"),
    [
        (errno.ENOSPC, GROWING | {"sync_file", "rename", "sync_directory"}, GROWING),
        (errno.EDQUOT, GROWING, GROWING),
        (errno.EIO, None, frozenset()),
    ],
    ids=["full", "quota", "io"],
)
def test_change_when_any_call_fails_is_refused_and_leaves_no_debris(
    change: tuple[Step, CrashDisk], error: int, names: frozenset[str] | None, lasting: frozenset[str]
) -> None:
    step, base = change
    before, after = stored_shares(base), _after(step, base)
    for count in range(10_000):
        inside = base.copied()
        disk = FaultyDisk(inside)
        scene = ServiceScene(disk)
        if names is None:
            disk.fail_in(count, error)
        else:
            disk.fail_in(count, error, names, lasting)
        refused = False
        try:
            scene.run(_taken(step, scene.service))
        except GridError:
            refused = True
        if not disk.fired:
            assert not refused
            assert stored_shares(inside) == after
            break
        assert inside.open_count == 0
        assert scene.service.reserved_size == 0
        disk.heal()
        if not refused:
            assert stored_shares(inside) == after, "an acknowledged change was not made"
        _check_shares(scene, inside, before, after)
        if not {"unlink", "remove_directory"} & set(disk.fired):
            assert files_below(inside, INCOMING) == []
        scene.run(_taken(step, scene.service))
        assert stored_shares(inside) == after
        _check_restart(step, inside.killed(), after, after)
    else:
        pytest.fail("the step never came to its end")


def _check_shares(scene: ServiceScene, disk: CrashDisk, before: State, after: State) -> None:
    """A read cleans up what could not be cleaned up at once."""
    for index in (FILE, SLOT):
        scene.run(scene.service.find_shares(index))
        scene.run(scene.service.read_slot(index, frozenset(), []))
    assert _one_of(stored_shares(disk), before, after)
