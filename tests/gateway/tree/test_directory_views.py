"""The JSON of directories in slices is the JSON of directories."""

from __future__ import annotations

import json

import pytest

from grid.caps import DirectoryCap, LitCap, SdmfWriteCap, UnknownChild
from grid.directory.node_json import describe_directory
from grid.directory.pack import Child
from grid.gateway.http.answers import Answer, json_answer
from grid.gateway.tree.directory_views import WHOLE_SIZE, listing_answer
from grid.runtime import SMALL_WORK
from tests.support.virtual_time import VirtualRuntime

CAP = DirectoryCap(SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32)))
TARGETS = (LitCap(data=b"some"), CAP, UnknownChild(read=b"ro.x"), UnknownChild())


class Collected:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))


@pytest.mark.parametrize("count", [0, 1, SMALL_WORK, SMALL_WORK + 1, 2 * SMALL_WORK, 3 * SMALL_WORK + 5, 12_000])
def test_listing_when_of_any_length_is_what_the_library_writes(count: int) -> None:
    children = {
        f'"{number}\n{{}}é': Child(target=TARGETS[number % 4], metadata={"{}": ["\n", {}, [], {"a": [number]}]})
        for number in range(count)
    }
    runtime = VirtualRuntime()
    warning = 'a newer "children": {} exists' if count % 2 else None
    answer = runtime.run(listing_answer(runtime.cpu, CAP, children, warning))
    whole = json_answer(describe_directory(CAP, children, warning))
    assert (answer.status, answer.content_type) == (200, whole.content_type)
    if isinstance(answer, Answer):
        assert answer.body == whole.body
        assert len(answer.body) < 2 * WHOLE_SIZE
    else:
        assert answer.size is None
        assert len(whole.body) > WHOLE_SIZE
        sink = Collected()
        runtime.run(answer.write(sink))  # type: ignore[arg-type]
        assert b"".join(sink.pieces) == whole.body
    assert len(json.loads(whole.body)[1]["children"]) == count
    assert len(runtime.cpu.calls) == (0 if count <= SMALL_WORK else -(-count // SMALL_WORK))


def test_listing_when_names_are_long_is_made_in_slices_of_a_size() -> None:
    children = {"x" * 60_000 + str(number): Child(target=TARGETS[0], metadata={}) for number in range(100)}
    runtime = VirtualRuntime()
    answer = runtime.run(listing_answer(runtime.cpu, CAP, children))
    assert not isinstance(answer, Answer)
    sink = Collected()
    runtime.run(answer.write(sink))  # type: ignore[arg-type]
    assert b"".join(sink.pieces) == json_answer(describe_directory(CAP, children)).body
    assert max(map(len, sink.pieces)) < 2**20 + 70_000
