"""Pages of directories and files: they offer every action, and run nothing that a stranger wrote."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from grid.caps import ChkCap, DirectoryCap, LitCap, SdmfWriteCap, UnknownChild
from grid.directory.pack import Child, Target
from grid.gateway.pages.directory import DirectoryView, Shown, render_directory, render_rename
from grid.gateway.pages.entries import Neighbors, find_neighbors, sorted_entries
from grid.gateway.pages.info import render_info, render_upload_results
from grid.gateway.pages.mistakes import render_mistake
from grid.gateway.pages.paging import parse_page
from grid.gateway.pages.shell import render_error
from tests.gateway.pages.hostile import HOSTILE, require_harmless

WRITE = DirectoryCap(SdmfWriteCap(write_key=b"w" * 16, fingerprint=b"f" * 32))
FILE = ChkCap(key=b"k" * 16, ueb_hash=b"u" * 32, needed=3, total=10, size=123_456)


def view(children: dict[str, Child], cap: DirectoryCap = WRITE, **more: object) -> DirectoryView:
    return DirectoryView(cap=cap, root=cap.to_string(), children=children, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_of_an_entry_becomes_markup_or_leads_elsewhere(name: str) -> None:
    unknown = UnknownChild(write=None, read=b"ro.x-future:" + name.encode(), error=None)
    targets: list[Target] = [FILE, WRITE, LitCap(data=b"abc"), unknown]
    for target in targets:
        child = Child(target=target, metadata={"tahoe": {"linkmotime": name}})
        require_harmless(render_directory(view({name: child, "b": child}, names=("above", name))))
        require_harmless(render_directory(view({name: child, "b": child}, shown=Shown(has_slash=True))))
        require_harmless(render_rename(view({name: child, "b": Child(target=WRITE)}, names=("above",)), name))
        require_harmless(render_info(child, 5, name))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_message_or_problem_becomes_markup(name: str) -> None:
    require_harmless(render_directory(view({}, problem=name)))
    require_harmless(render_error(404, name))
    require_harmless(render_upload_results(FILE, name))


def test_a_directory_that_can_be_changed_has_the_forms_that_scripts_know() -> None:
    document = require_harmless(render_directory(view({"a": Child(target=FILE)})))

    hidden = {field["value"] for field in document.all("input") if field.get("name") == "t"}
    assert {"upload", "mkdir", "uri", "check"} <= hidden
    assert {form["method"] for form in document.all("form")} == {"post"}
    assert any("t=rename-form&name=a" in (link["href"] or "") for link in document.all("a"))


def test_list_is_offered_as_pictures_if_any_entry_is_an_image() -> None:
    for name, is_offered in (("a.jpg", True), ("a.txt", False), ('class="image".txt', False)):
        html = render_directory(view({name: Child(target=FILE), "sub": Child(target=WRITE)}))
        assert ("data-pictures" in html) == is_offered, name


def test_a_directory_that_is_only_read_has_no_form_that_changes_it_and_no_write_capability() -> None:
    reading = WRITE.read_cap()
    html = render_directory(view({"a": Child(target=FILE), "sub": Child(target=reading)}, cap=reading))
    document = require_harmless(html)

    actions = {field["value"] for field in document.all("input") if field.get("name") == "t"}
    assert actions == {"check", "start-deep-check"}
    assert "rename-form" not in html
    assert "URI:DIR2:" not in html
    assert "Read only" in document.text


def test_rows_contain_no_capability_and_name_their_entries_from_the_address_of_the_page() -> None:
    children = {"a b.txt": Child(target=FILE), "c:d": Child(target=WRITE), "e.bin": Child(target=WRITE.body)}
    html = render_directory(view(children, shown=Shown(has_slash=True), sort="size"))
    rows = html.partition("<tbody>")[2].partition("</tbody>")[0]

    assert "URI" not in rows
    links = {each["href"] for each in require_harmless(rows).all("a")}
    assert {"a%20b.txt?t=info&sort=size", "c%3Ad/", "c%3Ad/?t=info", "e.bin?t=info&sort=size"} <= links
    assert {link for link in links if "t=save" in (link or "")} == {"?t=save&name=a%20b.txt", "?t=save&name=e.bin"}


@pytest.mark.parametrize("count", [1, 20, 21, 41, 500])
def test_rows_are_in_full_groups_but_for_the_last_which_alone_is_not_taken_for_full(count: int) -> None:
    html = render_directory(view(many(count)))
    groups = [names_in(group) for group in html.split("<tbody")[1:]]

    assert [name for group in groups for name in group] == [f"file {number}" for number in range(count)]
    assert [len(group) for group in groups] == [20] * (count // 20) + [count % 20] * (count % 20 > 0)
    assert html.count('<tbody class="full">') == count // 20


@pytest.mark.parametrize("count", [1, 11, 12, 500])
def test_field_that_filters_has_its_place_before_scripts_arrive_when_the_list_is_long(count: int) -> None:
    document = require_harmless(render_directory(view(many(count))))
    early = {each.get("class") for _, each in document.elements if "data-early" in each}
    assert early == {"drop", "selection"} | ({"filter"} if count >= 12 else set())


def test_rows_of_a_page_at_another_address_name_the_whole_path() -> None:
    here = view({"a b.txt": Child(target=FILE)})
    links = {each["href"] or "" for each in require_harmless(render_directory(here)).all("a")}
    assert {f"{here.path}a%20b.txt?t=info", f"{here.path}?t=rename-form&name=a%20b.txt"} <= links


@pytest.mark.parametrize("name", ["..", ".", "a\nb", "a\rb", "x" * 1001])
def test_only_file_whose_name_is_too_long_for_an_address_is_downloaded_by_its_own_capability(name: str) -> None:
    html = render_directory(view({name: Child(target=FILE)}, shown=Shown(has_slash=True)))
    rows = require_harmless(html.partition("<tbody>")[2].partition("</tbody>")[0])
    links = [each["href"] or "" for each in rows.all("a")]
    by_cap = sum(link.startswith(f"/file/{quote(FILE.to_string(), safe='')}") for link in links)
    assert by_cap == (len(name) > 1000)
    assert f"?t=save&name={quote(name, safe='')}" in links or by_cap
    assert "DIR2" not in "".join(links)


def test_labels_of_rows_are_words_and_names_that_the_page_has_once() -> None:
    children = {"a.txt": Child(target=FILE), "sub": Child(target=WRITE)}
    document = require_harmless(render_directory(view(children)))

    ids = [attributes["id"] for _, attributes in document.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    labels = [
        attributes["aria-labelledby"] or "" for _, attributes in document.elements if "aria-labelledby" in attributes
    ]
    assert {word for label in labels for word in label.split()} <= set(ids)
    assert sorted(label for label in labels if label.endswith(" n1")) == ["d n1", "e n1", "s n1"]


def test_every_picture_that_a_page_names_is_drawn_in_it_once() -> None:
    children = {"a.txt": Child(target=FILE), "b.png": Child(target=FILE), "sub": Child(target=WRITE)}
    document = require_harmless(render_directory(view(children)))

    drawn = [each["id"] for each in document.all("symbol")]
    assert len(drawn) == len(set(drawn))
    assert {(each["href"] or "").removeprefix("#") for each in document.all("use")} <= set(drawn)


def test_share_links_say_what_each_capability_allows() -> None:
    document = require_harmless(render_info(Child(target=WRITE.body), 10, "notes.txt"))

    shown = [field["value"] for field in document.all("input") if field.get("class") == "cap"]
    cap = WRITE.body
    assert isinstance(cap, SdmfWriteCap)
    assert shown == [cap.to_string(), cap.read_cap().to_string(), cap.read_cap().verify_cap().to_string()]
    assert "read and change the file" in document.text
    assert "Repair needs the write capability." in document.text
    assert "check and repair the shares" in require_harmless(render_info(Child(target=FILE), 10, "a.txt")).text


def test_refusal_of_a_forbidden_file_does_not_say_that_its_capability_is_read_only() -> None:
    shown = require_harmless(render_mistake(403, "Access Prohibited: by court order", servers=[])).text
    assert "Access Prohibited: by court order." in shown and "read-only" not in shown


@pytest.mark.parametrize(
    ("name", "element"), [("a.png", "img"), ("a.mp4", "video"), ("a.wav", "audio"), ("a.pdf", "div"), ("a.txt", "div")]
)
def test_a_preview_shows_each_kind_by_what_browsers_have_for_it(name: str, element: str) -> None:
    document = require_harmless(render_info(Child(target=FILE), FILE.size, name))

    found = [each for each in document.all(element) if "src" in each or "data-preview" in each]
    assert len(found) == 1
    assert (found[0].get("src") or found[0].get("data-address") or "").startswith("/file/")


def test_an_archive_has_no_preview() -> None:
    assert 'id="preview"' not in render_info(Child(target=FILE), FILE.size, "a.tar.gz")


def test_an_empty_directory_says_so_and_a_lost_one_says_why() -> None:
    assert "This directory is empty" in render_directory(view({}))
    assert "Too few shares." in render_directory(view({}, problem="too few shares"))


def test_deletion_must_be_confirmed() -> None:
    document = require_harmless(render_rename(view({"a": Child(target=FILE)}), "a"))

    (box,) = [field for field in document.all("input") if field.get("type") == "checkbox"]
    assert "required" in box


def test_numbers_in_names_are_sorted_by_value() -> None:
    names = ["folder-10", "folder-2", "Folder-1", "folder-02", "a", "10", "9", "x" * 9 + "1" * 5000]
    children = {name: Child(target=FILE) for name in names}

    ordered = [name for name, _ in sorted_entries(children, "name", descending=False)]

    assert ordered == ["9", "10", "a", "Folder-1", "folder-02", "folder-2", "folder-10", "x" * 9 + "1" * 5000]


def test_headings_sort_directories_separately_and_entries_without_a_size_last() -> None:
    small, large = LitCap(data=b"abc"), FILE
    children = {
        name: Child(target=target) for name, target in (("s", small), ("l", large), ("m", WRITE.body), ("d", WRITE))
    }

    by_size = [name for name, _ in sorted_entries(children, "size", descending=True)]

    assert by_size == ["d", "l", "s", "m"]
    head = require_harmless(render_directory(view(children, sort="size", descending=True))).all("th")[:3]
    assert [each.get("aria-sort") for each in head] == [None, "descending", None]


def many(count: int) -> dict[str, Child]:
    return {f"file {number}": Child(target=LitCap(data=b"x" * (number % 50))) for number in range(count)}


def names_in(html: str) -> list[str]:
    return re.findall(r"<tr><th.*?<bdi[^>]*>(.*?)</bdi>", html, re.S)


def test_long_list_is_cut_into_pages_after_it_is_sorted_as_a_whole() -> None:
    children = many(1201)
    pages = [render_directory(view(children, page=number)) for number in (1, 2, 3)]

    assert [len(names_in(html)) for html in pages] == [500, 500, 201]
    assert [name for html in pages for name in names_in(html)] == [f"file {number}" for number in range(1201)]
    assert "1201 entries, 501 to 1000 shown" in pages[1]
    links = [link["href"] or "" for link in require_harmless(pages[1]).all("a") if "page=" in (link["href"] or "")]
    assert any(link.endswith("sort=name&page=3") for link in links)
    first = render_directory(view(children, sort="size", descending=True))
    assert set(names_in(first)[:24]) == {f"file {number}" for number in range(49, 1201, 50)}


@pytest.mark.parametrize(("asked", "shown"), [(0, 500), (99, 1), (3, 1)])
def test_page_that_is_not_there_is_the_nearest_that_is(asked: int, shown: int) -> None:
    assert len(names_in(render_directory(view(many(501), page=asked)))) == shown


def test_names_are_found_in_all_pages_of_a_long_list() -> None:
    found = render_directory(view(many(1201), find="FILE 119"))
    assert names_in(found) == ["file 119", "file 1119", *(f"file {number}" for number in range(1190, 1200))]
    assert "12 of 1201 entries found" in found
    assert "No names contain" in render_directory(view(many(1201), find="<b>"))
    require_harmless(render_directory(view(many(1201), find="<b>")))


def test_short_list_has_no_pages_and_a_way_to_sort_it_without_headings() -> None:
    html = render_directory(view(many(500), sort="size"))
    assert "Pages of this list" not in html and len(names_in(html)) == 500
    sorting = html.partition('class="sorting"')[2].partition("</nav>")[0]
    assert sorting.count("<a ") == 3 and "sort=size&amp;order=desc" in sorting and "sort=changed" in sorting


@pytest.mark.parametrize(
    ("text", "number"), [(None, 1), ("", 1), ("7", 7), ("-1", 1), ("x", 1), ("9" * 20, 1), ("²", 1)]
)
def test_invalid_page_number_selects_the_first_page(text: str | None, number: int) -> None:
    assert parse_page(text) == number


def test_neighbors_of_a_file_are_files_in_the_order_of_the_list_that_a_path_can_name() -> None:
    children = {
        name: Child(target=LitCap(data=b"x" * size), metadata={})
        for name, size in {"file 10": 1, "file 9": 2, ".": 2, "a": 3}.items()
    } | {"dir": Child(target=WRITE), "odd": Child(target=UnknownChild(read=b"ro.x-future:", write=None, error=None))}
    assert find_neighbors(children, "a", "name", False) == Neighbors(before=None, after="file 9", number=1, count=3)
    assert find_neighbors(children, "file 9", "name", False) == Neighbors(
        before="a", after="file 10", number=2, count=3
    )
    assert find_neighbors(children, "file 9", "size", True) == Neighbors(before="a", after="file 10", number=2, count=3)
    assert find_neighbors(children, "a", "size", False) == Neighbors(before="file 9", after=None, number=3, count=3)
    for name in ("dir", "odd", ".", "gone"):
        assert find_neighbors(children, name, "name", False) is None


def test_refusal_of_a_name_is_a_sentence_and_other_errors_keep_the_words_that_programs_know() -> None:
    assert '<p class="lead">Not this name; take another.</p>' in render_error(421, "not this name; take another")
    assert '<p class="lead">no such thing</p>' in render_error(404, "no such thing")
