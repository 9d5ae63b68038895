"""The JSON of directories in slices is the JSON of directories."""

from __future__ import annotations

import json

import pytest

from grid.caps import DirectoryCap, LitCap, SdmfWriteCap, UnknownChild
from grid.directory.node_json import describe_directory
from grid.directory.pack import Child
from grid.gateway.http.answers import Answer, json_answer
from grid.gateway.tree.directory_views import WHOLE, listing_answer
from grid.runtime import SMALL_WORK
from tests.support.virtual_time import VirtualRuntime

CAP = DirectoryCap(SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32)))
TARGETS = (LitCap(data=b"some"), CAP, UnknownChild(read=b"ro.x"), UnknownChild())


class Collected:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))


@pytest.mark.parametrize("count", [0, 1, SMALL_WORK, SMALL_WORK + 1, 2 * SMALL_WORK, 3 * SMALL_WORK + 5, WHOLE + 1])
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
        assert count <= WHOLE
    else:
        assert answer.size is None
        sink = Collected()
        runtime.run(answer.write(sink))  # type: ignore[arg-type]
        assert b"".join(sink.pieces) == whole.body
    assert len(json.loads(whole.body)[1]["children"]) == count
    assert len(runtime.cpu.calls) == (0 if count <= SMALL_WORK else -(-count // SMALL_WORK))
