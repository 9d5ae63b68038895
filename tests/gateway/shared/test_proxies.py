"""What trusted proxies say of a request, and that nobody else is believed."""

from __future__ import annotations

import pytest

from grid.gateway.shared.proxies import TrustedProxies

NOBODY = TrustedProxies()
LOCAL = TrustedProxies.of(["127.0.0.1", "::1"])
CHAIN = TrustedProxies.of(["127.0.0.1", "10.0.0.0/8", "fd00::/8"])


def test_headers_count_only_from_a_trusted_proxy() -> None:
    assert NOBODY.peer_behind("127.0.0.1", ["203.0.113.9"]) == "127.0.0.1"
    assert NOBODY.scheme_behind("127.0.0.1", "http", ["https"]) == "http"
    assert LOCAL.peer_behind("198.51.100.1", ["203.0.113.9"]) == "198.51.100.1"
    assert LOCAL.scheme_behind("198.51.100.1", "http", ["https"]) == "http"
    for peer in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        assert LOCAL.peer_behind(peer, ["203.0.113.9"]) == "203.0.113.9"
        assert LOCAL.scheme_behind(peer, "http", ["https"]) == "https"
        assert LOCAL.scheme_behind(peer, "https", ["http"]) == "http"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["203.0.113.9"], "203.0.113.9"),
        (["192.0.2.1, 203.0.113.9"], "203.0.113.9"),
        (["127.0.0.1, 203.0.113.9"], "203.0.113.9"),
        (["192.0.2.1", "203.0.113.9"], "203.0.113.9"),
        (["192.0.2.1, 203.0.113.9, 10.1.2.3"], "203.0.113.9"),
        (["192.0.2.1, 203.0.113.9", "10.1.2.3, 10.9.9.9"], "203.0.113.9"),
        (["10.1.2.3"], "10.1.2.3"),
        (["203.0.113.9:4711"], "203.0.113.9"),
        (["2001:db8::7"], "2001:db8::7"),
        (["[2001:db8::7]:443"], "2001:db8::7"),
        (["::ffff:203.0.113.9"], "203.0.113.9"),
        (["fe80::1%eth0"], "fe80::1"),
        ([], "127.0.0.1"),
        ([""], "127.0.0.1"),
        (["unknown"], "127.0.0.1"),
        (["203.0.113.9, unknown"], "127.0.0.1"),
        (["203.0.113.9, 10.1.2.3, _hidden"], "127.0.0.1"),
        (["203.0.113.9, unknown, 10.1.2.3"], "10.1.2.3"),
        ([", ,"], "127.0.0.1"),
    ],
)
def test_client_is_the_last_address_that_no_trusted_proxy_has(lines: list[str], expected: str) -> None:
    """What stands before it may have been sent by the client itself."""
    assert CHAIN.peer_behind("127.0.0.1", lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["https"], "https"),
        (["HTTPS"], "https"),
        (["https, http"], "http"),
        (["http", "https"], "https"),
        (["https, wss"], "http"),
        ([], "http"),
        ([""], "http"),
        (["ftp"], "http"),
    ],
)
def test_scheme_is_the_last_one_if_it_is_known(lines: list[str], expected: str) -> None:
    assert LOCAL.scheme_behind("127.0.0.1", "http", lines) == expected


def test_socket_in_the_file_system_is_trusted_by_its_own_word_only() -> None:
    unix = TrustedProxies.of(["unix"])
    assert unix.peer_behind("", ["203.0.113.9"]) == "203.0.113.9"
    assert unix.scheme_behind("", "http", ["https"]) == "https"
    assert unix.peer_behind("127.0.0.1", ["203.0.113.9"]) == "127.0.0.1"
    assert LOCAL.peer_behind("", ["203.0.113.9"]) == ""
    assert LOCAL.scheme_behind("", "http", ["https"]) == "http"
