"""Where a web gateway listens, its host names, and its URL."""

from __future__ import annotations

import socket

import pytest
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress

from grid.gateway.shared.services import LOOPBACK_HOSTS
from grid.node.config import NodeSettings, parse_config
from grid.node.web_address import allowed_hosts, is_on_loopback, place_to_listen, url_for_others, url_of


@pytest.mark.parametrize(
    ("text", "place", "is_local"),
    [
        ("3456", "tcp:3456:interface=127.0.0.1", True),
        ("tcp:0", "tcp:0:interface=127.0.0.1", True),
        ("tcp6:0", r"tcp6:0:interface=\:\:1", True),
        ("tcp:1:interface=0.0.0.0", "tcp:1:interface=0.0.0.0", False),
        ("tcp:1:backlog=5:interface=0.0.0.0", "tcp:1:backlog=5:interface=0.0.0.0", False),
        ("tcp:1:interface=", "tcp:1:interface=", False),
        (r"tcp:1:interface=\:\:1", r"tcp:1:interface=\:\:1", True),
        ("ssl:1:privateKey=k:certKey=c", "ssl:1:privateKey=k:certKey=c:interface=127.0.0.1", True),
        ("systemd:domain=INET:index=0", "systemd:domain=INET:index=0", False),
    ],
)
def test_address_is_this_machine_alone_unless_an_interface_is_named(text: str, place: str, is_local: bool) -> None:
    assert place_to_listen(text) == place
    found = allowed_hosts(place, NodeSettings())
    assert found is not None
    assert (found == LOOPBACK_HOSTS) == is_local
    assert ("192.0.2.7" in found) == (not is_local)


@pytest.mark.parametrize(
    ("interface", "given", "public"),
    [
        ("0.0.0.0", "", socket.gethostname().lower()),
        (r"\:\:", "", socket.gethostname().lower()),
        ("192.0.2.1", "", "192.0.2.1"),
        (r"2001\:db8\:\:1", "", "[2001:db8::1]"),
        ("0.0.0.0", "files.example, b.example", "files.example"),
        ("127.0.0.1", "files.example", ""),
    ],
)
def test_links_for_others_begin_with_a_name_that_leads_here(interface: str, given: str, public: str) -> None:
    settings = parse_config(f"[node]\nweb.allowed_hosts = {given}\n", "x")
    found = allowed_hosts(f"ssl:1:interface={interface}", settings)
    assert found is not None and found.public == public
    assert url_for_others("https://127.0.0.1:1/", found) == (f"https://{public}:1/" if public else None)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:3456/", True),
        ("https://127.0.0.3:443/", True),
        ("https://[::1]:443/", True),
        ("https://192.0.2.1:443/", False),
        ("https://[2001:db8::1]:443/", False),
    ],
)
def test_url_is_on_loopback_if_its_address_is(url: str, expected: bool) -> None:
    assert is_on_loopback(url) is expected


def test_hosts_on_loopback_are_its_names_and_those_given() -> None:
    settings = parse_config("[node]\nweb.allowed_hosts = Files.example. , ::FFFF\n", "x")
    found = allowed_hosts("tcp:1:interface=127.0.0.3", settings)
    assert found is not None
    for name in ("localhost", "127.0.0.1", "127.0.0.3", "files.example", "[::ffff]"):
        assert name in found
    for name in ("attacker.example", "192.0.2.7", "[::2]", socket.gethostname() + ".x"):
        assert name not in found


def test_hosts_elsewhere_are_addresses_and_the_names_of_this_machine() -> None:
    text = "[node]\ntub.port = 1\ntub.location = tcp:grid.example:7,old.example:8,tor:x.onion:1,AUTO,tcp:[::9]:7\n"
    found = allowed_hosts("tcp:1:interface=192.0.2.1", parse_config(text, "x"))
    assert found is not None
    own = socket.gethostname().lower()
    for name in (
        "localhost",
        "10.0.0.1",
        "[2001:db8::1]",
        "grid.example",
        "old.example",
        own,
        f"{own.partition('.')[0]}.local",
    ):
        assert name in found
    for name in (
        "attacker.example",
        "2001:db8::1",
        "[10.0.0.1]",
        "10.0.0.1.attacker.example",
        "2130706433",
        "x.onion",
        "auto",
    ):
        assert name not in found


def test_hosts_of_a_socket_in_the_file_system_are_any_unless_some_are_given() -> None:
    assert allowed_hosts("unix:/s", NodeSettings()) is None
    found = allowed_hosts("unix:/s", parse_config("[node]\nweb.allowed_hosts = a.example\n", "x"))
    assert found is not None
    assert "a.example" in found and "b.example" not in found


def test_hosts_are_any_if_the_configuration_says_so() -> None:
    settings = parse_config("[node]\nweb.allowed_hosts = *\n", "x")
    assert allowed_hosts("tcp:1:interface=0.0.0.0", settings) is None


@pytest.mark.parametrize(
    ("description", "address", "url"),
    [
        ("tcp:0", IPv4Address("TCP", "127.0.0.1", 4711), "http://127.0.0.1:4711/"),
        ("ssl:0", IPv4Address("TCP", "192.0.2.1", 443), "https://192.0.2.1:443/"),
        ("tcp:0", IPv4Address("TCP", "0.0.0.0", 80), "http://127.0.0.1:80/"),
        ("tcp6:0", IPv6Address("TCP", "::", 80), "http://[::1]:80/"),
        ("tcp6:0", IPv6Address("TCP", "2001:db8::1", 80), "http://[2001:db8::1]:80/"),
        ("tcp6:0", IPv6Address("TCP", "fe80::1%eth0", 80), "http://[fe80::1%25eth0]:80/"),
        ("unix:/s", UNIXAddress(b"/s"), None),
    ],
)
def test_url_is_that_of_the_bound_address(description: str, address: object, url: str | None) -> None:
    assert url_of(description, address) == url
