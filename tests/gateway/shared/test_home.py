"""Browsers that `grid web` has opened: how they enter, what they are admitted to, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import pytest
from attrs import define

from grid.caps import DirectoryCap, LitCap
from grid.gateway.http.exchange import Headers
from grid.gateway.shared.home import (
    KEY_HEADER,
    MAX_RECENT,
    MAX_SESSIONS,
    SESSION_S,
    Home,
    Keys,
    cookie_name,
    is_local,
)
from tests.support.virtual_time import VirtualRuntime

HOST = "127.0.0.1:3456"
FILE = LitCap(data=b"abc")


@define
class Files:
    """A client directory with one token."""

    token: str | None = "the token"

    def handed_over(self, now: float) -> bytes | None:
        return None if self.token is None else sha256(self.token.encode()).digest()

    def take(self) -> bool:
        was_there, self.token = self.token is not None, None
        return was_there

    def aliases(self) -> Sequence[tuple[str, DirectoryCap]]:
        return ()


def headers(keys: Keys | None = None, *, key: str | None = None, host: str = HOST, **more: str) -> Headers:
    found = {"host": host, **more}
    if keys is not None:
        found["cookie"] = f"other=1; {cookie_name(Headers({'host': host}))}={keys.cookie}"
        found[KEY_HEADER.lower()] = keys.key if key is None else key
    return Headers(found)


def home(files: Files | None = None) -> tuple[Home, VirtualRuntime]:
    runtime = VirtualRuntime()
    return Home(runtime.clock, runtime.entropy, files or Files()), runtime


def test_token_lets_one_browser_in_once_and_a_wrong_one_lets_nobody_in_and_spends_nothing() -> None:
    found, _ = home()
    assert found.enter("another token") is None and found.enter("") is None and found.enter("x" * 10_000) is None
    keys = found.enter("the token")
    assert keys is not None and len({keys.cookie, keys.key, "the token"}) == 3
    assert found.enter("the token") is None
    assert found.admits(headers(keys)) and found.knows(headers(keys))


def test_gateway_without_a_client_directory_lets_nobody_in() -> None:
    runtime = VirtualRuntime()
    assert Home(runtime.clock, runtime.entropy, None).enter("the token") is None


def test_cookie_without_the_key_of_its_scripts_is_known_but_admitted_to_nothing() -> None:
    found, _ = home()
    keys = found.enter("the token")
    assert keys is not None
    for key in ("", keys.cookie, keys.key[:-1], keys.key + "0"):
        assert found.knows(headers(keys, key=key)) and not found.admits(headers(keys, key=key))
    stolen = Headers({"host": HOST, KEY_HEADER.lower(): keys.key})
    assert not found.knows(stolen) and not found.admits(stolen)
    other = {"host": HOST, "cookie": f"grid-home-9999={keys.cookie}", KEY_HEADER.lower(): keys.key}
    assert not found.admits(Headers(other)), "it is the cookie of another gateway"


def test_browser_is_forgotten_when_it_leaves_or_after_a_month_or_when_many_others_came() -> None:
    files = Files()
    found, runtime = home(files)
    first = found.enter("the token")
    files.token = "the second"
    second = found.enter("the second")
    assert first is not None and second is not None
    found.leave(headers(first))
    assert not found.knows(headers(first)) and found.admits(headers(second))
    runtime.clock.task_clock.advance(SESSION_S + 1)
    assert not found.knows(headers(second))
    files.token = "the third"
    third = found.enter("the third")
    assert third is not None
    for number in range(MAX_SESSIONS):
        files.token = str(number)
        assert found.admits(headers(third))
        assert found.enter(str(number)) is not None
    assert not found.admits(headers(third))


def test_uploads_are_remembered_for_known_browsers_only_up_to_a_limit_and_until_the_last_one_leaves() -> None:
    found, _ = home()
    found.note_upload(headers(), "a stranger's", FILE, 3)
    keys = found.enter("the token")
    assert keys is not None
    found.note_upload(headers(), "a stranger's", FILE, 3)
    for number in range(MAX_RECENT + 5):
        found.note_upload(headers(keys), str(number), FILE, 3)
    assert [each.name for each in found.recent] == [str(number) for number in range(MAX_RECENT + 4, 4, -1)]
    found.leave(headers(keys))
    assert found.recent == []


def test_secrets_are_in_no_representation() -> None:
    found, _ = home()
    keys = found.enter("the token")
    assert keys is not None
    found.note_upload(headers(keys), "a", FILE, 3)
    shown = f"{keys!r} {found.recent!r} {vars(found)!r}"
    assert keys.cookie not in shown and keys.key not in shown and FILE.to_string() not in shown


@pytest.mark.parametrize(
    ("peer", "host", "more", "local"),
    [
        ("127.0.0.1", "127.0.0.1:3456", {}, True),
        ("127.8.8.8", "localhost", {}, True),
        ("::1", "[::1]:3456", {}, True),
        ("::ffff:127.0.0.1", "LOCALHOST:1", {}, True),
        ("192.168.0.9", "127.0.0.1:3456", {}, False),
        ("::ffff:10.0.0.1", "127.0.0.1:3456", {}, False),
        ("", "127.0.0.1:3456", {}, False),
        ("127.0.0.1", "grid.example.com", {}, False),
        ("127.0.0.1", "127.0.0.1.example.com", {}, False),
        ("127.0.0.1", "", {}, False),
        ("127.0.0.1", "127.0.0.1", {"x-forwarded-for": "10.0.0.1"}, False),
        ("127.0.0.1", "127.0.0.1", {"forwarded": ""}, False),
        ("127.0.0.1", "127.0.0.1", {"via": "1.1 proxy"}, False),
    ],
)
def test_only_requests_of_this_machine_that_nobody_forwarded_are_local(
    peer: str, host: str, more: dict[str, str], local: bool
) -> None:
    assert is_local(peer, Headers({"host": host, **more})) is local


def test_cookies_of_two_gateways_on_one_machine_have_different_names() -> None:
    names = {
        cookie_name(Headers({"host": host})) for host in ("127.0.0.1:1", "127.0.0.1:22", "[::1]:22", "x:y;z", "[::1]")
    }
    assert names == {"grid-home-1", "grid-home-22", "grid-home"}
