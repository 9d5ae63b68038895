"""The rows of the target tables that long lines and faults have. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from attrs import evolve

from perf.campaigns.campaign import MB
from perf.reports.targets import Target, Wanted

KB = 1000
LINES = "Long lines: ten servers of 100 Mbit/s each, a client of 1 Gbit/s"
FAULTS = "Faults: ten servers, the same work without a fault beside it"
BEST = "tahoe's best"

ROUND_TRIPS = {"wan30": 0.03, "wan100": 0.1}
"""Seconds, by site."""

CLIENT, SERVER = 125 * MB, 12.5 * MB
"""Bytes per second of the client's line, and of each server's."""

SPREAD = 10 / 3
"""Bytes sent for each byte of a file put, 3-of-10."""

ADDED_S = 0.3
TIMES = 1.5


def line_rows() -> Iterator[Target]:
    """Every work of the campaign `wan` at 30 and 100 ms, and what single rows want besides."""
    for site, trip in ROUND_TRIPS.items():
        where = f"{trip * 1e3:.0f} ms"
        for what, wanted in _works():
            bar = 1.5 if wanted == _once("put", MB) else 1.0
            yield _row(f"{what}, {where}", evolve(wanted, site=site), bar, against=BEST)
        least = 10 * MB * SPREAD / CLIENT
        most = ceil((least + 4 * trip) * 1.1 * 100) / 100
        yield _row(
            f"CHK put, 10 MB, {where}: the line's {least:.2f} s, 4 round trips and 10 %",
            evolve(_once("put", 10 * MB), site=site),
            most,
            metric="seconds",
        )
    yield from _far()


def fault_rows() -> Iterator[Target]:
    """What servers may cost that are gone, silent, or send at 1 %."""
    for size in ("1 KB", "8 MB", "100 MB"):
        get = _faulty(f"get {size}", "cli", "7 gone")
        yield _fault_row(f"get of {size} from nothing running, seven servers gone", get, ADDED_S, "added seconds")
    for kind, words in (("silent", "silent"), ("slow", "that sends at 1 %")):
        for way, operations in (("gateway", ("get 8 MB", "put 8 MB", "put 3 KB")), ("cli", ("get 8 MB", "put 3 KB"))):
            for operation in operations:
                what = f"{operation}, {'gateway' if way == 'gateway' else 'one command'}, one server {words}"
                yield _fault_row(what, _faulty(operation, way, kind), TIMES, "time")


def _far() -> Iterator[Target]:
    """The rows of 100 ms alone."""
    for what, scenario in (("unread", "alacrity"), ("opened afresh", "range")):
        wanted = Wanted(scenario=scenario, size=50 * MB, length=1, k=3, n=10, site="wan100")
        yield _row(
            f"1 byte of 50 MB, {what}, 100 ms: 3 round trips", wanted, 3 * ROUND_TRIPS["wan100"], metric="seconds"
        )
    for format in ("chk", "mdmf"):
        yield _row(
            f"{format.upper()} put, 50 MB, 100 ms: part of the client's line",
            evolve(_once("put", 50 * MB, format), site="wan100"),
            0.93,
            metric="line",
            line_s=50 * MB * SPREAD / CLIENT,
        )
    yield _row(
        "CHK get, 50 MB, 100 ms: part of three servers' lines",
        evolve(_once("get", 50 * MB), site="wan100"),
        0.9,
        metric="line",
        line_s=50 * MB / (3 * SERVER),
    )


def _works() -> Iterator[tuple[str, Wanted]]:
    for size, words in ((10 * KB, "10 KB"), (MB, "1 MB"), (10 * MB, "10 MB"), (50 * MB, "50 MB")):
        for scenario in ("put", "get"):
            yield f"CHK {scenario}, {words}", _once(scenario, size)
    for length, words in ((1, "1 byte"), (MB, "1 MB")):
        yield f"{words} of 50 MB", Wanted(scenario="range", size=50 * MB, length=length, k=3, n=10)
    yield "1 byte of 50 MB, unread", Wanted(scenario="alacrity", size=50 * MB, length=1, k=3, n=10)
    for scenario in ("put", "get"):
        many = Wanted(scenario=scenario, size=10 * KB, count=40, concurrency=8, k=3, n=10)
        yield f"40 files of 10 KB, {scenario}, 8 at a time", many
        yield f"MDMF {scenario}, 50 MB", _once(scenario, 50 * MB, "mdmf")
    for scenario, what in (
        ("mkdir", "directories, one after the other"),
        ("add-each", "children, one after the other"),
        ("list", "listing"),
    ):
        yield what, Wanted(scenario=scenario, k=3, n=10)


def _once(scenario: str, size: int, format: str = "chk") -> Wanted:
    return Wanted(scenario=scenario, size=size, count=1, k=3, n=10, format=format)


def _faulty(operation: str, way: str, fault: str) -> Wanted:
    return Wanted(scenario=operation, way=way, fault=fault, client="")


def _row(what: str, wanted: Wanted, bar: float, **more: object) -> Target:
    return Target(table=LINES, what=what, wanted=wanted, bar=bar, **more)  # type: ignore[arg-type]


def _fault_row(what: str, wanted: Wanted, bar: float, metric: str) -> Target:
    basis = evolve(wanted, fault="none")
    return Target(table=FAULTS, what=what, wanted=wanted, bar=bar, metric=metric, against="ours", basis=basis)  # type: ignore[arg-type]
