"""What limits a transfer, from samples of both sides with known answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from perf.records.record import Record, Sample
from perf.reports.markdown import found_section
from perf.reports.page import page
from perf.reports.panels import draw_sides
from perf.reports.sides import Sides, has_sides, overview_of_sides, sides_of
from tests.perf.samples import HEADER, sample

SITE = "slow-server, servers at 10% of a core"


def limited(
    client: tuple[float, float],
    servers: tuple[float, float],
    site: str = SITE,
    system: str = "grid@http",
    disk: float = 0.0,
) -> Sample:
    """A put of 100 MB in a second, with ten servers of which two work.

    client, servers: user and system seconds.
    """
    return evolve(
        sample(system, seconds=1.0),
        factors={"k": 3, "n": 10, "size": 10**8, "site": site},
        pressure={"io": disk},
        client_user_s=client[0],
        client_system_s=client[1],
        server_user_s=servers[0],
        server_system_s=servers[1],
        members={"client": {"user_s": 9.0}}
        | {f"server{number}": {"user_s": 0.05 if number < 2 else 0.01, "system_s": 0.0} for number in range(10)},
    )


def record(*samples: Sample) -> Record:
    return Record(evolve(HEADER, campaign="slow-server", systems=("grid@http", "tahoe@foolscap")), samples)


def only(made: Sample) -> Sides:
    (found,) = sides_of(record(made))
    return found


@pytest.mark.parametrize(
    ("client", "servers", "bottleneck"),
    [
        ((0.2, 0.1), (0.15, 0.04), "the servers' processor, mostly user seconds"),
        ((0.3, 0.6), (0.05, 0.05), "the client's processor, mostly system seconds"),
        ((0.3, 0.2), (0.05, 0.05), "both sides in turn, neither at its limit alone"),
        ((0.1, 0.1), (0.03, 0.03), ""),
    ],
)
def test_bottleneck_is_the_side_that_uses_what_it_may(
    client: tuple[float, float], servers: tuple[float, float], bottleneck: str
) -> None:
    assert only(limited(client, servers)).bottleneck == bottleneck


def test_bottleneck_can_be_the_machine_that_both_share_or_the_disk() -> None:
    shared = only(limited((0.7, 0.0), (0.9, 0.1), site="slow-server, servers at 90% of a core"))
    assert shared.bottleneck == "the machine, whose 2 cores are busy, mostly user seconds"
    assert only(limited((0.1, 0.1), (0.0, 0.0), disk=0.7)).bottleneck == "the disk"


def test_ceiling_is_bytes_by_system_seconds_for_the_part_of_a_core_that_a_side_may_use() -> None:
    found = only(limited((0.2, 0.25), (0.1, 0.05)))
    assert found.client.cores == 1
    assert found.servers.cores == pytest.approx(0.2)
    assert found.client.ceiling(10**8) == 400
    assert found.servers.ceiling(10**8) == pytest.approx(400)
    assert only(limited((0.2, 0.0), (0.1, 0.05))).client.ceiling(10**8) is None


def test_side_may_use_no_more_than_the_machine_has() -> None:
    crowd = only(limited((1.0, 0.5), (0.1, 0.1), site="loopback, servers at 100% of a core"))
    assert (crowd.client.cores, crowd.servers.cores) == (2.0, 2.0)
    assert only(limited((0.5, 0.5), (0.1, 0.1))).client.cores == 1.0


def test_sentence_names_the_bottleneck_of_each_system_and_the_ceilings() -> None:
    quick, slow = limited((0.2, 0.25), (0.15, 0.05)), limited((0.3, 0.5), (0.1, 0.02), system="tahoe@foolscap")
    (text,) = overview_of_sides(sides_of(record(slow, quick)))
    assert (
        "the bottleneck is the servers' processor, mostly user seconds (grid@http); the bottleneck is the client's"
        in text
    )
    assert "ceiling of the client (bytes / system seconds) 200 to 400 MB/s" in text
    assert f"## Both sides, and the bottleneck\n\n- {text}\n" in found_section(record(slow, quick))


def test_record_without_limits_or_ciphers_has_no_bars() -> None:
    plain = sample("grid@http")
    assert not has_sides(record(plain))
    assert has_sides(record(limited((0.1, 0.1), (0.1, 0.1))))
    assert has_sides(evolve(record(plain), header=evolve(HEADER, systems=("scp+cipher=aes128-ctr",))))


def test_page_has_bars_of_both_sides_as_text_that_takes_the_colors_of_the_page(tmp_path: Path) -> None:
    text = page([record(limited((0.2, 0.25), (0.15, 0.05)))])
    assert "the bottleneck is the servers&#x27; processor" in text
    assert "servers system</text>" in text
    assert "#000000" not in text
    draw_sides(sides_of(record(limited((0.2, 0.25), (0.15, 0.05)))), tmp_path / "bars.svg")
    assert "ceiling 400 MB/s" in (tmp_path / "bars.svg").read_text()
