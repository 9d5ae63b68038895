"""Objects for recorded exchanges: every kind, some lost, some known to both gateways, some for each.

All of them are made through 1.20's gateway, so that none of it rests on what is compared.
"""

from __future__ import annotations

import json
import random
import urllib.parse
import urllib.request
from collections.abc import Mapping

from attrs import frozen

from grid.caps import UnknownCap, parse_cap
from grid.codec import base32
from perf.processes.clients import COMMAND_S, WebClient
from perf.processes.process_grid import ProcessGrid
from tests.support.exchanges import Alike

NEW_WRITE = "x-tahoe-future-test-writeable:write"
NEW_READ = "x-tahoe-future-test-read:read"
UNKNOWN = ["unknown", {"rw_uri": NEW_WRITE, "ro_uri": f"ro.{NEW_READ}"}]

CONTENTS = random.Random(1).randbytes(2000)
MUTABLE_CONTENTS = "contents of a mutable file, some of them"

FILES = 40
"""Links to one immutable file in every box, for exchanges to change: f0, f1, ..."""

FOLDERS = 6
"""Empty directories in every box: d0, d1, ..."""


@frozen
class Sides:
    """The capabilities by name: those that both gateways know, and separate ones of each, made alike."""

    shared: Mapping[str, str]
    theirs: Mapping[str, str]
    ours: Mapping[str, str]

    def caps(self, own: Mapping[str, str]) -> dict[str, str]:
        """All that an exchange with one side may name; `chk_index` is the storage index of `chk`."""
        chk = parse_cap(self.shared["chk"])
        assert not isinstance(chk, UnknownCap) and chk.storage_index is not None
        return {**self.shared, **own, "chk_index": base32.encode(chk.storage_index)}

    def alike(self, own: Mapping[str, str]) -> Alike:
        """To compare the answers about one side's objects with the other's."""
        known: set[str] = set()
        for text in self.shared.values():
            cap = parse_cap(text)
            if not isinstance(cap, UnknownCap):
                verifier = cap.verify_cap()
                known |= {text, cap.read_cap().to_string()} if cap.authority != "verify" else {text}
                known |= {verifier.to_string()} if verifier is not None else set()
                known |= {base32.encode(cap.storage_index)} if cap.storage_index is not None else set()
        return Alike(own, frozenset(known))


class Maker:
    """Objects made through a gateway."""

    def __init__(self, client: WebClient) -> None:
        self._url = client.url

    def ask(self, method: str, path: str, body: object = None) -> str:
        """The answer's text. body: bytes, or what becomes JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data=data, method=method)
        with urllib.request.urlopen(request, timeout=COMMAND_S) as answer:
            text: str = answer.read().decode()
        return text.strip()

    def file(self, contents: bytes, format: str = "chk") -> str:
        """A new file."""
        return self.ask("PUT", f"uri?format={format}", contents)

    def folder(self, children: Mapping[str, object], kind: str = "mkdir-with-children") -> str:
        """A new directory."""
        return self.ask("POST", f"uri?t={kind}", children)

    def reader(self, cap: str) -> str:
        """The read cap."""
        return self.ask("GET", f"uri/{urllib.parse.quote(cap, safe='')}?t=readonly-uri")


def make_sides(grid: ProcessGrid, client: WebClient) -> Sides:
    """Objects for both gateways, and twice the same for each alone."""
    maker = Maker(client)
    shared = _shared(maker)
    for name in ("lost", "lost_sdmf", "lost_box", "lost_frozen"):
        _lose(grid, shared[name], keep=0)
    for name in ("short", "hurt", "hurt_sdmf"):
        _lose(grid, shared[name], keep=1 if name == "short" else 2)
    theirs, ours = _own(maker, shared), _own(maker, shared)
    return Sides(shared, theirs, ours)


def _shared(maker: Maker) -> dict[str, str]:
    draw = random.Random(2)
    caps = {"chk": maker.file(CONTENTS), "lit": maker.file(b"small"), "empty": maker.file(b"")}
    for format in ("sdmf", "mdmf"):
        caps[format] = maker.file(MUTABLE_CONTENTS.encode(), format)
        caps[f"{format}_ro"] = maker.reader(caps[format])
    for name in ("lost", "short", "hurt"):
        caps[name] = maker.file(draw.randbytes(1000))
    caps["lost_sdmf"], caps["hurt_sdmf"] = (maker.file(draw.randbytes(100), "sdmf") for _ in range(2))
    links: dict[str, object] = {"a": read(caps["chk"]), "b": read(caps["lit"])}
    caps["small"] = maker.folder({}, "mkdir-immutable")
    caps["frozen"] = maker.folder(links, "mkdir-immutable")
    caps["lost_frozen"] = maker.folder({**links, "c": read(caps["chk"])}, "mkdir-immutable")
    caps["lost_box"] = maker.folder({"a": read(caps["chk"])})
    caps["sub"] = maker.folder({"file.html": read(caps["chk"]), "m": write(caps["mdmf"])})
    caps["tree"] = maker.folder(
        {
            "chk": ["filenode", {"ro_uri": caps["chk"], "metadata": {"kept": "ü"}}],
            "lit.txt": read(caps["lit"]),
            "sdmf": write(caps["sdmf"]),
            "mdmf-ro": read(caps["mdmf_ro"]),
            "frozen": folder(caps["frozen"]),
            "sub": ["dirnode", {"rw_uri": caps["sub"]}],
            "pic.tar.gz": read(caps["chk"]),
            "ü nknown": UNKNOWN,
        }
    )
    caps["grove"] = maker.folder(
        {
            "chk": read(caps["chk"]),
            "lit": read(caps["lit"]),
            "sdmf": write(caps["sdmf"]),
            "frozen": folder(caps["frozen"]),
        }
    )
    caps["tree_ro"] = maker.reader(caps["tree"])
    caps["ailing"] = maker.folder({"ok": read(caps["chk"]), "hurt": read(caps["hurt"]), "lost": read(caps["lost"])})
    caps["broken"] = maker.folder({"chk": read(caps["chk"]), "gone": ["dirnode", {"rw_uri": caps["lost_box"]}]})
    verifiers = {name: _verify_cap(caps[name]) for name in ("chk", "sdmf", "tree")}
    return caps | {f"{name}_verify": cap for name, cap in verifiers.items()} | {"unknown": "x-tahoe-future:thing"}


def _own(maker: Maker, shared: Mapping[str, str]) -> dict[str, str]:
    own = {name: maker.file(MUTABLE_CONTENTS.encode(), name[-4:]) for name in ("own_sdmf", "own_mdmf", "kid_sdmf")}
    own["kid_ro"] = maker.reader(own["kid_sdmf"])
    folders = {f"d{index}": ["dirnode", {"rw_uri": maker.folder({})}] for index in range(FOLDERS)}
    files = {f"f{index}": read(shared["chk"]) for index in range(FILES)}
    own["other"] = maker.folder({"there": read(shared["lit"])})
    own["box"] = maker.folder({**folders, **files, "mutable": write(own["kid_sdmf"]), "reader": read(own["kid_ro"])})
    own["box_ro"] = maker.reader(own["box"])
    return own


def read(cap: str) -> list[object]:
    """A file's entry in CHILDREN."""
    return ["filenode", {"ro_uri": cap}]


def write(cap: str) -> list[object]:
    """A mutable file's."""
    return ["filenode", {"rw_uri": cap}]


def folder(cap: str) -> list[object]:
    """An immutable directory's."""
    return ["dirnode", {"ro_uri": cap}]


def _verify_cap(text: str) -> str:
    cap = parse_cap(text)
    assert not isinstance(cap, UnknownCap)
    verifier = cap.verify_cap()
    assert verifier is not None
    return verifier.to_string()


def _lose(grid: ProcessGrid, text: str, keep: int) -> None:
    cap = parse_cap(text)
    assert not isinstance(cap, UnknownCap) and cap.storage_index is not None
    found = grid.shares(base32.encode(cap.storage_index))
    assert found
    for number in sorted(found)[keep:]:
        for path in found[number]:
            path.unlink()
