"""Every endpoint, with every kind of credential and from every kind of page: who gets an answer and who does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import frozen

from tests.gateway.rig import TOKEN
from tests.gateway.running import RunningGateway, running_process, uri
from tests.support.exchanges import MULTIPART, form

REFUSED = (403, 421)
"""The answer to a request that no page of ours and no program sends."""


@frozen
class Endpoint:
    """A valid request of an endpoint. needs_token: [spec webapi 9.6]. unready: another status that it may have."""

    method: str
    target: str
    body: bytes = b""
    type: str = ""
    needs_token: bool = False
    unready: int = 0

    @property
    def changes(self) -> bool:
        """Whether it may do something."""
        return self.method not in ("GET", "HEAD")


ENDPOINTS = {
    "welcome": Endpoint("GET", "/"),
    "welcome-json": Endpoint("GET", "/?t=json"),
    "health": Endpoint("GET", "/healthz"),
    "ready": Endpoint("GET", "/readyz", unready=503),
    "put": Endpoint("PUT", "/uri", b"contents"),
    "upload": Endpoint("POST", "/uri?t=upload", form({}, ("name", "contents")).encode(), MULTIPART),
    "mkdir": Endpoint("POST", "/uri?t=mkdir"),
    "read": Endpoint("GET", "$file"),
    "read-by-other-name": Endpoint("GET", "$cap"),
    "head": Endpoint("HEAD", "$file"),
    "named": Endpoint("GET", "$named"),
    "json": Endpoint("GET", "$file?t=json"),
    "list": Endpoint("GET", "$folder?t=json"),
    "page": Endpoint("GET", "$folder"),
    "child": Endpoint("GET", "$folder/page.html"),
    "check": Endpoint("POST", "$file?t=check&output=json"),
    "link": Endpoint("POST", "$folder?t=set_children", b"{}"),
    "put-child": Endpoint("PUT", "$folder/new", b"contents"),
    "unlink": Endpoint("DELETE", "$folder/gone"),
    "manifest": Endpoint("POST", "$folder?t=stream-manifest"),
    "start": Endpoint("POST", "$folder?t=start-deep-stats&ophandle=table"),
    "status": Endpoint("GET", "/status?t=json"),
    "statistics": Endpoint("GET", "/statistics?t=json"),
    "metrics": Endpoint("GET", "/metrics"),
    "incident": Endpoint("POST", "/report_incident", b"details=x", "application/x-www-form-urlencoded"),
    "logs": Endpoint("GET", "/private/logs/v1", needs_token=True),
}

CREDENTIALS = {
    "none": None,
    "wrong": "tahoe-lafs nonsense",
    "empty": "tahoe-lafs ",
    "other-scheme": f"Bearer {TOKEN.decode()}",
    "not-ascii": "tahoe-lafs \xff\xfe",
    "prefix": f"tahoe-lafs {TOKEN.decode()[:-1]}",
    "longer": f"tahoe-lafs {TOKEN.decode()}x",
    "right": f"tahoe-lafs {TOKEN.decode()}",
}

ORIGINS = {
    "program": ({}, True),
    "own-page": ({"Origin": "http://$host", "Sec-Fetch-Site": "same-origin"}, True),
    "typed": ({"Sec-Fetch-Site": "none"}, True),
    "other-site": ({"Origin": "http://attacker.example", "Sec-Fetch-Site": "cross-site"}, False),
    "other-site-without-fetch": ({"Origin": "http://attacker.example"}, False),
    "other-site-without-origin": ({"Sec-Fetch-Site": "cross-site"}, False),
    "other-port": ({"Origin": "http://127.0.0.1:1"}, False),
    "other-scheme": ({"Origin": "ftp://$host"}, False),
    "sandboxed": ({"Origin": "null"}, False),
    "same-site": ({"Sec-Fetch-Site": "same-site"}, False),
    "malformed": ({"Origin": "http://[::"}, False),
}
"""Name -> what the browser says of the page, and whether it may change anything."""

HOSTS = (
    "attacker.example",
    "attacker.example:80",
    "127.0.0.1.attacker.example",
    "localhost.attacker.example",
    "10.0.0.1",
)


PUBLIC_HOSTS = {
    "grid.example": True,
    "GRID.example.:8080": True,
    "192.0.2.7": True,
    "10.0.0.1:3456": True,
    "[2001:db8::1]:3456": True,
    "attacker.example": False,
    "192.0.2.7.attacker.example": False,
    "grid.example.attacker.example": False,
    "xgrid.example": False,
    "2130706433": False,
    "0x7f.0.0.1": False,
    "localhost": False,
}
"""A Host of the gateway that may be called grid.example -> whether it is one."""


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """One that others than this machine reach."""
    with running_process(tmp_path_factory.mktemp("public"), "grid.example") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """One gateway for the whole table."""
    with running_process(tmp_path_factory.mktemp("table")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def places(gateway: RunningGateway) -> dict[str, str]:
    """What endpoints are about."""
    file = gateway.put(b"<script>alert(1)</script>" * 10)
    child = ["filenode", {"ro_uri": file}]
    folder = gateway.folder({"page.html": child, **{f"gone{name}": child for name in ORIGINS}})
    return {
        "$file": uri(file),
        "$cap": uri(file).replace("/uri/", "/cap/"),
        "$named": uri(file, "/page.html").replace("/uri/", "/named/"),
        "$folder": uri(folder),
    }


def fill(text: str, places: dict[str, str]) -> str:
    """A target with its object."""
    for name, place in places.items():
        text = text.replace(name, place)
    return text


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("name", ENDPOINTS)
def test_endpoint_when_asked_from_a_page_is_answered_only_if_the_page_may(
    gateway: RunningGateway, places: dict[str, str], name: str, origin: str
) -> None:
    endpoint = ENDPOINTS[name]
    said, may_change = ORIGINS[origin]
    headers = {key: value.replace("$host", gateway.host) for key, value in said.items()}
    if endpoint.type:
        headers["Content-Type"] = endpoint.type
    if endpoint.needs_token:
        headers["Authorization"] = CREDENTIALS["right"] or ""
    target = fill(endpoint.target, places).replace("/gone", f"/gone{origin}")
    reply = gateway.ask(endpoint.method, target, endpoint.body, headers)
    if endpoint.changes and not may_change:
        assert reply.status == 403
    else:
        assert reply.status not in (401, *REFUSED)
        assert reply.status < 500 or reply.status == endpoint.unready
    require_common(reply.headers)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ENDPOINTS)
def test_endpoint_when_called_by_a_name_that_is_not_its_own_is_not_answered(
    gateway: RunningGateway, places: dict[str, str], name: str, host: str
) -> None:
    endpoint = ENDPOINTS[name]
    headers = {"Host": host, "Origin": f"http://{host}", "Authorization": CREDENTIALS["right"] or ""}
    reply = gateway.ask(endpoint.method, fill(endpoint.target, places), endpoint.body, headers)
    assert reply.status == 421
    require_common(reply.headers)


@pytest.mark.parametrize("host", PUBLIC_HOSTS)
@pytest.mark.parametrize("name", ENDPOINTS)
def test_endpoint_when_others_reach_it_is_answered_by_its_names_and_addresses_only(
    public: RunningGateway, places: dict[str, str], name: str, host: str
) -> None:
    endpoint = ENDPOINTS[name]
    headers = {"Host": host, "Origin": f"http://{host}", "Authorization": CREDENTIALS["right"] or ""}
    reply = public.ask(endpoint.method, fill(endpoint.target, places), endpoint.body, headers)
    assert (reply.status == 421) != PUBLIC_HOSTS[host]
    assert reply.status != 403
    require_common(reply.headers)


def test_name_that_is_not_its_own_when_refused_says_what_to_set(gateway: RunningGateway) -> None:
    for host, shown in (
        ("Files.example:8080", "files.example"),
        ("<b>", ""),
        ("a'b", ""),
        ("[files.example]", ""),
        ("x" * 300, "NAME"),
    ):
        reply = gateway.ask("GET", "/", headers={"Host": host})
        if shown:
            assert reply.status == 421
            assert f"`grid config set node.web.allowed_hosts {shown}`" in reply.body.decode()
            assert (reply.header("Content-Type") or "").startswith("text/html")
        else:
            assert reply.status == 400


@pytest.mark.parametrize("credential", CREDENTIALS)
@pytest.mark.parametrize("name", ENDPOINTS)
def test_endpoint_when_a_token_is_offered_looks_at_it_only_where_one_is_needed(
    gateway: RunningGateway, places: dict[str, str], name: str, credential: str
) -> None:
    endpoint = ENDPOINTS[name]
    headers = {"Content-Type": endpoint.type or None, "Authorization": CREDENTIALS[credential]}
    target = fill(endpoint.target, places).replace("/gone", "/none")
    reply = gateway.ask(endpoint.method, target, endpoint.body, headers)
    if endpoint.needs_token and credential != "right":
        assert reply.status == 401
        assert reply.header("WWW-Authenticate") == 'tahoe-lafs realm="tahoe-lafs"'
    else:
        assert reply.status not in (401, *REFUSED)
        assert reply.status < 500 or reply.status == endpoint.unready


def test_request_without_host_is_not_answered(gateway: RunningGateway) -> None:
    assert gateway.ask("GET", "/healthz", headers={"Host": None}).status == 400


@pytest.mark.parametrize("name", ["read", "read-by-other-name", "named", "child"])
def test_contents_when_they_are_a_page_never_run_as_ours(
    gateway: RunningGateway, places: dict[str, str], name: str
) -> None:
    reply = gateway.ask("GET", fill(ENDPOINTS[name].target, places))
    assert reply.status == 200 and b"<script>" in reply.body
    policy = reply.header("Content-Security-Policy") or ""
    assert "sandbox" in policy and "allow-scripts" not in policy and "allow-same-origin" not in policy


@pytest.mark.parametrize("name", ["welcome", "page"])
def test_page_when_served_loads_nothing_of_others(gateway: RunningGateway, places: dict[str, str], name: str) -> None:
    policy = gateway.ask("GET", fill(ENDPOINTS[name].target, places)).header("Content-Security-Policy") or ""
    assert "default-src 'none'" in policy or "default-src 'self'" in policy
    assert "unsafe-inline" not in policy and "unsafe-eval" not in policy and "*" not in policy


def test_options_when_asked_by_another_site_allows_nothing(gateway: RunningGateway, places: dict[str, str]) -> None:
    headers = {"Origin": "http://attacker.example", "Access-Control-Request-Method": "PUT"}
    reply = gateway.ask("OPTIONS", places["$folder"], headers=headers)
    assert reply.status == 501
    require_common(reply.headers)


def require_common(headers: object) -> None:
    """[spec webapi 1.4] and [spec webapi 12]."""
    assert isinstance(headers, dict)
    found = {name.lower(): value for name, value in headers.items()}
    assert found["x-frame-options"] == "DENY"
    assert found["referrer-policy"] == "no-referrer"
    assert found["x-content-type-options"] == "nosniff"
    assert not any(name.startswith("access-control-") for name in found)
