"""What the visitors of share links get: pages and files, on a read-only gateway too, and never a capability."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from urllib.parse import urljoin

import pytest
from attrs import define, evolve
from twisted.internet.defer import Deferred, gatherResults

from grid.caps import ChkCap, UnknownCap, parse_cap
from grid.gateway.shared.share_links import add_link, make_link
from grid.gateway.sharing.visitor_resource import PEEK_SIZE
from grid.node.share_file import ShareFile
from tests.gateway.rig import running_gateway
from tests.gateway.sharing.shared import TEXT, cookie_of, links_of, password, sharing, store


async def test_directory_is_listed_and_its_files_are_viewed_and_downloaded(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root)
        first = await shared.get(link)
        assert (first.status, first.headers["location"]) == (302, f"{link}/")
        page = await shared.get(f"{link}/")
        assert page.status == 200 and page.headers["cache-control"] == "no-store"
        assert page.headers["x-robots-tag"] == "noindex, nofollow"
        assert "default-src 'none'" in page.headers["content-security-policy"]
        text = page.body.decode()
        assert "This link ends on" in text and "<h1" in text and ">photos</bdi>" in text
        found = links_of(page)
        assert [each for each in ("sub/", "a.txt?t=info", "b%20c.jpg?t=info", "?t=zip") if each not in found] == []
        assert 'aria-label="Main"' not in text, "no navigation"

        info = await shared.get(f"{link}/b%20c.jpg?t=info")
        assert info.status == 200 and 'src="b%20c.jpg"' in info.body.decode() and "2 of 3" in info.body.decode()
        whole = await shared.get(f"{link}/b%20c.jpg")
        assert whole.body == b"# note\n" + TEXT + b"b c.jpg" and whole.headers["content-type"] == "image/jpeg"
        assert whole.headers["content-security-policy"] == "sandbox"
        saved = await shared.get(f"{link}/b%20c.jpg?save=true")
        assert saved.headers["content-disposition"] == 'attachment; filename="b c.jpg"'
        part = await shared.get(f"{link}/a.txt", headers={"Range": "bytes=10-19"})
        assert (part.status, part.body) == (206, (b"# note\n" + TEXT)[10:20])
        held = await shared.get(f"{link}/a.txt", headers={"If-None-Match": whole.headers["etag"]})
        assert held.status == 200, "the tag of another file"
        held = await shared.get(f"{link}/a.txt", headers={"If-None-Match": held.headers["etag"]})
        assert held.status == 304
        assert (await shared.get(f"{link}/a.txt", headers={"Range": "bytes=99999999-"})).status == 416
        head = await shared.get(f"{link}/a.txt", "HEAD")
        assert head.status == 200 and int(head.headers["content-length"]) == len(b"# note\n" + TEXT + b"a.txt")

        sub = await shared.get(f"{link}/sub")
        assert (sub.status, sub.headers["location"]) == (302, f"{link}/sub/")
        inner = await shared.get(f"{link}/sub/")
        assert "deep.txt?t=info" in links_of(inner) and "../" in links_of(inner)
        assert (await shared.get(f"{link}/sub/deep.txt")).body.endswith(b"sub/deep.txt")
        assert (await shared.get(f"{link}/note.md?t=preview")).status == 200


@pytest.mark.parametrize(
    ("path", "way"),
    [("gone.txt", "./"), ("sub/gone.txt", "../"), ("sub/gone/", "../../"), ("a/b/c/?t=info", "../../../")],
)
async def test_name_that_is_not_shared_is_said_with_the_way_to_what_is(tmp_path: Path, path: str, way: str) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root)
        missing = await shared.get(f"{link}/{path}")
        assert missing.status == 404 and way in links_of(missing)
        assert urljoin(f"{link}/{path}", way) == f"{link}/"
        text = missing.body.decode()
        assert "Nothing of that name is shared here." in text
        assert "Look for it in what is shared, or ask the person who sent you the link." in text


async def test_pages_are_sorted_and_searched_as_asked(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root)
        names = [each for each in links_of(await shared.get(f"{link}/?sort=name&order=desc")) if each.endswith("desc")]
        assert [each.partition("?")[0] for each in names if each.partition("?")[0]] == ["note.md", "b%20c.jpg", "a.txt"]
        found = await shared.get(f"{link}/?find=NOTE")
        assert "note.md?t=info" in links_of(found) and "a.txt?t=info" not in links_of(found)
        for query in (
            "page=2",
            "sort=%22%3E",
            "order=x",
            "find=%3Cb%3E",
            "find=" + "x" * 5000,
            "t=json",
            "t=uri",
            "t=share",
            "t=info",
        ):
            reply = await shared.get(f"{link}/?{query}")
            assert reply.status == (400 if query.startswith("t=") else 200), query
            assert b"<b>" not in reply.body
        for view in ("json", "uri", "readonly-uri", "share", "zip", "rename-form", "save"):
            assert (await shared.get(f"{link}/a.txt?t={view}")).status == 400, view
            assert (await shared.get(f"{link}/sub/?t={view}")).status == (200 if view == "zip" else 400)


async def test_archive_holds_everything_below_and_is_named_after_what_is_shared(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root, "my photos")
        reply = await shared.get(f"{link}/?t=zip")
        assert reply.headers["content-disposition"] == 'attachment; filename="my photos.zip"'
        with zipfile.ZipFile(BytesIO(reply.body)) as archive:
            assert archive.namelist() == ["a.txt", "b c.jpg", "note.md", "sub/", "sub/deep.txt", "sub/x"]
            assert archive.read("sub/x").endswith(b"sub/x")
        shared.seen.remove(reply)  # It is no text, and was looked into.
        assert (shared.only.uses, shared.only.downloads) == (1, 1)
        budget = shared.rig.gateway.stores.archives
        assert budget.try_acquire(budget.total)
        assert (await shared.get(f"{link}/?t=zip")).status == 503
        head = await shared.get(f"{link}/?t=zip", "HEAD")
        assert (head.status, head.headers["content-type"]) == (200, "application/zip"), "nothing is listed for it"
        assert (shared.only.uses, shared.only.downloads) == (1, 1)


@pytest.mark.parametrize("format", ["chk", "sdmf", "mdmf"])
async def test_link_to_a_file_shows_a_page_and_its_contents_under_its_name_only(tmp_path: Path, format: str) -> None:
    async with sharing(tmp_path) as shared:
        shared.rig.gateway.settings = evolve(shared.rig.gateway.settings, is_read_only=False)
        cap = await store(shared.rig, f"/uri?format={format}", TEXT)
        shared.rig.gateway.settings = evolve(shared.rig.gateway.settings, is_read_only=True)
        shared.secrets.append(cap)
        link = await shared.link(cap, "a b.txt")
        assert (await shared.get(link)).headers["location"] == f"{link}/"
        page = await shared.get(f"{link}/")
        assert page.status == 200 and "a%20b.txt?save=true" in links_of(page)
        assert (await shared.get(f"{link}/a%20b.txt")).body == TEXT
        assert (await shared.get(f"{link}/a%20b.txt", headers={"Range": "bytes=-3"})).body == TEXT[-3:]
        for rest in ("x", "a%20b.txt/", "a%20b.txt/x", "/", "..", "%2e%2e"):
            assert (await shared.get(f"{link}/{rest}")).status == 404, rest


async def test_limited_link_sends_whole_files_only_and_ends_with_the_last(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root, most_downloads=2)
        page = await shared.get(f"{link}/")
        assert b"2 more downloads" in page.body
        info = await shared.get(f"{link}/b%20c.jpg?t=info")
        assert b"<img" not in info.body, "a preview would be a download"
        assert (await shared.get(f"{link}/note.md?t=preview")).status == 400
        assert (await shared.get(f"{link}/a.txt", "HEAD")).status == 200
        assert shared.only.downloads == 0
        first = await shared.get(f"{link}/a.txt", headers={"Range": "bytes=5-", "If-None-Match": "*"})
        assert first.status == 200 and first.body.endswith(b"a.txt") and first.body.startswith(b"# note")
        assert first.headers["accept-ranges"] == "none" and "etag" not in first.headers
        assert b"1 more download:" in (await shared.get(f"{link}/")).body
        second = await shared.get(f"{link}/?t=zip")
        shared.seen.remove(second)
        assert second.status == 200 and zipfile.is_zipfile(BytesIO(second.body))
        assert (await shared.get(f"{link}/a.txt")).status == (await shared.get(f"{link}/")).status == 404
        assert (shared.only.downloads, shared.only.state(0)) == (2, "used up")


async def test_download_that_fails_before_its_first_byte_takes_none_of_the_limit(tmp_path: Path) -> None:
    lost = ChkCap(key=b"k" * 16, ueb_hash=b"u" * 32, needed=2, total=4, size=500_000).to_string()
    async with sharing(tmp_path) as shared:
        link = await shared.link(lost, "lost.bin", most_downloads=1)
        for _ in range(3):
            assert (await shared.get(f"{link}/lost.bin")).status == 410
        assert (shared.only.downloads, shared.only.uses) == (0, 0)
        assert b"1 more download:" in (await shared.get(f"{link}/")).body


@pytest.mark.parametrize("path", ["a.txt", "?t=zip"])
async def test_last_download_is_sent_to_one_of_two_visitors_who_ask_at_once(tmp_path: Path, path: str) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root, most_downloads=1)
        asked = [Deferred.fromCoroutine(shared.get(f"{link}/{path}")) for _ in range(2)]
        replies = sorted(await gatherResults(asked), key=lambda reply: reply.status)
        assert [reply.status for reply in replies] == [200, 404]
        assert shared.only.downloads == 1
        gone = await shared.get(f"/s/{'A' * 32}")
        assert {**gone.headers, "date": ""} == {**replies[1].headers, "date": ""} and gone.body == replies[1].body
        shared.seen.remove(replies[0])  # An archive is no text.


@define
class UsesUp:
    """Blocks nothing, but lets somebody else take the last download as soon as anything is looked up."""

    file: ShareFile

    def reason(self, storage_index: bytes) -> str | None:
        with self.file.changing() as links:
            for link in list(links.values()):
                links[link.digest] = evolve(link, downloads=1)
        return None


@pytest.mark.parametrize("path", ["a.txt", "?t=zip"])
async def test_download_is_withheld_if_the_last_one_was_taken_before_its_first_byte(tmp_path: Path, path: str) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root, most_downloads=1)
        gone = await shared.get(f"/s/{'A' * 32}")
        shared.rig.gateway.blocks = UsesUp(shared.file)
        late = await shared.get(f"{link}/{path}")
        assert (late.status, shared.only.downloads) == (404, 1)
        assert {**gone.headers, "date": ""} == {**late.headers, "date": ""} and gone.body == late.body


async def test_unlimited_link_counts_the_beginnings_of_files_and_pages(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root)
        for path, headers in (
            ("", {}),
            ("a.txt?t=info", {}),
            ("a.txt", {}),
            ("a.txt", {"Range": "bytes=0-9"}),
            ("a.txt", {"Range": "bytes=10-19"}),
            ("a.txt", {"Range": "bytes=0-"}),
            ("missing", {}),
        ):
            await shared.get(f"{link}/{path}", headers=headers)
        await shared.get(f"{link}/", "HEAD")
        assert (shared.only.uses, shared.only.downloads) == (4, 2)


async def test_list_of_pictures_reads_too_little_of_files_to_count(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        shared.rig.gateway.settings = evolve(shared.rig.gateway.settings, is_read_only=False)
        large = await store(shared.rig, "/uri", bytes(PEEK_SIZE + 1))
        link = await shared.link(large, "a.jpg")
        for end, count in ((PEEK_SIZE - 1, 0), (PEEK_SIZE, 1)):
            part = await shared.get(f"{link}/a.jpg", headers={"Range": f"bytes=0-{end}"})
            assert (len(part.body), shared.only.downloads) == (end + 1, count)
    script = files("grid.gateway").joinpath("assets", "thumbnails.js").read_text()
    assert "const FIRST = 64 * 1024;" in script and PEEK_SIZE == 64 * 1024


async def test_pictures_are_offered_only_where_downloads_are_not_limited(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        for limit in (None, 5):
            page = await shared.get(f"{await shared.link(shared.root, most_downloads=limit)}/")
            assert (b"data-pictures" in page.body) == (limit is None)


async def test_password_is_asked_before_anything_is_said_and_opens_its_link_only(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        link = await shared.link(shared.root, "holidays", password="correct horse \N{SNOWMAN}")
        other = await shared.link(shared.root, "others", password="correct horse \N{SNOWMAN}")
        for path in (link, f"{link}/", f"{link}/a.txt", f"{link}/missing", f"{link}/?t=zip"):
            reply = await shared.get(path)
            assert reply.status == 403 and b'type="password"' in reply.body
            assert b"holidays" not in reply.body and b"a.txt" not in reply.body
            assert (await shared.get(path, "HEAD")).status == 403
        assert b"needs a password" in (await shared.rig.ask("GET", link)).body
        wrong = await shared.get(link, "POST", password("wrong horse"))
        assert wrong.status == 403 and b"not the password" in wrong.body and "set-cookie" not in wrong.headers
        right = await shared.get(f"{link}/a.txt", "POST", password("correct horse \N{SNOWMAN}"))
        assert (right.status, right.headers["location"]) == (303, f"{link}/a.txt")
        attributes = right.headers["set-cookie"].partition("; ")[2]
        assert attributes == f"Path={link}; Max-Age=43200; HttpOnly; SameSite=Lax"
        browser: Mapping[str, str] = cookie_of(right)
        assert (await shared.get(f"{link}/", headers=browser)).status == 200
        assert (await shared.get(f"{link}/a.txt", headers=browser)).status == 200
        assert (await shared.get(link, "POST", password("anything"), headers=browser)).status == 303
        assert (await shared.get(f"{other}/", headers=browser)).status == 403, "a pass is for one link"
        for value in ("", "grid-share", "grid-share=", "grid-share=1-2", "grid-share=" + "9" * 5000):
            assert (await shared.get(f"{link}/", headers={"Cookie": value})).status == 403
        await shared.rig.gateway.links.remove("holidays")
        assert (await shared.get(f"{link}/", headers=browser)).status == 404


async def test_every_answer_below_a_link_is_for_a_visitor_also_on_a_gateway_that_writes(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        shared.rig.gateway.settings = evolve(shared.rig.gateway.settings, is_read_only=False)
        link = await shared.link(shared.root)
        for path in (link + "/", f"{link}/a.txt?t=info", f"{link}/missing", f"/s/{'A' * 32}"):
            reply = await shared.get(path)
            assert b'href="/servers"' not in reply.body and b'href="/status"' not in reply.body, path


async def test_gateway_without_a_client_directory_has_no_links(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        assert (await rig.ask("GET", f"/s/{'A' * 32}")).status == 404


async def test_link_that_a_command_makes_works_at_once_until_the_command_takes_it_back(tmp_path: Path) -> None:
    async with sharing(tmp_path) as shared:
        cap, command = parse_cap(shared.root), ShareFile(tmp_path / "private")
        assert not isinstance(cap, UnknownCap)
        assert (await shared.get("/s/token-of-a-command/a.txt")).status == 404
        link = make_link("token-of-a-command", cap, "photos", time.time(), expires=None)
        with command.changing() as links:
            add_link(links, link, time.time())
        assert (await shared.get("/s/token-of-a-command/a.txt")).status == 200
        with command.changing() as links:
            assert links.pop(link.digest).downloads == 1
        assert (await shared.get("/s/token-of-a-command/a.txt")).status == 404
