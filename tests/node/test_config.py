"""Parsing configuration text into settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import ConfigError
from grid.node.config import NodeSettings, parse_config

STORAGE_OF_1_20 = """\
# -*- mode: conf; coding: utf-8 -*-
[node]
nickname = s0
reveal-IP-address = true
web.port =
web.static = public_html
tub.port = tcp:39412:interface=127.0.0.1
tub.location = tcp:127.0.0.1:39412

#log_gatherer.furl =
[client]
helper.furl =
shares.needed = 2
shares.happy = 3
shares.total = 4
[storage]
enabled = true
reserved_space = 1G
#expire.enabled =
[helper]
enabled = false
"""


def test_storage_configuration_of_1_20_is_read_without_a_warning() -> None:
    settings = parse_config(STORAGE_OF_1_20, "tahoe.cfg")
    assert settings.nickname == "s0"
    assert settings.web_port is None
    assert settings.tub_port == ("tcp:39412:interface=127.0.0.1",)
    assert settings.tub_location == ("tcp:127.0.0.1:39412",)
    assert (settings.client.needed, settings.client.happy, settings.client.total) == (2, 3, 4)
    assert settings.storage.enabled
    assert settings.storage.reserved_space == 10**9


def test_empty_text_gives_the_defaults() -> None:
    assert parse_config("", "grid.cfg") == NodeSettings()
    assert parse_config("\ufeff[node]\n", "grid.cfg") == NodeSettings()


def test_last_of_equal_keys_wins() -> None:
    assert parse_config("[node]\nnickname = a\nNICKNAME: b\n[node]\nnickname = c\n", "x").nickname == "c"


def test_disabled_tub_is_none() -> None:
    settings = parse_config("[node]\ntub.port = disabled\ntub.location = disabled\n", "x")
    assert settings.tub_port is None
    assert settings.tub_location is None


def test_bare_port_is_a_tcp_port_and_several_may_be_given() -> None:
    settings = parse_config("[node]\ntub.port = 4000, tcp:4001:interface=::1\ntub.location=a:1,AUTO\n", "x")
    assert settings.tub_port == ("tcp:4000", "tcp:4001:interface=::1")
    assert settings.tub_location == ("a:1", "AUTO")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[node]\nnicname = a\n", "section [node], key nicname"),
        ("[strorage]\nx = 1\n", "section [strorage]"),
        ("[connections]\ntpc = tcp\n", "section [connections], key tpc"),
    ],
)
def test_unknown_key_or_section_is_an_error_that_names_it(text: str, where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "grid.cfg")
    assert str(caught.value).startswith(f"grid.cfg: {where}: ")


def test_names_that_the_user_chooses_are_never_unknown() -> None:
    text = "[grid_managers]\nany = pub-v0-x\n[grid_manager_certificates]\nmine = mine.cert\n"
    settings = parse_config(text + "[storageclient.plugins.p]\na = b\n", "grid.cfg")
    assert settings.grid_managers == (("any", "pub-v0-x"),)
    assert settings.certificates == (("mine", "mine.cert"),)


@pytest.mark.parametrize(
    ("text", "transport"),
    [
        ("", "auto"),
        ("transport = HTTP", "http"),
        ("force_foolscap = true", "foolscap"),
        ("force_foolscap = true\ntransport = foolscap", "foolscap"),
        ("force_foolscap = false\ntransport = http", "http"),
    ],
)
def test_transport_is_what_either_key_says(text: str, transport: str) -> None:
    assert parse_config(f"[client]\n{text}\n", "x").client.transport == transport


def test_expiry_is_read_as_seconds_and_unix_time() -> None:
    settings = parse_config(
        "[storage]\nexpire.enabled=yes\nexpire.mode=cutoff-date\nexpire.cutoff_date=1970-01-02\n"
        "expire.override_lease_duration = 1 day\nexpire.mutable = no\ndurability = none\n",
        "x",
    )
    expire = settings.storage.expire
    assert (expire.enabled, expire.mode, expire.cutoff, expire.override_s) == (True, "cutoff-date", 86400, 86400)
    assert (expire.immutable, expire.mutable) == (True, False)
    assert settings.storage.durability == "none"


def test_percent_sign_is_written_twice() -> None:
    assert parse_config("[node]\nnickname = 50%% off\n", "x").nickname == "50% off"


@pytest.mark.parametrize(
    ("text", "section", "key"),
    [
        ("[client]\nshares.needed = 5\nshares.total = 4\nshares.happy=1\n", "client", "shares.needed"),
        ("[client]\nshares.happy = 11\n", "client", "shares.happy"),
        ("[client]\nshares.total = 257\n", "client", "shares.total"),
        ("[client]\nshares.needed = 0\n", "client", "shares.needed"),
        ("[client]\nshares.needed = three\n", "client", "shares.needed"),
        ("[client]\nintroducer.furl = None\n", "client", "introducer.furl"),
        ("[client]\nmutable.format = XDMF\n", "client", "mutable.format"),
        ("[storage]\nreserved_space = plenty\n", "storage", "reserved_space"),
        ("[storage]\nenabled = maybe\n", "storage", "enabled"),
        ("[storage]\ndurability = some\n", "storage", "durability"),
        ("[storage]\nexpire.enabled = true\n", "storage", "expire.mode"),
        ("[storage]\nexpire.enabled = true\nexpire.mode = cutoff-date\n", "storage", "expire.cutoff_date"),
        ("[node]\ntub.port = 0\n", "node", "tub.port"),
        ("[node]\ntub.port = tcp:0:interface=127.0.0.1\n", "node", "tub.port"),
        ("[node]\ntub.port =\n", "node", "tub.port"),
        ("[node]\ntub.location =\n", "node", "tub.location"),
        ("[node]\ntub.port = disabled\n", "node", "tub.port"),
        ("[node]\ntub.port = foo\ntub.location = tcp:h:1\n", "node", "tub.port"),
        ("[node]\ntub.port = tcp:99999999\n", "node", "tub.port"),
        ("[node]\ntub.port = 4000\ntub.location = foo\n", "node", "tub.location"),
        ("[node]\ntub.port = 4000\ntub.location = AUTO,tcp:h\n", "node", "tub.location"),
        ("[node]\nnickname = 50% off\n", "node", "nickname"),
        ("[connections]\ntcp = pigeon\n", "connections", "tcp"),
        ("[client]\ntransport = pigeon\n", "client", "transport"),
        ("[client]\ntransport = http\nforce_foolscap = true\n", "client", "transport"),
    ],
)
def test_unusable_value_is_an_error_naming_file_section_and_key(text: str, section: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "dir/grid.cfg")
    assert str(caught.value).startswith(f"dir/grid.cfg: section [{section}], key {key}: ")


@pytest.mark.parametrize("text", ["nickname = a\n", "[node\n", "[node]\njunk\n"])
def test_invalid_configuration_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^grid\.cfg: "):
        parse_config(text, "grid.cfg")


@given(st.text(alphabet="[]node\n=:%()#; ashrclipu.k0\ufeff", max_size=60))
def test_any_text_gives_settings_or_a_config_error(text: str) -> None:
    try:
        assert isinstance(parse_config(text, "f"), NodeSettings)
    except ConfigError as problem:
        assert str(problem).startswith("f: ")


def test_settings_do_not_show_the_introducer_in_their_repr() -> None:
    settings = parse_config("[client]\nintroducer.furl = pb://aaaa@tcp:h:1/secretname\n", "x")
    assert settings.client.introducer_furl == "pb://aaaa@tcp:h:1/secretname"
    assert "secretname" not in repr(settings)


def test_web_gateway_settings_are_read() -> None:
    settings = parse_config("[node]\nweb.drain_timeout = 5\nweb.allowed_hosts = A.example, 10.0.0.1,[::0:1]\n", "x")
    assert settings.web_drain_s == 5
    assert settings.web_hosts == ("a.example", "10.0.0.1", "[::1]")
    assert not settings.web_read_only and parse_config("[node]\nweb.read_only = yes\n", "x").web_read_only
    assert settings.web_proxies == ()
    proxies = parse_config("[node]\nweb.trusted_proxies = 127.0.0.1, 10.1.0.0/16,fd00::/8, ::1/128,UNIX,\n", "x")
    assert proxies.web_proxies == ("127.0.0.1", "10.1.0.0/16", "fd00::/8", "::1", "unix")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("web.drain_timeout = 86401", "web.drain_timeout: expected a whole number from 0 to 86400"),
        ("web.drain_timeout = 1m", "web.drain_timeout: expected a whole number"),
        ("web.allowed_hosts = a.example:80", "web.allowed_hosts: expected names of hosts"),
        ("web.allowed_hosts = http://a.example/", "web.allowed_hosts: expected names of hosts"),
        ("web.allowed_hosts = a b", "web.allowed_hosts: expected names of hosts"),
        ("web.allowed_hosts = *.example", "web.allowed_hosts: expected names of hosts"),
        ("web.trusted_proxies = proxy.example", "web.trusted_proxies: expected IP addresses or networks"),
        ("web.trusted_proxies = 127.0.0.1:80", "web.trusted_proxies: expected IP addresses or networks"),
        ("web.trusted_proxies = 10.1.2.3/8", "web.trusted_proxies: expected IP addresses or networks"),
        ("web.trusted_proxies = *", "web.trusted_proxies: expected IP addresses or networks"),
        ("web.trusted_proxies = 127.0.0.1, 0.0.0.0/0", "web.trusted_proxies: a network of all addresses"),
        ("web.trusted_proxies = ::/0", "web.trusted_proxies: a network of all addresses"),
    ],
)
def test_web_gateway_settings_that_cannot_be_used_are_refused(line: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_config(f"[node]\n{line}\n", "x")


def test_log_format_when_given_is_text_or_json() -> None:
    assert parse_config("", "x").log_format == "text"
    assert parse_config("[node]\nlog_format = JSON\n", "x").log_format == "json"
    with pytest.raises(ConfigError, match=r"x: section \[node\], key log_format: expected one of text, json"):
        parse_config("[node]\nlog_format = xml\n", "x")


def test_convergence_when_given_is_the_secret_or_none() -> None:
    assert parse_config("", "x").client.convergent
    assert parse_config("[client]\nconvergence = secret\n", "x").client.convergent
    assert not parse_config("[client]\nconvergence = None\n", "x").client.convergent
    with pytest.raises(ConfigError, match="convergence"):
        parse_config("[client]\nconvergence = random\n", "x")
