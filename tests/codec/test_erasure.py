"""The erasure code: both engines make zfec's blocks, for any k, N, sizes and buffers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import zfec
from hypothesis import example, given
from hypothesis import strategies as st

from grid.codec import erasure as erasure_module
from grid.codec.erasure import Erasure, IsalErasure, ZfecErasure, codec_name, erasure, primary_blocks, use_zfec
from grid.codec.isal import IsalLibrary, MatrixTables, load_isal
from tests.vectors.make_codec import PATH, stream

ROWS: list[dict[str, Any]] = json.loads(PATH.read_text())["erasure"]

Maker = Callable[[int, int], Erasure]


def isal(k: int, n: int) -> Erasure:
    return IsalErasure(next(load_isal()), k, n)


MAKERS: list[Maker] = [isal, ZfecErasure, erasure]
any_maker = pytest.mark.parametrize("make", MAKERS, ids=["isal", "zfec", "chosen"])
parameters = st.integers(1, 256).flatmap(lambda k: st.tuples(st.just(k), st.integers(k, 256)))
sizes = st.one_of(st.integers(0, 70), st.sampled_from([127, 128, 129, 255, 257, 1023]))


def room(count: int, size: int) -> list[memoryview]:
    return [memoryview(bytearray(size)) for _ in range(count)]


def sound(made: list[memoryview]) -> list[bytes]:
    return [bytes(block) for block in made]


def zfec_blocks(runs: list[bytes], n: int) -> list[bytes]:
    return list(zfec.Encoder(len(runs), n).encode(tuple(runs), tuple(range(n))))


@any_maker
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['k']}-of-{row['n']}")
def test_encode_when_known_makes_the_blocks_of_the_vectors(make: Maker, row: dict[str, Any]) -> None:
    runs = [bytes.fromhex(run) for run in row["runs"]]
    parity = room(row["n"] - row["k"], len(runs[0]))
    make(row["k"], row["n"]).encode_into(runs, parity)
    assert [block.hex() for block in parity] == row["parity"]


@given(parameters, sizes, st.randoms(use_true_random=False))
@example((1, 1), 0, random.Random(1))
@example((1, 256), 1, random.Random(1))
@example((256, 256), 17, random.Random(1))
@example((255, 256), 64, random.Random(1))
@example((128, 256), 33, random.Random(1))
def test_code_when_blocks_are_lost_gives_the_runs_back(
    k_of_n: tuple[int, int], size: int, chance: random.Random
) -> None:
    k, n = k_of_n
    runs = [chance.randbytes(size) for _ in range(k)]
    expected = zfec_blocks(runs, n)
    numbers = chance.sample(range(n), k)
    lost = [number for number in range(k) if number not in numbers]
    for make in MAKERS:
        coder = make(k, n)
        parity, missing = room(n - k, size), room(len(lost), size)
        coder.encode_into(runs, parity)
        assert runs + sound(parity) == expected
        coder.decode_into([expected[number] for number in numbers], numbers, missing)
        assert sound(missing) == [runs[number] for number in lost]


@any_maker
@pytest.mark.parametrize(("k", "n"), [(1, 2), (3, 10), (8, 11), (20, 60)])
def test_code_when_blocks_have_any_size_touches_nothing_beside_them(make: Maker, k: int, n: int) -> None:
    coder = make(k, n)
    for size in (*range(131), 255, 256, 257, 511, 513):
        runs = [stream(f"{j}", size) for j in range(k)]
        area = bytearray(b"\xa5" * ((size + 32) * (n - k) + 32))
        view = memoryview(area)
        starts = range(32, len(area) - 1, size + 32)
        coder.encode_into(runs, [view[start : start + size] for start in starts])
        expected = b"\xa5" * 32 + b"".join(block + b"\xa5" * 32 for block in zfec_blocks(runs, n)[k:])
        assert area == expected


@any_maker
def test_code_when_buffers_are_of_every_kind_takes_them(make: Maker) -> None:
    runs = [stream(f"{j}", 100) for j in range(3)]
    expected = zfec_blocks(runs, 5)
    whole = b"--" + b"".join(runs) + b"--"
    locked = bytearray(whole)
    views: list[list[bytes | bytearray | memoryview]] = [
        [*runs],
        [bytearray(run) for run in runs],
        [memoryview(run) for run in runs],
        [memoryview(whole)[2 + 100 * j :][:100] for j in range(3)],
        [memoryview(locked).toreadonly()[2 + 100 * j :][:100] for j in range(3)],
        [runs[0], bytearray(runs[1]), memoryview(whole)[202:302]],
    ]
    coder = make(3, 5)
    for form in views:
        parity, missing = room(2, 100), room(2, 100)
        coder.encode_into(form, parity)
        assert sound(parity) == expected[3:]
        coder.decode_into([parity[1].toreadonly(), bytearray(parity[0]), form[1]], [4, 3, 1], missing)
        assert sound(missing) == [runs[0], runs[2]]


@any_maker
def test_decode_when_only_some_are_missing_fills_those(make: Maker) -> None:
    runs = [stream(f"{j}", 50) for j in range(4)]
    blocks = zfec_blocks(runs, 9)
    coder = make(4, 9)
    coder.decode_into(blocks[:4], [0, 1, 2, 3], [])
    coder.decode_into([blocks[2], blocks[0], blocks[3], blocks[1]], [2, 0, 3, 1], [])
    missing = room(1, 50)
    coder.decode_into([blocks[8], blocks[0], blocks[3], blocks[1]], [8, 0, 3, 1], missing)
    assert sound(missing) == [runs[2]]


@any_maker
def test_code_when_arguments_do_not_fit_refuses(make: Maker) -> None:
    coder = make(3, 5)
    runs, parity = room(3, 8), room(2, 8)
    wrong_encodes: list[tuple[list[memoryview], list[memoryview]]] = [
        (runs[:2], parity),
        ([*runs, *runs], parity),
        (runs, parity[:1]),
        (runs, [*parity, *parity]),
        ([*runs[:2], memoryview(bytes(7))], parity),
        (runs, [parity[0], memoryview(bytearray(9))]),
    ]
    for bad_runs, bad_parity in wrong_encodes:
        with pytest.raises(ValueError, match="block"):
            coder.encode_into(bad_runs, bad_parity)
    for numbers in ([0, 1], [0, 1, 1], [0, 1, 5], [-1, 0, 1], [0, 1, 2, 3]):
        with pytest.raises(ValueError, match="different shares"):
            coder.decode_into(runs, numbers, parity)
    for blocks, missing in ((runs[:2], parity), (runs, parity[:1]), (runs, room(2, 7))):
        with pytest.raises(ValueError, match="block"):
            coder.decode_into(blocks, [2, 3, 4], missing)


@any_maker
def test_encode_when_a_target_cannot_be_written_raises_and_keeps_it(make: Maker) -> None:
    target = bytes(8)
    with pytest.raises((TypeError, ValueError, BufferError)):
        make(1, 2).encode_into([b"abcdefgh"], [memoryview(target)])
    assert target == bytes(8)


def test_erasure_when_there_is_no_such_code_refuses() -> None:
    for k, n in ((0, 1), (2, 1), (-1, 3), (1, 257), (257, 257)):
        with pytest.raises(ValueError, match="erasure code"):
            erasure(k, n)


def test_erasure_when_asked_again_is_the_same_coder() -> None:
    assert erasure(3, 10) is erasure(3, 10)
    assert (erasure(3, 10).k, erasure(3, 10).n) == (3, 10)


def test_codec_name_when_isal_is_installed_is_isal() -> None:
    assert codec_name() == "isal"
    assert isinstance(erasure(3, 10), IsalErasure)


@any_maker
def test_code_when_used_by_many_threads_gives_each_its_blocks(make: Maker) -> None:
    coder = make(5, 12)

    def work(seed: int) -> bool:
        runs = [stream(f"{seed} {j}", 4001) for j in range(5)]
        parity, missing = room(7, 4001), room(5, 4001)
        coder.encode_into(runs, parity)
        coder.decode_into(parity[:5], range(5, 10), missing)
        return sound(missing) == runs and sound(parity) == zfec_blocks(runs, 12)[5:]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))


class LyingLibrary(IsalLibrary):
    """Gets the last byte of every product wrong."""

    def multiply(self, size: int, matrix: MatrixTables, sources: Any, targets: Any) -> None:
        super().multiply(size, matrix, sources, targets)
        for target in targets:
            target[-1] ^= 1


def test_engine_when_a_library_disagrees_with_zfec_passes_it_over(monkeypatch: pytest.MonkeyPatch) -> None:
    sane = next(load_isal())
    lying = LyingLibrary(sane.path)
    choose = erasure_module._engine.__wrapped__
    for libraries, chosen in (([], None), ([lying], None), ([lying, sane], sane), ([sane, lying], sane)):
        monkeypatch.setattr(erasure_module, "load_isal", lambda libraries=libraries: iter(libraries))
        assert choose() is chosen


def test_erasure_when_there_is_no_isal_is_zfecs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure_module, "_engine", lambda: None)
    assert codec_name() == "zfec"
    assert isinstance(erasure.__wrapped__(3, 10), ZfecErasure)


def test_codec_when_told_to_use_zfec_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure_module, "_passed_over", set())
    try:
        use_zfec()
        assert codec_name() == "zfec"
        assert isinstance(erasure(3, 10), ZfecErasure)
    finally:
        erasure_module._passed_over.clear()
        erasure_module._engine.cache_clear()
        erasure.cache_clear()
    assert codec_name() == "isal"


@given(parameters, sizes, st.randoms(use_true_random=False))
def test_primary_blocks_when_any_k_are_there_are_the_runs(
    parameters: tuple[int, int], size: int, source: random.Random
) -> None:
    k, n = parameters
    runs = [source.randbytes(size) for _ in range(k)]
    blocks = [*runs, *zfec_blocks(runs, n)[k:]]
    numbers = source.sample(range(n), k)
    assert sound(primary_blocks(k, n, {number: memoryview(blocks[number]) for number in numbers})) == runs


def test_primary_blocks_when_all_are_there_are_the_very_same() -> None:
    blocks = {1: memoryview(b"b"), 0: memoryview(b"a")}
    assert [id(block) for block in primary_blocks(2, 5, blocks)] == [id(blocks[0]), id(blocks[1])]


def test_primary_blocks_when_there_are_not_k_is_an_error() -> None:
    with pytest.raises(ValueError):
        primary_blocks(2, 5, {4: memoryview(b"a")})


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 200), st.integers(1, 9000))
def test_zfec_when_it_takes_strips_makes_the_same_blocks(k: int, more: int, size: int, data: int) -> None:
    runs = [bytes((7 * run + 3 * place) % 251 for place in range(size)) for run in range(k)]
    coder, n = ZfecErasure(k, k + more), k + more
    parity, missing = room(more, size), room(min(k, more), size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erasure_module, "_ZFEC_BYTES", data)
        coder.encode_into(runs, parity)
        blocks = [*runs, *sound(parity)]
        coder.decode_into(blocks[-k:], list(range(n))[-k:], missing)
    assert blocks == zfec_blocks(runs, n)
    assert sound(missing) == runs[: min(k, more)]
