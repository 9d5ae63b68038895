"""Grid beside programs that people know: the seconds of each set of files in the record of `size-count`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from perf.records.record import Record
from perf.reports.markdown import table
from perf.sampling.environment import commit_of, day_of
from perf.sampling.statistics import median

CAMPAIGN = "size-count"
PROGRAMS = {
    "grid@http/gateway": "Grid, gateway",
    "grid@http/transfer": "Grid, `transfer`",
    "grid@http/transfer-pack": "Grid, `transfer --pack`",
    "tahoe@foolscap/gateway": "Tahoe-LAFS 1.20",
    "rclone@versitygw": "rclone",
    "rclone@versitygw+crypt": "rclone, encrypting",
    "s5cmd@versitygw": "s5cmd",
    "scp": "scp",
    "restic": "restic",
    "cp": "cp",
}
"""Systems of the record that have a column, and its title."""

TITLE = "### Beside other programs"
HOW = (
    "Grid and Tahoe-LAFS encrypt, and store 3.33 bytes for each byte on ten servers, any seven of which may fail; Grid "
    "syncs them before a put returns. The others store 1 byte in one place, whose failure loses it: rclone and s5cmd on "
    "an S3 server (versitygw), scp on an SSH server, restic and cp in a folder. Of these, only restic syncs, and only "
    "restic and encrypting rclone hide files from where they store them. Equal chunks, and what can be compressed, take "
    "less space in restic."
)


@frozen(order=True)
class _Set:
    """A set of files, and its direction: a row."""

    size: int
    count: int
    scenario: str

    @property
    def label(self) -> str:
        """What is done with the set, and the unit."""
        files = "1 file" if self.count == 1 else f"{self.count:,} files"
        return f"{self.scenario} {files} of {_bytes(self.size // self.count)}, s"


def beside_others(records: Sequence[Record]) -> list[str]:
    """The lines about Grid beside other programs; none without a record that has Grid and another one."""
    for record in records:
        if record.header.campaign == CAMPAIGN and (lines := _table(record)):
            return [TITLE, "", _origin(record), "", *lines, "", HOW, ""]
    return []


def _table(record: Record) -> list[str]:
    known: dict[_Set, dict[str, list[float]]] = {}
    for row, system, seconds in _times(record):
        known.setdefault(row, {}).setdefault(system, []).append(seconds)
    shown = [name for name in PROGRAMS if any(name in times for times in known.values())]
    if not any(name.startswith("grid@") for name in shown) or len(shown) < 2:
        return []
    rows = [
        [row.label, *(_seconds(known[row].get(name, [])) for name in shown)]
        for row in sorted(known, key=lambda one: (one.size // one.count, one.count, one.scenario == "get"))
    ]
    return table(["work", *(PROGRAMS[name] for name in shown)], rows)


def _times(record: Record) -> Iterator[tuple[_Set, str, float]]:
    for sample in record.measured():
        if sample.scenario in ("put", "get") and sample.system in PROGRAMS and sample.seconds is not None:
            yield _Set(sample.size, sample.count, sample.scenario), sample.system, sample.seconds


def _origin(record: Record) -> str:
    """What the numbers are, and where they come from."""
    environment = record.header.environment
    runs = len({sample.run for sample in record.measured()})
    known = "one run, so differences may be chance" if runs == 1 else f"medians of {runs} runs"
    return (
        "How long each program takes to put a set of files, and to get it back, in seconds: everything on one machine, "
        f"over loopback (campaign `{CAMPAIGN}`, {day_of(environment)}, commit {commit_of(environment)}, {known}). "
        "Fewer are better."
    )


def _seconds(times: Sequence[float]) -> str:
    """The median with two digits, or as many as its integer has."""
    if not times:
        return "-"
    middle = median(times)
    return f"{middle:.0f}" if middle >= 9.95 else f"{middle:.1f}" if middle >= 0.995 else f"{middle:.2f}"


def _bytes(size: int) -> str:
    for unit, bytes_of in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= bytes_of:
            return f"{size / bytes_of:g} {unit}"
    return f"{size} B"
