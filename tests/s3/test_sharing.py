"""Cross-origin requests: pages of the origins that a bucket's rules name may use it, and pages of no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.s3 import sharing
from grid.s3.accounts import PUBLIC, everybody
from grid.s3.faults import S3Fault
from grid.s3.names import SHARING
from grid.s3.sharing import Rule, rules_in
from tests.gateway.rig import Reply
from tests.s3.rig import MAIN, OTHER, READER, S3Rig, code, path, running_door, texts

RULES = b"""<CORSConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
<CORSRule><ID>app</ID><AllowedOrigin>https://*.example.org</AllowedOrigin><AllowedMethod>GET</AllowedMethod>
<AllowedMethod>PUT</AllowedMethod><AllowedHeader>x-amz-*</AllowedHeader><AllowedHeader>Content-Type</AllowedHeader>
<ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>600</MaxAgeSeconds></CORSRule>
<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>HEAD</AllowedMethod></CORSRule></CORSConfiguration>"""
APP = "https://app.example.org"


def rule(inside: str) -> bytes:
    """A document with one rule."""
    return f"<CORSConfiguration><CORSRule>{inside}</CORSRule></CORSConfiguration>".encode()


async def preflight(rig: S3Rig, target: str, **headers: str) -> Reply:
    """A browser's question before a request."""
    fields = {"Host": rig.host, "Connection": "close"} | {
        name.replace("_", "-"): text for name, text in headers.items()
    }
    lines = [f"OPTIONS {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return await rig.send("\r\n".join(lines).encode())


def presigned(key: str = MAIN, target: str = "/bucket/a") -> str:
    """A target as in a presigned URL; nobody checks the signature of a question."""
    return f"{target}?X-Amz-Credential={key}%2F20261124%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature={'0' * 64}"


async def test_rules_of_a_bucket_are_kept_shown_and_removed(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        assert code(await rig.ask("GET", "/bucket?cors")) == "NoSuchCORSConfiguration"
        assert (await rig.ask("PUT", "/bucket?cors", RULES)).status == 200
        shown = (await rig.ask("GET", "/bucket?cors", key=READER)).body
        for name, wanted in (
            ("ID", ["app"]),
            ("AllowedOrigin", ["https://*.example.org", "*"]),
            ("AllowedMethod", ["GET", "PUT", "HEAD"]),
            ("AllowedHeader", ["x-amz-*", "Content-Type"]),
            ("ExposeHeader", ["ETag"]),
            ("MaxAgeSeconds", ["600"]),
        ):
            assert texts(shown, name) == wanted
        assert await rig.keys() == []
        assert (await rig.ask("DELETE", "/bucket?cors")).status == 204
        assert code(await rig.ask("GET", "/bucket?cors")) == "NoSuchCORSConfiguration"


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        (b"<CORSConfiguration/>", "MalformedXML"),
        (rule("<AllowedMethod>GET</AllowedMethod>"), "MalformedXML"),
        (rule("<AllowedOrigin>*</AllowedOrigin>"), "MalformedXML"),
        (rule("<AllowedOrigin>*</AllowedOrigin><AllowedMethod>PATCH</AllowedMethod>"), "InvalidRequest"),
        (rule("<AllowedOrigin>*.*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>"), "InvalidRequest"),
        (rule("<AllowedOrigin>a\n b: c</AllowedOrigin><AllowedMethod>GET</AllowedMethod>"), "InvalidRequest"),
        (
            rule(
                "<AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod><AllowedHeader>a*b*</AllowedHeader>"
            ),
            "InvalidRequest",
        ),
        (
            rule("<AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod><ExposeHeader>x*</ExposeHeader>"),
            "InvalidRequest",
        ),
        (
            rule("<AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod><MaxAgeSeconds>1h</MaxAgeSeconds>"),
            "MalformedXML",
        ),
        (
            RULES.replace(b"</CORSConfiguration>", RULES[RULES.index(b"<CORSRule>") : -20] * 50 + RULES[-20:]),
            "MalformedXML",
        ),
    ],
)
async def test_rules_that_no_bucket_can_have_are_refused(tmp_path: Path, document: bytes, refusal: str) -> None:
    async with running_door(tmp_path) as rig:
        assert code(await rig.ask("PUT", "/bucket?cors", document)) == refusal
        assert code(await rig.ask("GET", "/bucket?cors")) == "NoSuchCORSConfiguration"


async def test_an_answer_says_which_pages_may_read_it_even_a_refusal(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"1")
        await rig.ask("PUT", "/bucket?cors", RULES)
        for target, status in (("/bucket/a", 200), ("/bucket/none", 404), ("/bucket", 200)):
            reply = await rig.ask("GET", target, headers={"Origin": APP})
            assert (reply.status, reply.headers["access-control-allow-origin"]) == (status, APP)
            assert reply.headers["access-control-expose-headers"] == "ETag"
            assert reply.headers["access-control-allow-credentials"] == "true"
            assert "Origin" in reply.headers["vary"]
        for origin in ("https://example.com", "http://app.example.org", "https://.example.org.evil", "null"):
            reply = await rig.ask("GET", "/bucket/a", headers={"Origin": origin})
            assert reply.status == 200 and "access-control-allow-origin" not in reply.headers
        anyone = await rig.ask("HEAD", "/bucket/a", headers={"Origin": "https://example.com"})
        assert anyone.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in anyone.headers
        assert "access-control-allow-origin" not in (await rig.ask("GET", "/bucket/a")).headers
        assert (await rig.ask("GET", "/none", headers={"Origin": APP})).status == 404


async def test_a_question_about_a_presigned_request_is_answered_by_the_rules(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        put = {"Origin": APP, "Access_Control_Request_Method": "PUT"}
        assert code(await preflight(rig, presigned(), **put)) == "AccessForbidden"
        await rig.ask("PUT", "/bucket?cors", RULES)
        reply = await preflight(rig, presigned(), **put, Access_Control_Request_Headers="content-type, X-Amz-Meta-A")
        assert (reply.status, reply.body) == (200, b"")
        assert reply.headers["access-control-allow-origin"] == APP
        assert reply.headers["access-control-allow-methods"] == "GET, PUT"
        assert reply.headers["access-control-allow-headers"] == "content-type, x-amz-meta-a"
        assert reply.headers["access-control-max-age"] == "600"
        for changed in (
            {"Origin": "https://example.com"},
            {"Access_Control_Request_Method": "DELETE"},
            {"Access_Control_Request_Headers": "authorization"},
        ):
            assert code(await preflight(rig, presigned(), **(put | changed))) == "AccessForbidden"
        for changed in (
            {"Origin": ""},
            {"Access_Control_Request_Method": "TRACE"},
            {"Access_Control_Request_Headers": "x-amz-a, b c"},
        ):
            assert code(await preflight(rig, presigned(), **(put | changed))) == "BadRequest"


async def test_a_question_tells_nobody_whether_a_bucket_or_a_key_exists(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/bucket?cors", RULES)
        put = {"Origin": APP, "Access_Control_Request_Method": "PUT"}
        told = set()
        for target in (
            presigned(OTHER),
            presigned("GKNONE"),
            presigned(""),
            presigned(target="/none/a"),
            "/bucket/a",
            "/",
        ):
            reply = await preflight(rig, target, **put)
            told.add((reply.status, code(reply), "".join(texts(reply.body, "Message"))))
        assert len(told) == 1 and told.pop()[:2] == (403, "AccessForbidden")


async def test_questions_read_no_directory_again_and_a_change_of_the_rules_counts_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = {"Origin": APP, "Access_Control_Request_Method": "PUT"}
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/made")
        reads = list[object]()

        async def statuses(*names: str) -> list[int]:
            return [(await preflight(rig, presigned(target=f"/{name}/a"), **put)).status for name in names]

        assert await statuses("made", "bucket", "none") == [403, 403, 403]
        for name in ("made", "bucket"):
            assert (await rig.ask("PUT", f"/{name}?cors", RULES)).status == 200
        assert await statuses("made", "bucket", "none") == [200, 200, 403]
        rig.rig.gateway.history.watch(lambda done: reads.append(done) if done.kind == "retrieve" else None)
        assert await statuses(*["made", "bucket", "none"] * 3) == [200, 200, 403] * 3
        assert not reads
        assert (await rig.ask("DELETE", "/made?cors")).status == 204
        assert await statuses("made", "bucket") == [403, 200]
        monkeypatch.setattr(sharing, "KEPT_S", 0)
        reads.clear()
        await statuses("bucket")
        assert reads
        monkeypatch.setattr(sharing, "MOST_KEPT", 3)
        await statuses(*"abcdef")
        assert len(rig.door.remembered.of(sharing.KeptRules)._kept) == 3


async def test_a_public_bucket_has_the_rules_that_its_owner_set(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"1")
        await rig.ask("PUT", "/bucket?cors", RULES)
        rig.accounts[PUBLIC] = everybody({"site": rig.accounts[MAIN].buckets["bucket"]})
        reply = await preflight(rig, "/site/a", Origin=APP, Access_Control_Request_Method="GET")
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, APP)
        head = f"GET /site/a HTTP/1.1\r\nHost: {rig.host}\r\nOrigin: {APP}\r\nConnection: close\r\n\r\n"
        got = await rig.send(head.encode())
        assert (got.status, got.headers["access-control-allow-origin"]) == (200, APP)


@pytest.mark.parametrize(
    "said",
    [
        None,
        "rules",
        [None, [], {}],
        [{"origins": ["*"], "methods": ["TRACE"]}],
        [{"origins": "*", "methods": ["GET"]}],
        [{"origins": ["a\r\nSet-Cookie: b"], "methods": ["GET"]}],
        [{"origins": ["*"], "methods": ["GET"], "exposed": ["a\r\nb"]}],
    ],
)
def test_rules_that_somebody_wrote_into_the_directory_are_left_out_if_no_request_could(said: object) -> None:
    assert rules_in({"s3": said}) == []


def test_a_rule_whose_age_is_damaged_counts_without_it() -> None:
    said = {"origins": ["*"], "methods": ["GET"], "max-age": True, "name": 7}
    assert rules_in({"s3": [said]}) == [Rule(origins=("*",), methods=("GET",))]


def test_a_star_stands_for_any_characters_and_nothing_else_does() -> None:
    found = Rule(origins=("a*b", "exact", "x.y"), methods=("GET",), headers=("x-*",))
    assert [origin for origin in ("ab", "a1b", "a", "aba", "exact", "xzy") if found.permits(origin, "GET", ())] == [
        "ab", "a1b", "exact",
    ]  # fmt: skip
    assert not Rule(origins=("aba*aba",), methods=("GET",)).permits("aba", "GET", ())
    assert found.permits("ab", "GET", ("x-a",)) and not found.permits("ab", "GET", ("y",))


async def test_the_rules_of_a_bucket_that_is_deleted_go_with_it(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/mine")
        await rig.ask("PUT", "/mine?cors", RULES)
        bucket = await rig.door.bucket(rig.accounts[MAIN], "mine")
        assert (await rig.ask("DELETE", "/mine")).status == 204
        with pytest.raises(S3Fault):
            await bucket.set(SHARING, {"s3": []})
