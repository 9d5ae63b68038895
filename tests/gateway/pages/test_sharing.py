"""The page that helps to share something, and its QR codes."""

from __future__ import annotations

import re

import pytest
import segno
from attrs import evolve

from grid.caps import ChkCap, DirectoryCap, LitCap, SdmfWriteCap
from grid.gateway.pages.qr_codes import MAX_TEXT, qr_code
from grid.gateway.pages.sharing import Sharing, render_sharing
from tests.gateway.pages.hostile import HOSTILE, require_harmless

WRITE = DirectoryCap(SdmfWriteCap(write_key=b"w" * 16, fingerprint=b"f" * 32))
FILE = ChkCap(key=b"k" * 16, ueb_hash=b"u" * 32, needed=3, total=10, size=123_456)


def sharing(cap: ChkCap | DirectoryCap | LitCap, name: str = "photos", origin: str = "https://grid.example") -> Sharing:
    return Sharing(cap=cap, name=name, origin=origin, back="/uri/x/")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_markup_or_leads_elsewhere(name: str) -> None:
    for cap in (WRITE, FILE, LitCap(data=b"abc")):
        require_harmless(render_sharing(sharing(cap, name)))


def test_only_the_read_capability_is_shared() -> None:
    html = render_sharing(sharing(WRITE))
    document = require_harmless(html)
    read = WRITE.read_cap().to_string()
    values = [field["value"] for field in document.all("input")]
    assert values == [f"https://grid.example/uri/{read.replace(':', '%3A')}/?filename=photos", read]
    assert [button["data-copy"] for button in document.all("button") if "data-copy" in button] == values
    assert WRITE.to_string() not in html and "URI:DIR2:" not in html
    assert [image["aria-label"] for image in document.all("svg") if image.get("role") == "img"] == [
        "QR code of the link",
        "QR code of the capability",
    ]


def test_link_of_a_file_leads_to_its_contents() -> None:
    document = require_harmless(render_sharing(sharing(FILE, "a b.jpg")))
    link = document.all("input")[0]["value"] or ""
    assert link.startswith("https://grid.example/file/URI%3ACHK%3A") and link.endswith("/@@named=/a%20b.jpg")


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("http://127.0.0.1:3456", "works only on this computer"),
        ("http://[::1]:3456", "works only on this computer"),
        ("http://localhost:3456", "works only on this computer"),
        ("http://192.168.0.7:3456", "is not encrypted in transit: others on the network can copy it."),
        ("https://grid.example", "Anyone who can reach this gateway"),
    ],
)
def test_page_says_who_can_open_the_link(origin: str, words: str) -> None:
    assert words in render_sharing(sharing(WRITE, origin=origin))


@pytest.mark.parametrize("origin", ["https://127.0.0.1:3456", "https://[::1]:3456", "https://localhost:3456"])
def test_link_names_the_machine_where_the_gateway_listens_for_others(origin: str) -> None:
    html = render_sharing(Sharing(cap=WRITE, name="a", origin=origin, public="vm", back="/"))
    assert 'value="https://vm:3456/uri/URI%3ADIR2-RO%3A' in html and "a name other than vm" in html
    assert "<code>grid config set node.web.allowed_hosts NAME</code> and a restart" in html and "Its IP address" in html
    assert "this computer only" not in html
    other = render_sharing(Sharing(cap=WRITE, name="a", origin="https://10.0.0.1", public="vm", back="/"))
    assert 'value="https://10.0.0.1/uri/' in other and "another name" not in other


def test_page_names_the_commands_that_open_the_kind_of_object() -> None:
    directory, file = render_sharing(sharing(WRITE)), render_sharing(sharing(FILE))
    assert "<code>grid ls</code> and <code>grid cp -r</code>" in directory and "grid get" not in directory
    assert "<code>grid get</code>" in file and "grid ls" not in file


def test_page_says_what_the_recipient_can_do() -> None:
    assert "now and later" in render_sharing(sharing(WRITE))
    assert "The contents never change." in render_sharing(sharing(FILE))


def test_page_says_that_links_that_end_can_be_taken_back_but_not_to_visitors() -> None:
    view = sharing(WRITE)
    assert "cannot be taken back. A link that ends can: make one with <code>grid share</code>." in render_sharing(view)
    assert "make one above, or with <code>grid share</code>." in render_sharing(evolve(view, can_end=True))
    visit = render_sharing(evolve(view, is_visit=True))
    assert "cannot be taken back." in visit and "grid share" not in visit


BORDER = 4


@pytest.mark.parametrize("text", ["a", "http://127.0.0.1:3456/uri/URI%3ADIR2-RO%3Aabc/", "x" * MAX_TEXT])
def test_drawing_has_the_modules_of_the_code_and_light_around_them(text: str) -> None:
    drawn = qr_code(text, "label")
    assert drawn is not None
    rows = segno.make_qr(text, error="m").matrix
    dark = {(x + BORDER, y + BORDER) for y, row in enumerate(rows) for x, module in enumerate(row) if module}
    found = set()
    for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", drawn):
        found |= {(int(x) + step, int(y)) for step in range(int(width))}
    assert found == dark
    assert f'viewBox="0 0 {len(rows) + 2 * BORDER} {len(rows) + 2 * BORDER}"' in drawn


@pytest.mark.parametrize("text", [each for each in HOSTILE if each])
def test_hostile_text_and_label_stay_text(text: str) -> None:
    require_harmless(qr_code(text, text) or "")


def test_text_that_is_too_long_has_no_code() -> None:
    assert qr_code("x" * (MAX_TEXT + 1), "label") is None
    assert qr_code("\u00fc" * MAX_TEXT, "label") is not None
