"""Sizes, durations, days and truth values of configuration files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.node.quantities import (
    parse_boolean,
    parse_day,
    parse_duration,
    parse_endpoint,
    parse_hint,
    parse_size,
    parse_whole,
)


@pytest.mark.parametrize(
    ("text", "data"),
    [("0", 0), ("17", 17), ("1G", 10**9), ("1g", 10**9), ("1GB", 10**9), ("1GiB", 2**30), ("1Gi", 2**30)]
    + [("100 MB", 10**8), ("3E", 3 * 10**18), ("2KIB", 2048), ("5b", 5)],
)
def test_size_with_unit_is_bytes(text: str, data: int) -> None:
    assert parse_size(text) == data


@pytest.mark.parametrize("text", ["", "1.5G", "-1", "G", "1GG", "1 G B", "0x10", "1e9", "\u0663"])
def test_size_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1 day", 86400), ("31days", 31 * 86400), ("2 mo", 62 * 86400), ("1 month", 31 * 86400), ("3 months", 93 * 86400)]
    + [("1 year", 365 * 86400), ("2Years", 730 * 86400), ("30s", 30), ("30 seconds", 30)],
)
def test_duration_with_unit_is_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "days", "1 week", "1 daysday", "-1 day", "1 mos days"])
def test_duration_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)


def test_day_is_the_unix_time_of_its_utc_midnight() -> None:
    assert parse_day("1970-01-02") == 86400
    assert parse_day(" 2009-01-16 ") == 1232064000


@pytest.mark.parametrize("text", ["", "2009-1-16", "2009-02-30", "16-01-2009", "2009-01-16T00:00"])
def test_day_not_of_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a day"):
        parse_day(text)


@pytest.mark.parametrize("text", ["1", "yes", "TRUE", "On"])
def test_boolean_yes_is_true(text: str) -> None:
    assert parse_boolean(text) is True


@pytest.mark.parametrize("text", ["0", "no", "False", "OFF"])
def test_boolean_no_is_false(text: str) -> None:
    assert parse_boolean(text) is False


@given(st.text(max_size=8))
def test_any_text_gives_a_value_or_value_error(text: str) -> None:
    for parse in (parse_boolean, parse_whole, parse_size, parse_duration, parse_day):
        try:
            parse(text)
        except ValueError as problem:
            assert str(problem).startswith("expected")


def test_whole_number_written_as_python_bytes_is_read() -> None:
    assert parse_whole("b'7'") == 7
    with pytest.raises(ValueError, match="from 1 to 256"):
        parse_whole("b'257'", least=1, most=256)


@pytest.mark.parametrize(
    "text",
    ["AUTO", "tcp:h:1", "tcp:192.0.2.1:65535", "tcp:[::1]:80", "tcp:[fe80::1%eth0]:80", "tor:x.onion:1", "i2p:a.b32.i2p",
     "i2p:a.b32.i2p:1", "old.example:8"],
)  # fmt: skip
def test_location_hint_when_it_can_be_reached_is_accepted(text: str) -> None:
    assert parse_hint(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "foo", "tcp:foo", "tcp:4000", "tcp:h:0", "tcp:h:65536", "tcp:h:port", "tcp::1", "h", "auto", "udp:h:1", "tcp:[::1]",
     "tcp:h:1/x", "tcp:h:-1", "tcp:h: 1"],
)  # fmt: skip
def test_location_hint_when_nobody_could_reach_it_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected tcp:HOST:PORT"):
        parse_hint(text)


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [("4000", "tcp:4000"), ("tcp:1", "tcp:1"), ("tcp:port=7", "tcp:port=7"), ("tcp6:2:interface=\\:\\:1",) * 2, ("unix:/s",) * 2],
)  # fmt: skip
def test_endpoint_when_it_can_be_listened_on_is_accepted(text: str, endpoint: str) -> None:
    assert parse_endpoint(text) == endpoint


@pytest.mark.parametrize("text", ["", "foo", "foo:1", "tcp:", "tcp:foo", "tcp:65536", "70000", "tcp:-1", "tcp"])
def test_endpoint_when_invalid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected tcp:PORT"):
        parse_endpoint(text)
