"""Files and directories in a real browser: storing, viewing, renaming, moving, deleting and downloading."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import pytest

from tests.browser.served import Served
from tests.browser.visitor import Visitor, uri

pytestmark = pytest.mark.browser


def sample_bytes(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


def test_a_dropped_folder_is_stored_with_everything_in_it(visitor: Visitor, served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "holiday"
    (folder / "day one" / "empty").mkdir(parents=True)
    contents = {
        "a.txt": b"hello",
        "day one/ü & <b>.bin": sample_bytes(3_000_000, 1),
        "day one/c.bin": sample_bytes(500_000, 2),
    }
    for name, written in contents.items():
        (folder / name).write_bytes(written)
    single = tmp_path / "single.txt"
    single.write_bytes(b"beside the folder")
    visitor.go(visitor.make_directory())
    page = visitor.page
    served.order("slow 40")

    visitor.drop([folder, single])

    page.get_by_text("Pause", exact=True).click()
    page.get_by_text("Resume", exact=True).wait_for()
    visitor.picture("on-the-way")
    page.get_by_text("Resume", exact=True).click()
    page.locator(".queue .sum").get_by_text("Finished", exact=True).wait_for()
    served.order("slow 0")
    assert page.locator(".queue .sum").inner_text().startswith("5 of 5 files, 3.50 MB of 3.50 MB")
    page.locator("#listing").get_by_role("link", name="holiday", exact=True).click()
    page.locator("#listing").get_by_role("link", name="day one", exact=True).click()
    page.locator("#listing").get_by_role("link", name="empty", exact=True).wait_for()
    for name in ("ü & <b>.bin", "c.bin"):
        with page.expect_download() as started:
            page.get_by_role("link", name=f"Download {name}", exact=True).click()
        assert started.value.suggested_filename in (name, name.replace("<", "_").replace(">", "_"))
        assert Path(started.value.path()).read_bytes() == contents[f"day one/{name}"]
    page.get_by_role("navigation", name="Path").get_by_role("link", name="holiday").click()
    page.locator("#listing").get_by_role("link", name="a.txt", exact=True).click()
    assert page.locator("#preview pre").inner_text() == "hello"


def test_a_directory_of_two_thousand_entries_is_shown_in_pages_and_names_are_found_in_it(visitor: Visitor) -> None:
    children = {f"file {number:04}.txt": ["filenode", {"ro_uri": "URI:LIT:mfrgg"}] for number in range(2000)}
    body = json.dumps(children).encode()
    cap = visitor.ask("POST", "/uri?t=mkdir-with-children", body, kind="application/json").decode()
    page = visitor.page
    visitor.go(f"{uri(cap)}/")
    rows = page.locator("#listing tbody tr:not([hidden])")
    assert rows.count() == 500
    page.locator("caption", has_text="2000 entries, 1 to 500 shown").wait_for()

    page.get_by_label("Find a name").fill("FILE 19 7")
    page.get_by_label("Find a name").press("Enter")
    page.locator("caption", has_text="23 of 2000 entries found").wait_for()
    assert rows.count() == 23
    page.get_by_label("Find a name").fill("1234")
    page.get_by_label("Find a name").press("Enter")
    page.locator("caption", has_text="1 of 2000 entries found").wait_for()

    assert rows.count() == 1
    page.locator("#listing").get_by_role("link", name="file 1234.txt", exact=True).click()
    page.locator("#preview pre").get_by_text("abc", exact=True).wait_for()


def test_entries_are_made_renamed_moved_and_deleted(visitor: Visitor) -> None:
    visitor.go(visitor.make_directory({"old.txt": b"contents of a file"}))
    page = visitor.page

    page.locator("summary").get_by_text("New directory").click()
    page.wait_for_function("() => document.activeElement.id === 'mkdir-name'")
    page.keyboard.type("sub")
    page.get_by_role("button", name="Create").click()
    page.wait_for_function("() => document.activeElement.textContent === 'sub'")
    page.get_by_role("link", name="Rename, move or delete old.txt").click()
    page.locator("dialog #rename-to").fill("new <i>.txt")
    visitor.picture("dialog")
    page.locator("dialog").get_by_role("button", name="Rename").click()
    page.locator("#listing").get_by_role("link", name="new <i>.txt", exact=True).wait_for()
    page.wait_for_function("() => document.activeElement.textContent === 'new <i>.txt'")
    assert page.locator("#announce").inner_text() == "Renamed old.txt to new <i>.txt"
    page.get_by_role("link", name="Rename, move or delete new <i>.txt").click()
    place = page.locator("dialog datalist option").first.get_attribute("value")
    page.locator("dialog #move-to").fill(place)
    page.locator("dialog").get_by_role("button", name="Move").click()
    page.locator("#listing").get_by_text("1 entry").wait_for()
    page.locator("#listing").get_by_role("link", name="sub", exact=True).click()
    page.get_by_role("link", name="Rename, move or delete new <i>.txt").click()
    page.locator("dialog").get_by_role("button", name="Delete").click()
    assert page.locator("dialog").is_visible()  # Nothing goes before it is confirmed.
    page.locator("dialog #sure").check()
    page.locator("dialog").get_by_role("button", name="Delete").click()

    page.get_by_text("This directory is empty").wait_for()
    page.locator("dialog").get_by_role("heading", name="Deleted new <i>.txt").wait_for()
    assert page.locator("dialog input.cap").input_value().startswith("URI:")
    visitor.picture("deleted")
    page.locator("dialog").get_by_role("button", name="Link it again").click()
    page.locator("#listing").get_by_role("link", name="new <i>.txt", exact=True).wait_for()


def test_replacing_an_entry_asks_first_and_can_be_undone(visitor: Visitor) -> None:
    visitor.go(visitor.make_directory({"a.txt": b"first", "b.txt": b"second"}))
    page = visitor.page
    page.get_by_role("link", name="Rename, move or delete b.txt").click()
    page.locator("dialog #rename-to").fill("a.txt")
    page.locator("dialog").get_by_role("button", name="Rename").click()

    page.locator("dialog").get_by_role("heading", name="Replace “a.txt”?").wait_for()
    visitor.picture("question")
    assert page.locator("#listing").get_by_text("2 entries").is_visible()
    page.locator("dialog").get_by_role("button", name="Replace", exact=True).click()
    page.locator("dialog").get_by_role("heading", name="Replaced a.txt").wait_for()
    page.locator("dialog").get_by_role("button", name="Link it again").click()

    page.locator("#listing").get_by_role("link", name="a (2).txt", exact=True).wait_for()
    visitor.complaints.clear()  # The browser says that it was answered 409, as it was.


def test_a_mistake_in_a_form_is_shown_at_its_field_and_keeps_what_was_typed(visitor: Visitor) -> None:
    visitor.go(visitor.make_directory({"a.txt": b"first"}))
    page = visitor.page
    page.locator("summary").get_by_text("Link a capability").click()
    page.locator("#attach-name").fill("linked")
    page.locator("#attach-cap").fill("URI:CHK:half")
    page.get_by_role("button", name="Link", exact=True).click()

    page.locator("dialog .notice.bad").wait_for()
    assert page.locator("dialog #attach-cap").input_value() == "URI:CHK:half"
    visitor.picture("mistake")
    page.locator("dialog #attach-cap").fill("URI:LIT:krugkidfnzsa")
    page.locator("dialog").get_by_role("button", name="Link", exact=True).click()

    page.locator("#listing").get_by_role("link", name="linked", exact=True).wait_for()
    visitor.go("/")
    page.locator("#open-cap").fill("URX:no")
    page.get_by_role("button", name="Open", exact=True).click()
    assert page.locator("#open-cap").input_value() == "URX:no"
    visitor.picture("open")
    visitor.complaints.clear()  # The browser says that it was answered 400, as it was.


def test_a_recording_is_played_from_its_middle_by_ranges(visitor: Visitor) -> None:
    seconds, rate = 120, 16_000
    sound = sample_bytes(seconds * rate, 3)
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36 + len(sound),
        b"WAVE",
        b"fmt ",
        16,
        1,
        1,
        rate,
        rate,
        1,
        8,
        b"data",
        len(sound),
    )
    cap = visitor.store(head + sound)
    ranges: list[tuple[str | None, int]] = []
    page = visitor.page
    page.on(
        "response",
        lambda answer: (
            ranges.append((answer.request.headers.get("range"), answer.status)) if "/file/" in answer.url else None
        ),
    )
    visitor.go(f"{uri(cap)}?t=info&filename=sound.wav")

    page.wait_for_function("() => document.querySelector('audio').readyState >= 1")
    assert page.evaluate("document.querySelector('audio').duration") == seconds
    page.evaluate("document.querySelector('audio').currentTime = 100")
    page.wait_for_function(
        "() => !document.querySelector('audio').seeking && document.querySelector('audio').readyState >= 2"
    )

    assert page.evaluate("document.querySelector('audio').currentTime") == 100
    assert ranges and all(asked is not None and status == 206 for asked, status in ranges), ranges


def test_share_links_are_copied_and_the_read_only_one_opens_without_forms(visitor: Visitor) -> None:
    visitor.go(visitor.make_directory({"a.txt": b"a file to be read"}))
    page = visitor.page

    page.get_by_role("button", name="Copy: Read only capability").click()
    page.get_by_text("Copied", exact=True).first.wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")

    assert copied.startswith("URI:DIR2-RO:")
    visitor.go("/")
    page.locator("#open-cap").fill(copied)
    page.get_by_role("button", name="Open", exact=True).click()
    page.get_by_text("Read only").first.wait_for()
    assert page.locator("#drop").count() == 0
    assert page.locator("#listing").get_by_role("link", name="a.txt", exact=True).is_visible()


def test_a_document_is_previewed_and_a_file_that_only_claims_to_be_one_is_not(visitor: Visitor) -> None:
    page = visitor.page
    for contents, shown in ((PDF, "#preview iframe[src^='blob:']"), (b"<script>alert(1)</script>" * 9, "#preview a")):
        visitor.go(f"{uri(visitor.store(contents))}?t=info&filename=a.pdf")
        page.locator(shown).wait_for()
    assert page.locator("#preview").inner_text().count("it is not a PDF document") == 1


PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
