"""FURLs and NURLs from untrusted sources. [spec wire 1, 12]"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.limits import MAX_FURL_LENGTH, MAX_LOCATION_HINTS
from grid.wire.locators import Furl, Nurl, parse_furl, parse_nurl

TUB_ID = "tgo5lzcmhvdycmqpqu2stv4iicf4btvy"
SWISSNUM = "ovqwzyzafzz4i2yz5ocqmh3jpkctkw6r"
FURL = f"pb://{TUB_ID}@tcp:127.0.0.1:43110,tcp:example.org:1/{SWISSNUM}"
SPKI = "1WUX44xKjKdpGLohmFcBNuIRN-8rlv1Iij_7rQ-gkp8"
NURL = f"pb://{SPKI}@example.org:443/{SWISSNUM}#v=1"

BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def test_parse_furl_when_complete_then_gives_all_parts() -> None:
    furl = parse_furl(FURL)
    assert furl == Furl(tub_id=TUB_ID, hints=("tcp:127.0.0.1:43110", "tcp:example.org:1"), swissnum=SWISSNUM)
    assert furl.to_string() == FURL
    assert len(furl.node_id) == 20


def test_parse_furl_when_it_has_no_hints_then_is_accepted() -> None:
    assert parse_furl(f"pb://{TUB_ID}@/name").hints == ()


def test_parse_furl_when_the_tub_id_goes_on_then_takes_32_characters_as_lower_case() -> None:
    assert parse_furl(f"pb://{TUB_ID.upper()}extra@tcp:a:1/x").tub_id == TUB_ID


def test_parse_furl_when_the_name_has_a_slash_then_keeps_it() -> None:
    assert parse_furl(f"pb://{TUB_ID}@tcp:a:1/a/b").swissnum == "a/b"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pb://",
        f"pb://{TUB_ID}@tcp:a:1",
        f"pb://{TUB_ID}@tcp:a:1/",
        f"pb://{TUB_ID}/name",
        f"pb://@tcp:a:1/{SWISSNUM}",
        f"http://{TUB_ID}@tcp:a:1/x",
        f" {FURL}",
        f"{FURL}\n",
        f"pb://{TUB_ID[:31]}@tcp:a:1/x",
        f"pb://{TUB_ID[:31]}1@tcp:a:1/x",
        f"pb://{TUB_ID}@tcp:a:1,/x",
        f"pb://{TUB_ID}@,/x",
        f"pb://{TUB_ID}@tcp:a b:1/x",
        f"pb://{TUB_ID}@tcp:\x00:1/x",
        f"pb://{TUB_ID}@tcp:ä:1/x",
        f"pb://{TUB_ID}@tcp:a:1/x y",
        f"pb://{TUB_ID}@{','.join(['tcp:a:1'] * (MAX_LOCATION_HINTS + 1))}/x",
        f"pb://{TUB_ID}@tcp:a:1/{'x' * MAX_FURL_LENGTH}",
    ],
)
def test_parse_furl_when_malformed_then_refuses(text: str) -> None:
    with pytest.raises(FormatError):
        parse_furl(text)


def test_furl_when_shown_or_refused_then_keeps_the_swissnum_to_itself() -> None:
    assert SWISSNUM not in repr(parse_furl(FURL))
    with pytest.raises(FormatError) as caught:
        parse_furl(f"pb://short@tcp:a:1/{SWISSNUM}")
    assert SWISSNUM not in str(caught.value)


def test_parse_nurl_when_complete_then_gives_all_parts() -> None:
    nurl = parse_nurl(NURL)
    assert nurl == Nurl(spki_hash=SPKI, host="example.org", port=443, swissnum=SWISSNUM)
    assert nurl.to_string() == NURL
    assert SWISSNUM not in repr(nurl)


def test_parse_nurl_when_over_tor_then_says_so() -> None:
    text = NURL.replace("pb://", "pb+tor://").replace("example.org", "x.onion")
    assert parse_nurl(text).over_tor
    assert parse_nurl(text).to_string() == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        NURL.removesuffix("#v=1"),
        NURL.replace("#v=1", "#v=2"),
        NURL.replace("#v=1", "#"),
        NURL.replace(":443", ""),
        NURL.replace(":443", ":0"),
        NURL.replace(":443", ":65536"),
        NURL.replace(":443", ":0443"),
        NURL.replace(":443", ":x"),
        NURL.replace(":443", ":٣"),
        NURL.replace(SPKI, SPKI[1:]),
        NURL.replace(SPKI, SPKI[1:] + "="),
        NURL.replace("pb:", "http:"),
        NURL.replace("example.org", ""),
        NURL + "\n",
        NURL.replace(SWISSNUM, "x" * MAX_FURL_LENGTH),
    ],
)
def test_parse_nurl_when_malformed_then_refuses(text: str) -> None:
    with pytest.raises(FormatError):
        parse_nurl(text)


IMPOSSIBLE = ["a..b", ".a", "..", "x" * 64, f"{'x' * 64}.org", ".".join(["abc"] * 64), "[::g]", "1:2"]
POSSIBLE = ["a.b.", "x" * 63, "under_score.org", "[::1]", "127.0.0.1", "localhost", ".".join(["abc"] * 63)]


@pytest.mark.parametrize("host", IMPOSSIBLE)
def test_parsers_when_no_host_can_have_the_name_then_refuse(host: str) -> None:
    with pytest.raises(FormatError, match="host"):
        parse_nurl(NURL.replace("example.org", host))
    if host != "1:2":  # A hint of some other kind, then.
        with pytest.raises(FormatError, match="host"):
            parse_furl(FURL.replace("example.org", host))


@pytest.mark.parametrize("host", POSSIBLE)
def test_parsers_when_a_host_can_have_the_name_then_accept(host: str) -> None:
    assert parse_nurl(NURL.replace("example.org", host)).host == host
    assert host in parse_furl(FURL.replace("example.org", host)).hints[1]


def test_parse_furl_when_a_hint_is_not_of_the_kind_tcp_then_leaves_it_alone() -> None:
    assert parse_furl(f"pb://{TUB_ID}@tor:a..b:1,x:y..z/name").hints == ("tor:a..b:1", "x:y..z")


@given(st.text() | st.from_regex(r"pb://[^@]*@[^/]*/.*") | st.from_regex(r"pb(\+tor)?://.*@.*:.*/.*#v=1"))
def test_parsers_when_given_any_text_then_raise_nothing_but_format_error(text: str) -> None:
    for parse in (parse_furl, parse_nurl):
        with contextlib.suppress(FormatError):
            assert parse(text).to_string()


@given(
    st.text(BASE32, min_size=31, max_size=31).map(lambda text: text + "a"),
    st.lists(st.from_regex(r"[a-su-z]{1,5}:[a-z0-9:-]{1,20}", fullmatch=True), max_size=5),
    st.from_regex(r"[!-~]{1,40}", fullmatch=True),
)
def test_furl_when_packed_and_parsed_then_is_the_same(tub_id: str, hints: list[str], swissnum: str) -> None:
    furl = Furl(tub_id=tub_id, hints=tuple(hints), swissnum=swissnum)
    assert parse_furl(furl.to_string()) == furl
