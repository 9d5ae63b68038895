"""Uploads that break off, pause, are abandoned or start again, in a real browser."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.browser.served import Served
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser


def make_folder(tmp_path: Path, count: int, size: int = 2000) -> Path:
    folder = tmp_path / "holiday"
    (folder / "inner").mkdir(parents=True)
    for index in range(count):
        place = folder / "inner" if index % 2 else folder
        (place / f"{index}.bin").write_bytes(random.Random(index).randbytes(size))
        os.utime(place / f"{index}.bin", (1.7e9, 1.7e9))
    return folder


def finish(visitor: Visitor) -> str:
    visitor.page.locator(".queue .sum").get_by_text("Finished", exact=True).wait_for(timeout=60_000)
    found: str = visitor.page.locator(".queue .sum").inner_text()
    return found


def puts(visitor: Visitor) -> list[str]:
    """The names of files that are sent from now on."""
    found: list[str] = []
    visitor.page.on(
        "request",
        lambda asked: (
            found.append(asked.url.partition("?")[0].rpartition("/")[2])
            if asked.method == "PUT" and "?t=" not in asked.url
            else None
        ),
    )
    return found


def test_a_folder_dropped_again_after_a_reload_sends_only_what_is_new_or_changed(
    visitor: Visitor, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path, 4)
    page = visitor.page
    visitor.go(visitor.make_directory())
    visitor.drop([folder])
    assert finish(visitor).startswith("4 of 4 files,")
    page.reload()
    (folder / "new.bin").write_bytes(b"it was not there before")
    (folder / "0.bin").write_bytes(b"it has another size now")
    (folder / "inner" / "1.bin").write_bytes(bytes(2000))
    os.utime(folder / "inner" / "1.bin", (4e9, 4e9))  # Of the same size, and changed since.
    sent = puts(visitor)

    visitor.drop([folder])
    page.get_by_label("Do the same for all files in this batch").check()
    visitor.picture("question")
    page.get_by_role("button", name="Replace", exact=True).click()

    assert finish(visitor).startswith("3 of 3 files, 2 skipped,")
    assert sorted(sent) == ["0.bin", "1.bin", "new.bin"]
    assert "2 already existed" in page.locator(".queue .hint").inner_text()
    assert page.locator(".queue li.skipped").count() == 2
    visitor.picture("skipped")
    page.get_by_role("button", name="Upload skipped files anyway").click()
    page.locator(".queue .sum").get_by_text("5 of 5 files,").wait_for()
    finish(visitor)
    assert sorted(sent[3:]) == ["2.bin", "3.bin"]


def test_uploads_whose_script_does_not_arrive_say_so_and_begin_when_it_does(visitor: Visitor, tmp_path: Path) -> None:
    folder = make_folder(tmp_path, 2)
    page = visitor.page
    page.route("**/queueview.js", lambda route: route.abort())
    visitor.go(visitor.make_directory())
    visitor.drop([folder])
    page.locator(".queue").get_by_text("nothing was uploaded. Reload this page").wait_for()
    visitor.complaints.clear()  # The browser says that the script did not come.

    page.unroute("**/queueview.js")
    page.reload()
    visitor.drop([folder])
    assert finish(visitor).startswith("2 of 2 files,")
    assert "nothing was uploaded" not in page.locator(".queue").inner_text()


def test_a_lost_connection_pauses_uploads_and_resuming_sends_the_rest(visitor: Visitor, tmp_path: Path) -> None:
    folder = make_folder(tmp_path, 6)
    page = visitor.page
    visitor.go(visitor.make_directory())
    page.route("**/5.bin?*", lambda route: route.abort("connectionreset"))
    page.route("**/4.bin?*", lambda route: route.abort("connectionreset"))

    visitor.drop([folder])

    page.get_by_text("Paused, because the connection to the gateway was lost.").wait_for()
    page.get_by_role("button", name="Resume", exact=True).wait_for()
    visitor.picture("lost")
    page.unroute_all()
    page.get_by_role("button", name="Resume", exact=True).click()
    assert finish(visitor).startswith("6 of 6 files,")
    visitor.complaints.clear()  # The browser says that connections were lost, as they were.


def test_failed_files_say_why_and_are_sent_again_by_a_button(visitor: Visitor, tmp_path: Path) -> None:
    folder = make_folder(tmp_path, 3)
    page = visitor.page
    visitor.go(visitor.make_directory())
    page.route("**/1.bin?*", lambda route: route.fulfill(status=503, body="too few servers can be reached\n"))
    visitor.drop([folder])
    page.locator(".queue li.failed").get_by_text("too few servers can be reached").wait_for()
    page.get_by_text("Finished, with failures").wait_for()
    visitor.picture("failed")
    page.unroute_all()

    page.get_by_role("button", name="Retry failed files").click()

    assert finish(visitor).startswith("3 of 3 files,")
    visitor.complaints.clear()  # The browser says that it was answered 503, as it was.


def test_stopped_files_start_again_and_leaving_during_an_upload_asks_first(
    visitor: Visitor, served: Served, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path, 5, size=300_000)
    page = visitor.page
    visitor.go(visitor.make_directory())
    served.order("slow 400")
    asked: list[str] = []

    def stay(dialog: object) -> None:
        asked.append(dialog.type)  # type: ignore[attr-defined]
        dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", stay)
    visitor.drop([folder])
    page.locator(".queue li.sending, .queue li.storing").first.wait_for()

    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("button", name="Stop uploads in progress too").click()

    page.locator(".queue .sum").get_by_text("Paused", exact=True).wait_for()
    assert "files wait on this page until you resume" in page.locator(".queue .hint").inner_text()
    page.evaluate("location.href = '/servers'")
    page.wait_for_function("() => location.pathname !== '/servers'")
    assert asked == ["beforeunload"]
    served.order("slow 0")
    page.get_by_role("button", name="Resume", exact=True).click()
    assert finish(visitor).startswith("5 of 5 files,")
    page.get_by_role("link", name="Servers", exact=True).click()
    page.get_by_role("heading", name="Servers").wait_for()
    assert asked == ["beforeunload"]


def test_files_with_other_contents_are_replaced_kept_or_skipped_as_the_user_chooses(
    visitor: Visitor, tmp_path: Path
) -> None:
    directory = visitor.make_directory(dict.fromkeys(("a.txt", "b.txt", "c.txt"), b"the old contents"))
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_bytes(b"other contents, and more of them")
    page = visitor.page
    visitor.go(directory)
    visitor.drop([tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "c.txt"])
    question = page.get_by_role("group", name="Replace?")

    for name, choice in (("a.txt", "Replace"), ("b.txt", "Keep both"), ("c.txt", "Skip")):
        question.get_by_text(f"“{name}” already exists").wait_for()
        assert visitor.ask("GET", f"{directory}{name}") == b"the old contents"
        question.get_by_role("button", name=choice, exact=True).click()

    finish(visitor)
    assert visitor.ask("GET", f"{directory}a.txt") == b"other contents, and more of them"
    assert visitor.ask("GET", f"{directory}b.txt") == visitor.ask("GET", f"{directory}c.txt") == b"the old contents"
    assert visitor.ask("GET", f"{directory}b%20(2).txt") == b"other contents, and more of them"
    visitor.picture("chosen")
    page.get_by_role("button", name="Undo: bring back the old a.txt").click()
    page.get_by_text("The old file is back").wait_for()
    assert visitor.ask("GET", f"{directory}a.txt") == b"the old contents"
    page.get_by_role("button", name="Clear the list").click()
    page.locator(".queue").wait_for(state="hidden")


def test_a_second_batch_is_visible_in_a_panel_that_folds_and_a_file_can_be_removed_from_it(
    visitor: Visitor, served: Served, tmp_path: Path
) -> None:
    page = visitor.page
    visitor.go(visitor.make_directory())
    for number in range(40):
        (tmp_path / f"{number}.bin").write_bytes(random.Random(number).randbytes(300))
    visitor.drop([tmp_path / f"{number}.bin" for number in range(30)])
    finish(visitor)
    served.order("hold")

    visitor.drop([tmp_path / f"{number}.bin" for number in range(30, 40)])

    page.get_by_role("list", name="Uploading").get_by_text("30.bin").wait_for()
    assert page.get_by_role("list", name="Uploading").get_by_text("30.bin").is_visible()
    page.get_by_role("button", name="Remove 39.bin from the queue").click()
    visitor.picture("second")
    page.locator(".queue summary").press("Enter")
    page.get_by_text("Keep this page open").wait_for(state="hidden")
    assert page.get_by_role("list", name="Uploading").count() == 0
    assert page.locator(".queue .sum").is_visible() and page.locator(".queue > progress").is_visible()
    visitor.picture("folded")
    served.order("release")
    assert finish(visitor).startswith("39 of 39 files,")
    (tmp_path / "0.bin").write_bytes(b"it has another size now")
    visitor.drop([tmp_path / "0.bin"])
    page.get_by_role("button", name="Skip", exact=True).click()  # A question unfolds the panel.
    finish(visitor)
    # A whole name: "13:23" in one row and "9.bin" in the next hold "39.bin" too.
    assert page.locator("#listing").get_by_text("39.bin", exact=True).count() == 0


def test_a_file_removed_while_the_directory_is_read_is_not_sent(
    visitor: Visitor, served: Served, tmp_path: Path
) -> None:
    page = visitor.page
    visitor.go(visitor.make_directory())
    for name in ("kept.bin", "removed.bin"):
        (tmp_path / name).write_bytes(b"contents of " + name.encode())
    sent = puts(visitor)
    served.order("hold")
    visitor.drop([tmp_path / "kept.bin", tmp_path / "removed.bin"])
    page.get_by_role("list", name="Uploading").get_by_text("removed.bin").wait_for()

    page.get_by_role("button", name="Remove removed.bin from the queue").click()
    served.order("release")

    assert finish(visitor).startswith("1 of 1 file,")
    assert sent == ["kept.bin"]
    assert page.locator("#listing").get_by_text("removed.bin", exact=True).count() == 0


def test_a_file_removed_while_it_is_stored_does_not_appear(visitor: Visitor, served: Served, tmp_path: Path) -> None:
    (tmp_path / "removed.bin").write_bytes(random.Random(2).randbytes(20_000_000))
    page = visitor.page
    visitor.go(visitor.make_directory())
    served.order("slow 400")
    visitor.drop([tmp_path / "removed.bin"])
    page.locator(".queue li.storing").wait_for()

    page.get_by_role("button", name="Remove removed.bin from the queue").click()
    page.locator(".queue").wait_for(state="hidden")
    served.order("slow 0")

    page.reload()
    assert page.locator("#listing").get_by_text("removed.bin", exact=True).count() == 0


def test_a_file_removed_after_it_was_stored_is_reported_as_stored(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "removed.bin").write_bytes(b"it is stored before its sender hears of it")
    page = visitor.page
    visitor.go(visitor.make_directory())
    answered: list[int] = []
    page.route("**/removed.bin?*", lambda route: answered.append(route.fetch().status))
    visitor.drop([tmp_path / "removed.bin"])
    for _ in range(100):
        if answered:
            break
        page.wait_for_timeout(100)
    assert answered == [201]

    page.get_by_role("button", name="Remove removed.bin from the queue").click()

    page.locator(".queue li.done").get_by_text("It was stored before you removed it").wait_for()


def test_storing_is_shown_after_sending(visitor: Visitor, served: Served, tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(random.Random(1).randbytes(20_000_000))
    page = visitor.page
    visitor.go(visitor.make_directory())
    served.order("slow 400")

    visitor.drop([tmp_path / "large.bin"])

    seen = page.wait_for_function(
        "() => (t => t.includes('20.0 MB of 20.0 MB sent, ') && t.includes('Storing') && t)"
        "(document.querySelector('.queue .sum')?.innerText ?? '')"
    )
    assert "stored" in seen.json_value()
    visitor.picture("storing")
    served.order("slow 0")
    assert finish(visitor).startswith("1 of 1 file, 20.0 MB of 20.0 MB")


def test_large_file_continues_after_a_lost_connection_and_after_a_reload(visitor: Visitor, tmp_path: Path) -> None:
    large = tmp_path / "large.bin"
    large.write_bytes(random.Random(10).randbytes(9_000_000))
    directory = visitor.make_directory()
    visitor.go(directory)
    page = visitor.page
    sent: list[tuple[str, str, str]] = []
    page.on(
        "request",
        lambda asked: (
            sent.append((asked.method, asked.headers.get("upload-offset", ""), asked.url.partition("?")[0]))
            if "/uploads" in asked.url or asked.method == "PUT"
            else None
        ),
    )
    first = {"is_lost": True}

    def lose(route: Any) -> None:
        """The first PATCH arrives in part, by a program, and its connection is lost."""
        if route.request.method != "PATCH" or not first.pop("is_lost", False):
            route.continue_()
            return
        path = route.request.url.removeprefix(visitor.address)
        fields = {"Tus-Resumable": "1.0.0", "Upload-Offset": "0"}
        visitor.ask("PATCH", path, large.read_bytes()[:5_000_000], "application/offset+octet-stream", fields)
        route.abort("connectionreset")

    page.route("**/uploads/*", lose)
    visitor.drop([large])
    page.locator(".queue .hint.trouble", has_text="the connection to the gateway was lost").wait_for()
    visitor.complaints.clear()  # The browser says that a connection was lost, as it was.
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    visitor.drop([large])
    page.locator(".queue .sum").get_by_text("Finished", exact=True).wait_for()

    assert [(method, offset) for method, offset, _ in sent] == [
        ("POST", ""),
        ("PATCH", "0"),
        ("HEAD", ""),
        ("PATCH", "5000000"),
        ("PUT", ""),
    ]
    assert visitor.ask("GET", f"{directory}large.bin") == large.read_bytes()
    assert page.evaluate("sessionStorage.length") == 0
