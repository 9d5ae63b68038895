"""The JSON of a directory with its children, rendered in slices. [spec webapi 8]

It owns how many children are worked on in one go: a directory may have a million, and everybody waits meanwhile.
Written by the library in one call, their JSON would be a list of tokens forty times as many.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice

from grid.caps import DirectoryCap
from grid.directory.node_json import describe_child, describe_directory
from grid.directory.pack import Child
from grid.gateway.http.answers import Answer, AnyAnswer, StreamedAnswer, json_answer
from grid.ports import CpuPool, Sink
from grid.runtime import SMALL_WORK

WHOLE = 8192
"""Children whose JSON is answered at once, with its length: some megabytes."""

_TYPE = "text/plain"


async def listing_answer(
    cpu: CpuPool, cap: DirectoryCap, children: Mapping[str, Child], warning: str | None = None
) -> AnyAnswer:
    """The answer to `t=json`: the same bytes, however many children there are. warning: what its user should know."""
    if len(children) <= SMALL_WORK:
        return json_answer(describe_directory(cap, children, warning))

    async def write(sink: Sink) -> None:
        """Slice by slice, as they are taken."""
        head, tail = _frame(cap, warning)
        await sink.write(head)
        items = iter(children.items())
        before = b""
        while piece := list(islice(items, SMALL_WORK)):
            await sink.write(before + await cpu.run(_render, piece))
            before = b",\n   "
        await sink.write(tail)

    if len(children) > WHOLE:
        return StreamedAnswer(200, _TYPE, None, (), write)
    gathered = _Gathered()
    await write(gathered)
    return gathered.answer()


class _Gathered:
    """A sink that becomes an answer."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep it."""
        self._pieces.append(bytes(data))

    def answer(self) -> AnyAnswer:
        """All of it."""
        return Answer(200, _TYPE, b"".join(self._pieces))


def _frame(cap: DirectoryCap, warning: str | None) -> tuple[bytes, bytes]:
    """What stands before the first child and behind the last."""
    # No text in it has this: a quotation mark inside one has a backslash before it.
    children = b'"children": {'
    head, found, tail = json_answer(describe_directory(cap, {}, warning)).body.partition(children + b"}")
    assert found
    return head + children + b"\n   ", b"\n  }" + tail


def _render(piece: Sequence[tuple[str, Child]]) -> bytes:
    """Some children, as they stand three levels down."""
    return ",\n   ".join(f"{json.dumps(name)}: {_render_child(child)}" for name, child in piece).encode("ascii")


def _render_child(child: Child) -> str:
    # A line feed inside a string is written as two other characters, so that these are all between values.
    return json.dumps(describe_child(child), indent=1).replace("\n", "\n   ")
