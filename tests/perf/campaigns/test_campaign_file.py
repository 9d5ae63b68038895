"""Campaign files: what they contain, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from perf.campaigns.campaign import MB, Encoding, Load, campaign_from, plan_cells
from perf.campaigns.campaign_file import parse_campaign
from perf.campaigns.files import load, load_campaign, names
from perf.campaigns.labels import with_baselines
from perf.campaigns.smoke import smoke
from perf.campaigns.toml_file import CampaignError, parse_size
from perf.campaigns.workload import Workload
from perf.network.site import Site

GOOD = """
purpose = "a test"
systems = ["grid@http", "scp+cipher=aes128-ctr"]
encoding = ["3-of-10", "60-of-120 happy 5"]
segment = ["128 KiB", "1 MiB"]
topology = ["loopback", "wan30"]
medium = "ext4"
server-cpu = 0.25
format = "mdmf"
runs = 2

[primer]
operation = "mkdir"

[[work]]
operation = "put-get"
size = [1000, "1.5 MB"]

[[work]]
operation = "range"
format = "chk"
size = "1 MB"
length = 1
"""


def parse(text: str) -> object:
    return parse_campaign(text, "name", "some.toml")


def test_lists_in_a_file_multiply() -> None:
    campaign = parse_campaign(GOOD, "name", "some.toml")
    assert campaign.loads == (
        Load(size=1000, format="mdmf"),
        Load(size=1_500_000, format="mdmf"),
        Load(scenario="range", size=MB, length=1),
    )
    assert campaign.encodings == tuple(
        Encoding(needed=k, happy=happy, total=n, segment_size=segment)
        for k, happy, n in ((3, 7, 10), (60, 5, 120))
        for segment in (131072, 1048576)
    )
    assert campaign.sites == tuple(
        Site(topology=topology, medium="ext4", server_cpu=0.25) for topology in ("loopback", "wan30")
    )
    assert (campaign.name, campaign.runs, campaign.primer) == ("name", 2, Load(scenario="mkdir"))


def test_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CampaignError, match=f"{path}: this is no text in UTF-8"):
        load(str(path))


def test_smoke_test_of_a_baseline_has_the_baseline() -> None:
    campaign = load_campaign("put-get")
    systems = with_baselines(campaign.systems, "054f5b7")
    assert smoke(evolve(campaign, systems=systems)).systems == ("grid@foolscap", "grid@foolscap:054f5b7")


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('runs = 2', 'runz = 2', 10, "there is no key runz; there are "),
        ('runs = 2', 'runs = 0', 10, "runs cannot be 0; allowed: a whole number from 1 to 1000"),
        ('runs = 2', 'seed = -1', 10, "seed cannot be -1; allowed: a whole number from 0 to 1000000000"),
        ('runs = 2', 'runs = [1, 2]', 10, "allowed: one value"),
        ('"grid@http"', '"gird"', 3, "no system 'gird'"),
        ('"3-of-10"', '"11-of-10"', 4, "1 <= K <= N <= 256"),
        ('"3-of-10"', '"12-of-20 happy 11"', 4, "happy 11 needs as many servers, and there are 10"),
        ('"wan30"', '"existing"', 6, "belong together"),
        ('topology = ["loopback", "wan30"]', 'topology = "existing"\nnode = "x"', 4, "has its own encoding"),
        ('"wan30"', '"mars"', 6, "allowed: loopback, atlas"),
        ('size = "1 MB"', 'size = "1 mb"', 22, 'bytes, as 1000, "64 KiB" or "1 MB"'),
        ('length = 1', 'length = "2 MB"', 23, "range needs a length from 1 to the size, 1000000"),
        ('length = 1', 'runs = 1', 23, "runs belongs at the top of the file"),
        ('operation = "put-get"', 'operation = "overwrite"\nlength = 1\nformat = "chk"', 18, "chk files never change"),
        ('size = [1000, "1.5 MB"]', 'size = []', 17, "size cannot be []"),
        ('size = [1000, "1.5 MB"]', 'size = 1\nconcurrency = 2', 18, "there are only 1 files"),
        ('size = [1000, "1.5 MB"]', '', 15, "put-get needs a size"),
        ('runs = 2', 'runs = = 2', 10, "Invalid value"),
        ('operation = "mkdir"', 'operation = "mkdirs"', 13, "operation cannot be 'mkdirs'"),
        ('[[work]]', '[[works]]', 1, "there is no [[work]]"),
        ('purpose = "a test"', '', 1, "purpose is missing"),
        ('[primer]', '[[primer]]', 12, "primer is one table, [primer]"),
        ('operation = "mkdir"', 'operation = "mkdir"\ncount = [1, 2]', 12, "is one load, without lists: not 2"),
        ('operation = "mkdir"', 'operation = "mkdir"\nformat = "sdmf"', 14, "mkdir has no format: leave it out"),
        ('length = 1', 'length = 1\ncount = 3', 24, "range has no count: leave it out, or take put-get, mkdir"),
        ('length = 1', 'length = 1\nconcurrency = 3', 24, "range has no concurrency"),
        ('segment = ["128 KiB", "1 MiB"]', 'segment = 0', 5, "segment cannot be 0; allowed: bytes, 1 or more"),
        ('topology = ["loopback", "wan30"]', 'topology = "machines"', 7, "leave medium out"),
        ('topology = ["loopback", "wan30"]\nmedium = "ext4"', 'topology = "machines"', 7, "leave server-cpu out"),
        ('runs = 2', 'seconds = 2', 10, "no operation of this campaign uses seconds"),
        ('length = 1', 'length = 1\n[[work]]\noperation = "list"\ncache = "cold"', 26, "list has no cache"),
        ('operation = "put-get"', 'operation = "put-get"\nfrom = "start"', 17, "put-get has no from: leave it out, or take range"),
        ('length = 1', 'length = 1\nfrom = "end"', 24, "from cannot be 'end'; allowed: random, start or middle"),
    ],
)  # fmt: skip
def test_error_names_the_file_the_line_and_what_is_allowed(old: str, new: str, line: int, says: str) -> None:
    text = GOOD.replace(old, new)
    with pytest.raises(CampaignError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"some.toml:{line}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("work", "line", "says"),
    [
        ("work = [1]", 4, "work is a table, [[work]]: it cannot be 1"),
        ("primer = 3\n[[work]]\nsize = 1", 4, "primer is one table, [primer]: it cannot be 3"),
        ("happy = 11\nk = 3\nN = 20\n[[work]]\nsize = 1", 4, "happy 11 needs as many servers"),
        ("k = 3\nservers = 6\n[[work]]\nsize = 1", 4, "happy 7 needs as many servers"),
        ("servers = 6\n[[work]]\nsize = 1", 4, "happy 7 needs as many servers"),
        ("topology = 'existing'\nnode = 'x'\nserver-cpu = 0.5\n[[work]]\nsize = 1", 6, "leave server-cpu out"),
        ("topology = 'existing'\nnode = 'x'\naes = false\n[[work]]\nsize = 1", 6, "leave aes out"),
        ("topology = 'machines'\n[[work]]\nsize = 1\ncache = 'cold'", 7, "machines, cache is warm"),
        ("medium = ['ext4', 'tmpfs']\ncache = 'cold'\n[[work]]\nsize = 1", 5, "loopback, on tmpfs, cache is warm"),
    ],
)
def test_what_cannot_be_measured_is_refused_where_it_stands(work: str, line: int, says: str) -> None:
    with pytest.raises(CampaignError) as caught:
        parse(f'purpose = "a test"\nsystems = "grid"\n\n{work}\n')
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"some.toml:{line}: ")


def test_factor_at_the_top_is_for_the_operations_that_have_it() -> None:
    text = (
        'purpose = "a test"\nsystems = "grid"\ncache = "cold"\ncount = 3\n[[work]]\noperation = ["list", "range"]\n{}'
    )
    with pytest.raises(CampaignError, match="range needs a length"):
        parse(text.format(""))
    campaign = parse_campaign(text.replace("cache", "size = 9\nlength = 1\ncache").format(""), "name", "some.toml")
    assert campaign.loads == (
        Load(scenario="list", count=3),
        Load(scenario="range", size=9, length=1, cache="cold"),
    )


def test_range_begins_at_random_or_where_the_file_says() -> None:
    text = GOOD.replace("length = 1", 'length = ["10 KB", "0.75 MB"]\nfrom = ["random", "start", "middle"]')
    ranges = [load for load in parse_campaign(text, "name", "some.toml").loads if load.scenario == "range"]

    found = [(load.length, load.origin, load.offset(0.5)) for load in ranges]

    assert found == [
        *((10_000, "random", 495_000), (10_000, "start", 0), (10_000, "middle", 500_000)),
        *((750_000, "random", 125_000), (750_000, "start", 0), (750_000, "middle", 250_000)),
    ]


WIDE = """
purpose = "a test"
systems = ["grid@http", "tahoe@foolscap"]
hedging = [true, false]
window = "4 MiB"
k = [3, 30]
N = 60

[[work]]
operation = "put-get"
sizes = "1000 to 9000, mean 4000"
count = 8
topology = "wan30"
warmups = 3

[[work]]
operation = "put-get"
size = 1000
"""


def test_toggles_of_the_engine_make_other_systems_of_every_grid() -> None:
    campaign = parse_campaign(WIDE, "name", "some.toml")
    assert campaign.systems == ("grid@http+window=4194304", "grid@http+unhedged+window=4194304", "tahoe@foolscap")
    plain = parse_campaign(WIDE.replace('window = "4 MiB"', "plain-reads = true\ncodec = 'zfec'"), "name", "some.toml")
    assert plain.systems[0] == "grid@http-plain+zfec"


def test_k_and_n_by_themselves_are_an_encoding() -> None:
    campaign = parse_campaign(WIDE, "name", "some.toml")
    assert [(one.needed, one.happy, one.total) for one in campaign.encodings] == [(3, 7, 60), (30, 7, 60)]


def test_work_at_one_topology_with_warmups_of_its_own_is_planned_there_only() -> None:
    campaign = parse_campaign(WIDE.replace("k =", "topology = ['loopback', 'wan30']\nk ="), "name", "some.toml")
    here, there = (plan_cells(campaign, 1, 0, site) for site in campaign.sites)
    assert {cell.load.spread for cell in here} == {""}
    spread = [cell for cell in there if cell.load.spread]
    of_each = len(campaign.systems) * len(campaign.encodings)
    assert sum(cell.warmup for cell in spread) == 3 * of_each
    assert sum(not cell.warmup for cell in spread) == campaign.repetitions * of_each
    sizes = spread[0].load.sizes(7)
    assert (min(sizes), max(sizes), sum(sizes)) == (1000, 9000, 8 * 4000)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("hedging = [true, false]", "hedging = 1", 4, "hedging cannot be 1; allowed: true or false"),
        ('window = "4 MiB"', "window = 0", 5, "a window is a number of bytes"),
        ("k = [3, 30]", "k = 61", 6, "cannot be more than N, 60"),
        ("k = [3, 30]", 'encoding = "3-of-10"', 7, "give either encoding, or k, N and happy"),
        ('"grid@http", ', "", 4, "no Grid is among the systems"),
        ('systems = ["grid@http", "tahoe@foolscap"]', 'systems = "grid@foolscap"\nplain-reads = true', 4, "needs grid@http"),
        ("count = 8", "count = 2", 11, "no 2 files have 1000 to 9000"),
        ("mean 4000", "mean 400", 11, "the mean lies between"),
        ("count = 8", "count = 8\nsize = 1", 11, "give size or sizes, not both"),
        ("warmups = 3", "warmups = [1, 2]", 14, "allowed: one value"),
        ("warmups = 3", "medium = 'tmpfs'", 14, "belongs at the top of the file"),
        ("k = ", "topology = 'atlas'\nk = ", 6, "a [[work]] is at wan30, which is not among these"),
        ("k = ", "clients = 'gateway'\nk = ", 6, "options of the engine reach the client warm only"),
    ],
)  # fmt: skip
def test_impossible_value_of_a_factor_is_refused_where_it_stands(old: str, new: str, line: int, says: str) -> None:
    with pytest.raises(CampaignError) as caught:
        parse(WIDE.replace(old, new))
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"some.toml:{line}: ")


@pytest.mark.parametrize(
    ("text", "size"),
    [(0, 0), (5, 5), ("7", 7), ("1 KiB", 1024), ("1.5 MB", 1_500_000), ("2GiB", 2**31), ("3 GB", 3 * 10**9)],
)
def test_size_with_a_unit_is_bytes(text: object, size: int) -> None:
    assert parse_size(text) == size


def test_file_that_is_missing_is_reported_with_those_that_exist() -> None:
    with pytest.raises(CampaignError, match=r"no campaign 'nothing' .* there are .*put-get"):
        load_campaign("nothing")


def test_campaign_of_the_user_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD)
    assert load_campaign(str(tmp_path / "mine.toml")).name == "mine"


@pytest.mark.parametrize("name", names())
def test_campaign_survives_a_record_and_is_short_as_a_smoke_test(name: str) -> None:
    from attrs import asdict

    campaign = load(name)
    if isinstance(campaign, Workload):
        return  # Has a smallest form in its own file: tests/perf/workloads.
    assert campaign_from(asdict(campaign)) == campaign
    short = smoke(campaign)
    assert len(short.systems) <= 2
    assert short.servers <= 4
    assert (short.runs, short.repetitions, short.warmups, len(short.sites)) == (1, 1, 0, 1)
    cells = len(short.systems) * len(short.clients) * len(short.encodings) * len(short.loads)
    assert cells * max(load.size * load.count for load in short.loads) <= 200 * MB
    assert {load.scenario for load in short.loads} == {load.scenario for load in campaign.loads}
    assert all(load.impossible is None for load in (*short.loads, *campaign.loads))
    assert all(encoding.happy <= short.servers for encoding in short.encodings)
