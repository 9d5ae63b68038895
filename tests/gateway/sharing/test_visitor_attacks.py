"""Share links under attack: paths that climb, tokens and passwords that are guessed, and what logs say."""

from __future__ import annotations

import json
import zipfile
from io import BytesIO, StringIO
from pathlib import Path
from urllib.parse import quote

import pytest
from attrs import evolve
from twisted.logger import globalLogPublisher

from grid.gateway.shared.blacklist import Blacklist
from grid.gateway.shared.passwords import PEER_TRIES
from grid.gateway.shared.proxies import TrustedProxies
from grid.node.log import NodeLog
from tests.gateway.sharing.shared import PAGE, Shared, cookie_of, password, sharing, store

CLIMBING = (
    "..", "../..", "%2e%2e", "%2e%2e%2f%2e%2e", "..%2f..", "sub/..", "sub/../..", "sub%2f..", ".%2e/x", "%252e%252e", "..;", "..\\..",
    "%5c..", "./a.txt", "sub/./deep.txt", "sub//deep.txt", "//a.txt", "%2fetc%2fpasswd", "sub%2fdeep.txt", "a.txt/", "a.txt/x", "%00",
    "a.txt%00", "\N{FULLWIDTH FULL STOP}\N{FULLWIDTH FULL STOP}/x", "URI:DIR2:x:y", "@@named=/a.txt", "missing", "x" * 5000, "/".join("x" * 200),
)  # fmt: skip


async def test_no_path_leads_above_what_is_shared(tmp_path: Path) -> None:
    """The directory above contains a file of each name that a path could mean there."""
    async with sharing(tmp_path) as shared:
        shared.rig.gateway.settings = evolve(shared.rig.gateway.settings, is_read_only=False)
        inner = await store(shared.rig, f"/uri/{quote(shared.root)}/sub?t=readonly-uri", method="GET")
        for name in ("passwd", "x"):
            await store(shared.rig, f"/uri/{quote(shared.root)}/{name}", b"above")
        shared.rig.gateway.settings = evolve(shared.rig.gateway.settings, is_read_only=True)
        link = await shared.link(inner)
        for path in (each.replace("sub", "y") for each in CLIMBING):
            raw = path if "%" in path else quote(path, safe="/%")
            for query in ("", "?t=info", "?t=zip", "?save=true"):
                reply = await shared.get(f"{link}/{raw}{query}")
                assert reply.status == 404, (path, query)
                assert b"above" not in reply.body and b"a.txt" not in reply.body.replace(path.encode(), b"")
        assert (await shared.get(f"{link}/deep.txt")).status == 200


async def test_link_that_opens_nothing_is_answered_alike_whatever_the_reason(tmp_path: Path) -> None:
    blocked = tmp_path / "access.blacklist"
    async with sharing(tmp_path) as shared:
        shared.rig.gateway.blocks = Blacklist(blocked)
        expired, revoked, used, listed = [await shared.link(shared.root, name, most_downloads=1) for name in "abcd"]
        assert (await shared.get(f"{used}/a.txt")).status == 200
        await shared.rig.gateway.links.remove("b")
        with shared.file.changing() as links:
            for link in [link for link in links.values() if link.name == "a"]:
                links[link.digest] = evolve(link, created=1, expires=2)
        other = await shared.link(
            await store(shared.rig, f"/uri/{quote(shared.root)}/sub?t=readonly-uri", method="GET"), "e"
        )
        unknown = f"/s/{'A' * 32}"
        nothing = (unknown, "/s", "/s/", "/s/short", f"/s/{'x' * 5000}", "/s/..", "/s/%2e%2e/x")
        answers = await answers_of(shared, expired, revoked, used, *nothing)
        described = await shared.rig.ask("GET", f"/uri/{quote(shared.root)}?t=json")
        blocked.write_text(f"{json.loads(described.body)[1]['verify_uri'].split(':')[2]} a secret reason\n")
        answers |= await answers_of(shared, listed)
        assert [status for status, _, _ in answers] == [404]
        (body,) = [body for _, _, body in answers]
        assert b"was taken back" in body and b"secret reason" not in body
        plain = {(await shared.rig.ask("GET", path)).body for path in (expired, revoked, used, listed, unknown)}
        assert len(plain) == 1 and b"<" not in plain.pop()
        posted = {(await shared.get(path, "POST", b"password=x")).body for path in (expired, listed, unknown)}
        assert len(posted) == 1
        assert (await shared.get(f"{other}/deep.txt")).status == 200, "what is not blocked stays open"


async def answers_of(shared: Shared, *paths: str) -> set[tuple[int, str, bytes]]:
    """All that differs between the answers to requests below these links."""
    found = set()
    for path in paths:
        for rest in ("", "/", "/a.txt", "/missing", "/?t=zip", "/a.txt?t=info"):
            reply = await shared.get(f"{path}{rest}")
            visible = {name: value for name, value in reply.headers.items() if name != "date"}
            found.add((reply.status, repr(sorted(visible.items())), reply.body))
    return found


async def test_blocked_file_below_a_link_is_refused_in_every_view(tmp_path: Path) -> None:
    blocked = tmp_path / "access.blacklist"
    async with sharing(tmp_path) as shared:
        shared.rig.gateway.blocks = Blacklist(blocked)
        link = await shared.link(shared.root)
        described = json.loads((await shared.rig.ask("GET", f"/uri/{quote(shared.root)}/a.txt?t=json")).body)
        sub = json.loads((await shared.rig.ask("GET", f"/uri/{quote(shared.root)}/sub?t=json")).body)
        blocked.write_text("".join(f"{each[1]['verify_uri'].split(':')[2]} taken down\n" for each in (described, sub)))
        for path in ("a.txt", "a.txt?t=info", "a.txt?save=true", "sub/", "sub/deep.txt", "sub/?t=zip"):
            assert (await shared.get(f"{link}/{path}")).status == 403, path
        archive = await shared.get(f"{link}/?t=zip")
        shared.seen.remove(archive)
        with zipfile.ZipFile(BytesIO(archive.body)) as files:
            assert [name for name in files.namelist() if name in ("a.txt", "sub/deep.txt")] == []
        assert (await shared.get(f"{link}/note.md")).status == 200


async def test_flood_of_wrong_passwords_is_refused_without_looking_and_big_forms_are_not_kept(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root, password="correct horse")
        spooled = {"Content-Type": "multipart/form-data; boundary=x"}
        assert (await shared.get(link, "POST", b"--x--\r\n", spooled)).status == 400
        assert (await shared.get(link, "POST", b"password=" + b"x" * 5_000_000)).status == 413
        statuses = [
            (await shared.get(link, "POST", password(f"guess {number}"))).status for number in range(PEER_TRIES)
        ]
        assert statuses == [403] * PEER_TRIES
        late = await shared.get(link, "POST", password("correct horse"))
        assert late.status == 429 and 0 < int(late.headers["retry-after"]) <= 11
        assert b"too many attempts" in late.body and "set-cookie" not in late.headers


@pytest.mark.parametrize("is_trusted", [False, True])
async def test_visitors_behind_a_proxy_are_told_apart_if_it_is_trusted(tmp_path: Path, is_trusted: bool) -> None:
    proxies = TrustedProxies.of(["127.0.0.1"] if is_trusted else [])
    async with sharing(tmp_path, proxies=proxies) as shared:
        link = await shared.link(shared.root, password="correct horse")
        for number in range(PEER_TRIES + 1):
            # Whatever the visitor sends stands before what the proxy adds.
            forwarded = {"X-Forwarded-For": f"192.0.2.{number}, 203.0.113.9", "X-Forwarded-Proto": "https"}
            tried = await shared.get(link, "POST", password("guess"), forwarded)
            assert tried.status == (403 if number < PEER_TRIES else 429)
        other = {"X-Forwarded-For": "203.0.113.10", "X-Forwarded-Proto": "https"}
        right = await shared.get(link, "POST", password("correct horse"), other)
        assert right.status == (303 if is_trusted else 429)
        assert right.headers.get("set-cookie", "").endswith("; Secure") == is_trusted
        plain = {**other, "X-Forwarded-Proto": "http"}
        insecure = (await shared.get(link, "POST", password("correct horse"), plain)).headers.get("set-cookie", "")
        assert "Secure" not in insecure


async def test_visitor_behind_a_trusted_proxy_is_never_the_owner(tmp_path: Path) -> None:
    async with sharing(tmp_path, proxies=TrustedProxies.of(["127.0.0.1"])) as shared:
        reply = await shared.rig.ask("GET", "/shares", headers={"X-Forwarded-For": "127.0.0.1"})
        assert reply.status == 403


async def test_visitor_changes_nothing_and_other_sites_send_no_forms(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root)
        for method in ("PUT", "DELETE"):
            reply = await shared.get(f"{link}/a.txt", method, b"new")
            assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, POST"), method
        for t in ("unlink", "upload", "mkdir", "zip", "check"):
            assert (await shared.get(f"{link}/?t={t}&name=a.txt", "POST", b"x=1")).status == 303, "as without a body"
        assert (await shared.get(f"{link}/a.txt")).status == 200
        foreign = {"Origin": "http://attacker.example", "Sec-Fetch-Site": "cross-site"}
        assert (await shared.get(link, "POST", b"password=x", foreign)).status == 403
        assert (await shared.rig.ask("GET", "/shares")).status == 403


async def test_token_is_in_no_log_and_no_metric(tmp_path: Path) -> None:
    written, tokens = StringIO(), []
    for kind in ("text", "json"):
        observer = NodeLog(kind, written)
        globalLogPublisher.addObserver(observer)
        try:
            async with sharing(tmp_path / kind) as shared:
                link = await shared.link(shared.root, password="correct horse")
                right = await shared.get(link, "POST", password("correct horse"))
                for path in (link, f"{link}/a.txt?save=true", f"{link}/missing", f"{link}/?t=zip", f"{link}/?t={link}"):
                    await shared.rig.ask("GET", path, headers={**PAGE, **cookie_of(right)})
                    await shared.get(path)
                shared.file.path.write_text("damaged")
                assert (await shared.get(link)).status == 503
                shared.rig.gateway.settings = evolve(shared.rig.gateway.settings, is_read_only=False)
                told = [
                    await shared.rig.ask("GET", path)
                    for path in ("/metrics", "/status?t=json", "/status", "/statistics")
                ]
                tokens.append(link.removeprefix("/s/"))
                assert all(tokens[-1].encode() not in reply.body for reply in told)
                assert b'endpoint="s"' in told[0].body
        finally:
            globalLogPublisher.removeObserver(observer)
    text = written.getvalue()
    assert "GET /s/... 200" in text and "POST /s/... 303" in text
    assert (
        not any(token in text for token in tokens)
        and "correct horse" not in text
        and "URI:" not in text
        and "damaged" not in text
    )


async def test_damaged_file_of_links_is_a_clear_fault_for_every_token_and_named_in_the_log_only(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root)
        shared.file.path.write_text('{"version": 1, "links": [{"cap": "URI:')
        replies = [await shared.get(path) for path in (link, f"/s/{'A' * 32}", "/s/x/y")]
        assert [reply.status for reply in replies] == [503] * 3
        assert len({reply.body for reply in replies}) == 1
        assert b"tell the person who sent you" in replies[0].body and b"share-links.json" not in replies[0].body
