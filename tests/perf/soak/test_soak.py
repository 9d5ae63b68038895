"""A short soak of a real grid; and that a soak notices faults."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

from perf.soak.soak import Outcome, SoakSettings, soak
from perf.soak.soak_client import ComparingSink
from perf.soak.soak_web import contents

KEY = b"k" * 16


def test_soak_when_servers_are_killed_and_restarted_finds_nothing_wrong(tmp_path: Path) -> None:
    record = io.StringIO()
    settings = SoakSettings(batches=30, load=10.0, seed=8, largest=3_000_000, hostile=8, settle_s=1.0)
    told: list[str] = []
    outcome = soak(settings, tmp_path, record, told.append)
    assert outcome.defects == []
    lines = [json.loads(line) for line in record.getvalue().splitlines()]
    kinds = Counter(line["what"] for line in lines)
    assert kinds["operation"] >= 30
    assert kinds["sample"] >= 10  # Of twelve processes, two may be away.
    assert kinds["kill"] == outcome.counts["kill"] > 0
    assert outcome.counts["restart"] > 0
    assert outcome.counts["mutable-create"] > 0
    assert sum(outcome.counts[what] for what in ("mutable-update", "mutable-overwrite")) > 0
    assert outcome.counts["mutable-read"] >= outcome.counts["mutable-create"]  # All are read in the end.
    assert {line["process"] for line in lines if line["what"] == "sample"} >= {"client", "introducer", "storage0"}
    assert list(tmp_path.iterdir()) == []
    text = str(outcome)
    assert "no defect" in text
    assert "0 failed operation, 0 wrong bytes, 0 lost write" in text
    assert any(line.startswith("storage0 rss: ") for line in outcome.figures)
    (hostile,) = [line for line in told if line.startswith("hostile connections: ")]
    assert "web_read_slowly" in hostile


async def compared(data: bytes, offset: int) -> ComparingSink:
    """A sink that was given those bytes in two pieces."""
    sink = ComparingSink(KEY, offset)
    await sink.write(data[:100])
    await sink.write(data[100:])
    return sink


async def test_sink_when_a_byte_is_wrong_says_where() -> None:
    data = bytearray(contents(KEY, 77, 300))
    right = await compared(bytes(data), 77)
    assert (right.wrong, right.end) == (None, 377)
    data[120] ^= 1
    assert (await compared(bytes(data), 77)).wrong == 177
    assert (await compared(bytes(contents(KEY, 77, 300)), 78)).wrong == 78


def test_outcome_when_there_are_defects_names_each() -> None:
    words: Any = str(Outcome(Counter(put=3), ["the sky fell", "the sea rose"]))
    assert words.splitlines() == [
        "3 put",
        "0 failed operation, 0 wrong bytes, 0 lost write",
        "DEFECT: the sky fell",
        "DEFECT: the sea rose",
    ]
