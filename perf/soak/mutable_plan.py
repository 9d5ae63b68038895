"""The mutable part of a soak: files and directories, their acknowledged versions, and what reads may return. Pure.

A version of a file is its size and its layers, each the first `length` bytes of a key's keystream at an offset; one of
a directory is its children. A read may return the last acknowledged version, or one whose write is in progress or has
an unknown outcome; never an older one, and never a mixture.
"""

from __future__ import annotations

import random
from typing import Any, Literal

from attrs import define, field

Kind = Literal["sdmf", "mdmf", "directory"]
Version = dict[str, Any]
"""{"size", "layers": [[key in hex, offset, length], ...]} or {"children": {name: cap}}."""

KINDS: tuple[Kind, ...] = ("sdmf", "mdmf", "directory")
LARGEST = {"sdmf": 600_000, "mdmf": 4_000_000}
MOST = 24
"""Mutable objects in total; beyond that, existing ones are changed."""

MOST_LAYERS = 12
MOST_CHILDREN = 40
MEANWHILE = ("ConflictError", "NotEnoughSharesError")
"""Acceptable read errors while the object is being changed: there may briefly be too few shares of any version."""


@define
class Mutable:
    """One object. acknowledged: its version. unsure: versions whose writes are in progress or have failed."""

    number: int
    kind: Kind
    encoding: tuple[int, int, int]
    acknowledged: Version
    cap: str = field(default="", repr=False)
    unsure: list[Version] = field(factory=list)
    is_written: bool = False


class MutablePlan:
    """Draws operations on mutable objects, and checks their results."""

    def __init__(self, draw: random.Random, encodings: tuple[tuple[int, int, int], ...]) -> None:
        self._draw = draw
        self._encodings = encodings
        self._objects: dict[int, Mutable] = {}
        self._made = 0

    def operation(self, client: int) -> dict[str, Any]:
        """The next operation; no object is written twice in a batch."""
        ready = [each for each in self._objects.values() if each.cap]
        if not ready or (len(self._objects) < MOST and self._draw.random() < 0.15):
            return self._create(client)
        written = [each for each in ready if each.is_written]
        # Half of the operations beside a change read the object being changed.
        target = self._draw.choice(written if written and self._draw.random() < 0.5 else ready)
        if target.is_written or self._draw.random() < 0.5:
            return self._read(client, target)
        return self._change(client, target)

    def last_look(self, clients: int) -> list[dict[str, Any]]:
        """Full reads of every object by each client in turn, without caches."""
        ready = [each for each in self._objects.values() if each.cap]
        reads = [
            self._about("mutable-read", index % clients, each) | {"keep": False, "offset": 0, "length": None}
            for index, each in enumerate(ready)
        ]
        self.begin(reads)
        return reads

    def begin(self, batch: list[dict[str, Any]]) -> None:
        """Set the acceptable results of a batch's reads, now that all its writes are known."""
        for operation in batch:
            if operation["op"] == "mutable-read":
                target = self._objects[operation["object"]]
                operation["allowed"] = [target.acknowledged, *target.unsure]
                operation["contended"] = target.is_written

    def ended(self, operation: dict[str, Any], answer: dict[str, Any]) -> str | None:
        """Take the result of an operation; return what is wrong with it, or None."""
        failure = answer.get("wrong") or answer.get("error")
        if operation["op"] == "mutable-read":
            is_excused = operation["contended"] and str(answer.get("error", "")).startswith(MEANWHILE)
            return None if is_excused else failure
        target = self._objects[operation["object"]]
        target.is_written = False
        if operation["op"] == "mutable-create" and failure:
            del self._objects[target.number]
        elif operation["op"] == "mutable-create":
            target.cap = answer["cap"]
        elif not failure:
            target.acknowledged, target.unsure = operation["version"], []
        return failure

    def _create(self, client: int) -> dict[str, Any]:
        kind = self._draw.choice(KINDS)
        version: Version = {"children": {}} if kind == "directory" else self._fresh(kind)
        self._made += 1
        target = Mutable(self._made, kind, self._draw.choice(self._encodings), version)
        self._objects[target.number] = target
        return self._about("mutable-create", client, target) | {"version": version}

    def _read(self, client: int, target: Mutable) -> dict[str, Any]:
        about = self._about("mutable-read", client, target) | {"keep": self._draw.random() < 0.7}
        if target.kind == "directory" or self._draw.random() < 0.4:
            return about | {"offset": 0, "length": None}
        size = target.acknowledged["size"]
        return about | {"offset": self._draw.randrange(size + 1), "length": self._size(size)}

    def _change(self, client: int, target: Mutable) -> dict[str, Any]:
        target.is_written = True
        about = self._about("mutable-update", client, target) | {"keep": self._draw.random() < 0.7}
        if target.kind == "directory":
            children = dict(target.acknowledged["children"])
            name = f"child {self._draw.randrange(MOST_CHILDREN)}"
            to = None if name in children else f"URI:LIT:{''.join(self._draw.choices('abcdefgh', k=8))}"
            if to is None:
                del children[name]
            else:
                children[name] = to
            about |= {"name": name, "to": to, "version": {"children": children}}
        elif len(target.acknowledged["layers"]) >= MOST_LAYERS or target.unsure or self._draw.random() < 0.4:
            about |= {"op": "mutable-overwrite", "version": self._fresh(target.kind)}
        else:
            old = target.acknowledged
            offset = self._draw.choice((old["size"], self._draw.randrange(old["size"] + 1)))
            length = max(1, self._size(200_000))
            layer = [self._draw.randbytes(16).hex(), offset, length]
            size = max(old["size"], offset + length)
            about |= {"layer": layer, "version": {"size": size, "layers": [*old["layers"], layer]}}
        target.unsure.append(about["version"])
        return about

    def _fresh(self, kind: Kind) -> Version:
        size = self._size(LARGEST[kind])
        return {"size": size, "layers": [[self._draw.randbytes(16).hex(), 0, size]]}

    def _size(self, largest: int) -> int:
        return int((largest + 1) ** self._draw.random()) if self._draw.random() > 0.03 else 0

    def _about(self, op: str, client: int, target: Mutable) -> dict[str, Any]:
        return {
            "op": op,
            "client": client,
            "object": target.number,
            "kind": target.kind,
            "encoding": target.encoding,
            "cap": target.cap,
        }
