"""The pages behind share links: no name becomes markup, and no address leads out of what is shared."""

from __future__ import annotations

import re

import pytest

from grid.caps import ChkCap, DirectoryCap, SdmfWriteCap, UnknownChild
from grid.directory.pack import Child
from grid.gateway.pages.paging import PAGE_ROWS
from grid.gateway.pages.share_links import ending_card, render_links
from grid.gateway.pages.visits import (
    SharedDirectory,
    Visit,
    render_gone,
    render_password,
    render_shared_directory,
    render_shared_file,
)
from grid.gateway.shared.share_links import make_link
from tests.gateway.pages.hostile import HOSTILE, Document, require_harmless

WRITE = DirectoryCap(SdmfWriteCap(write_key=b"w" * 16, fingerprint=b"f" * 32))
FILE = ChkCap(key=b"k" * 16, ueb_hash=b"u" * 32, needed=3, total=10, size=123_456)
CHILDREN = {name: Child(target=FILE) for name in HOSTILE} | {
    "folder": Child(target=WRITE),
    "verify": Child(target=FILE.verify_cap()),
    "odd": Child(target=UnknownChild(read=b"imm.x")),
    "x" * 2000: Child(target=FILE),
}


def harmless(html: str, ups: list[str]) -> Document:
    """The page, whose addresses of directories above are exactly these."""
    found = re.findall(r'href="((?:\.\./)+|\./)"', html)
    assert found == ups
    return require_harmless(re.sub(r'href="(?:(?:\.\./)+|\./)"', 'href="up"', html))


def test_listing_of_hostile_names_is_harmless_and_has_no_capability() -> None:
    visit = Visit(top="top", names=("sub", "<b>"), expires=2_000_000_000)
    html = render_shared_directory(SharedDirectory(visit=visit, children=CHILDREN))
    document = harmless(html, ["../../", "../", "./"])
    for cap in (FILE, WRITE, FILE.verify_cap()):
        assert not any(part in html for part in cap.to_string().split(":")[2:4])
    links = [each["href"] or "" for each in document.all("a")]
    assert "folder/" in links and not any(link.startswith(("verify", "odd", "x" * 100)) for link in links)
    assert "This link ends on 2033-05-18 03:33 UTC." in document.text.replace("\n", "")


@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in ("", "..")])
def test_page_of_a_file_with_a_hostile_name_is_harmless(name: str) -> None:
    for visit, is_alone, ups in (
        (Visit(top="top", names=("a", name)), False, ["../", "./"]),
        (Visit(top=name), True, []),
        (Visit(top=name, downloads_left=1), True, []),
    ):
        html = render_shared_file(visit, size=3, changed=1.0, is_alone=is_alone)
        harmless(html, ups)
        assert ("1 more download:" in html) == (visit.downloads_left == 1)


def test_long_listing_is_cut_into_pages_that_keep_its_order() -> None:
    children = {f"{number:04}": Child(target=FILE) for number in range(PAGE_ROWS + 1)}
    view = SharedDirectory(visit=Visit(top="top"), children=children, sort="size", descending=True, find="0")
    document = harmless(render_shared_directory(view), ["./"])
    addresses = [each["href"] or "" for each in document.all("a")]
    assert "?sort=size&order=desc&find=0" in addresses or "?sort=size&find=0" in addresses
    whole = SharedDirectory(visit=Visit(top="top"), children=children, page=2)
    assert "0500" in harmless(render_shared_directory(whole), []).text


@pytest.mark.parametrize(("others", "is_first"), [(0, True), (1, True), (2, False)])
def test_most_entries_have_to_be_images_for_pictures_at_once(others: int, is_first: bool) -> None:
    names = ["a.jpg", "b.png", *(f"{number}.txt" for number in range(others))]
    html = render_shared_directory(
        SharedDirectory(visit=Visit(top="top"), children={name: Child(target=FILE) for name in names})
    )
    assert ('data-pictures="first"' in html) == is_first
    assert "data-pictures" in html


def test_empty_directory_says_so() -> None:
    html = render_shared_directory(SharedDirectory(visit=Visit(top="top"), children={}))
    assert "This directory is empty" in html and "t=zip" not in html


def test_other_pages_say_nothing_of_what_is_shared() -> None:
    for html in (render_gone(), render_password(), render_password("This is not the password.")):
        require_harmless(html)
    assert require_harmless(render_password("no")).all("input")[0]["aria-describedby"] == "problem"


@pytest.mark.parametrize("name", HOSTILE)
def test_list_of_the_owner_is_harmless_and_shows_no_capability(name: str) -> None:
    link = make_link("token", WRITE, name, 1_900_000_000, expires=None)
    limited = make_link("other", FILE, name, 1_900_000_000, expires=1_900_000_060, most_downloads=2)
    html = render_links([link, limited], 1_900_000_061, ("https://grid.example/s/abc", link), limited)
    document = require_harmless(html)
    assert "URI:" not in html.replace("URI:DIR2:aaaa:bbbb", "")
    assert [each["data-take-back"] for each in document.all("button") if "data-take-back" in each] == [
        link.identifier,
        limited.identifier,
    ]
    assert "Never ends" in document.text and "Expired" in document.text and "0 of 2 downloads" in document.text
    require_harmless(ending_card(WRITE.read_cap().to_string(), name))
