"""Memory that hostile directories of legal size take: the peak of a process that unpacks one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from grid.limits import KEPT_METADATA_BYTES

UNPACK = """
import resource, sys
from grid.codec.netstring import pack_netstring
from grid.directory.pack import pack_directory, parse_directory
def entry(name, metadata, read=b"URI:LIT:onwwc3dm"):
    return pack_netstring(b"".join(map(pack_netstring, (name, read, b"", metadata))))
data = {data}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
entries = parse_directory(data, mutable=True)
children = [found.child for found in entries.values() if found.child]
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(data), len(children), (after - before) * (1 if sys.platform == "darwin" else 1024))
"""
KIB, MIB = 2**10, 2**20


@pytest.mark.parametrize(
    ("data", "listed", "allowed"),
    [
        ("""entry(b"a", b'{"a": [' + b"[]," * 20_000_000 + b"0]}")""", 1, 2 * MIB),
        ("""entry(b"a", b"[" * 60_000_000)""", 1, 2 * MIB),
        ("""entry(b"a", b'{' + b'"0123456":0,' * 6_000_000 + b'"a": 0}')""", 1, 2 * MIB),
        ("""entry(b"a", b'{"a": ' + b"9" * 5_000_000 + b"}")""", 1, 2 * MIB),
        ("""entry(b"a" * 60_000_000, b"{}")""", 0, 2 * MIB),
        ("""entry(b"a", b"{}", b"x" * 60_000_000)""", 0, 2 * MIB),
        (
            """b"".join(entry(b"%d" % n, b'{"a": [' + b"[]," * 21_000 + b"0]}") for n in range(100))""",
            100,
            KEPT_METADATA_BYTES + 100 * 140 * KIB,
        ),
        (
            """b"".join(entry(b"%d" % n, b'{"a": {"linkcrtime": 1.5, "linkmotime": 1.5}}') for n in range(20_000))""",
            20_000,
            20_000 * 1700,
        ),
    ],
    ids=["lists", "nesting", "keys", "integer", "name", "capability", "many with much", "many"],
)
def test_directory_when_unpacked_then_takes_memory_by_its_bytes_and_entries(
    data: str, listed: int, allowed: int
) -> None:
    script = UNPACK.replace("{data}", data)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    _, found, grown = map(int, done.stdout.split())
    assert found == listed
    assert grown <= allowed
