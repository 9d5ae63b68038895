"""The pages by keyboard alone, in both browsers: a walk from the first page through a directory, and every listed shortcut.

Wherever the walk stops, the focus can be seen; and when a dialog closes, it is where it was before, or at what has changed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.scene import DROP, READY, Scene
from tests.browser.tabs import Tab

pytestmark = pytest.mark.browser

FOCUS = """(() => {
  const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
  const middle = (from, to, most) => (Math.max(from, 0) + Math.min(to, most)) / 2;
  const at = document.elementFromPoint(middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight));
  const named = (e.getAttribute('aria-labelledby') ?? '').split(' ').filter(Boolean);
  const label = named.map((id) => document.getElementById(id).textContent).join(' ');
  return [e.getAttribute('aria-label') || label || e.labels?.[0]?.textContent || e.textContent.trim() || e.id,
    style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 3,
    box.bottom > 0 && box.top < innerHeight && Boolean(at) && (e.contains(at) || at.contains(e))];
})()"""
"""The name of what has the focus, whether it is marked, and whether it is in the window with nothing over it."""

IS_PAGE = "document.activeElement.matches('body, main')"


def focused(tab: Tab) -> str:
    """The name of what has the focus, which can be seen."""
    name, is_marked, is_in_window = tab.evaluate(FOCUS)
    assert is_marked and is_in_window, name
    return str(name)


def tab_to(tab: Tab, words: str, key: str = "Tab") -> None:
    """Press Tab until something whose name begins with these words has the focus. All between can be seen, too."""
    names: list[str] = []
    for _ in range(120):
        tab.press(key)
        if not tab.evaluate(IS_PAGE):
            names.append(focused(tab))
            if names[-1].startswith(words):
                return
    raise AssertionError(f"not reached: {words}, but {names}")


def wait_for_focus(tab: Tab, words: str) -> None:
    """Wait until what has this text has the focus."""
    tab.wait_for(f"document.activeElement.textContent.trim() === '{words}'")
    focused(tab)


def wait_for_heading(tab: Tab, words: str) -> None:
    """Wait until a dialog with this heading has the focus inside."""
    tab.wait_for(
        f"document.querySelector('dialog[open]:last-of-type :is(h1, h2)')?.textContent.startsWith('{words}')"
        " && document.activeElement.closest('dialog')"
    )


def wait_for_no_dialog(tab: Tab) -> None:
    tab.wait_for("document.querySelector('dialog') === null")


def test_walk_from_the_first_page_through_a_directory_needs_no_mouse(scene: Scene) -> None:
    tab = scene.tab
    directory = scene.client.make_directory({f"{number}.txt": b"text %d" % number for number in range(1, 5)})
    scene.client.ask("PUT", f"{directory}sub?t=mkdir")
    scene.go("/", DROP)
    tab_to(tab, "Skip to content")
    tab.press("Enter")
    tab_to(tab, "Choose files")
    tab_to(tab, "Capability or link")
    tab.write(f"{scene.served.address}{directory}")
    tab.press("Enter")
    tab.wait_for(READY)

    preview(tab)
    rename(tab)
    select_and_move(tab)
    share(tab)
    delete_and_undo(tab)
    assert sorted(
        scene.client.ask("GET", f"{directory}sub/?t=json").decode().count(f'"{name}"') for name in ("2.txt",)
    ) == [1]


def preview(tab: Tab) -> None:
    tab_to(tab, "1.txt")
    tab.press("Enter")
    tab.wait_for("document.querySelector('dialog.pane pre')?.textContent === 'text 1'")
    for key, number in (("ArrowRight", 2), ("]", 3), ("[", 2), ("ArrowRight", 3), ("ArrowLeft", 2)):
        tab.press(key)
        tab.wait_for(f"document.querySelector('dialog.pane pre')?.textContent === 'text {number}'")
        assert tab.evaluate("document.activeElement.closest('dialog') !== null")
    tab_to(tab, "Next: 3.txt")
    tab.press("Enter")
    tab.wait_for("document.querySelector('dialog.pane pre')?.textContent === 'text 3'")
    wait_for_focus(tab, "Next")
    tab.press("Escape")
    wait_for_no_dialog(tab)
    wait_for_focus(tab, "3.txt")


def rename(tab: Tab) -> None:
    tab.press("F2")
    tab.wait_for("document.activeElement.name === 'to_name'")
    focused(tab)
    tab.press("Escape")
    wait_for_focus(tab, "3.txt")
    tab.press("F2")
    tab.write("better")
    tab.press("Enter")
    wait_for_focus(tab, "better.txt")
    tab_to(tab, "Rename, move or delete better.txt")
    tab.press("Enter")
    tab.wait_for("document.activeElement.id === 'rename-to'")
    focused(tab)
    tab.press("Escape")
    wait_for_no_dialog(tab)
    assert focused(tab) == "Rename, move or delete better.txt"


def select_and_move(tab: Tab) -> None:
    tab_to(tab, "2.txt", "Shift+Tab")
    tab.press("x")
    tab.wait_for("document.querySelector('[data-count]')?.textContent === '1 selected'")
    tab_to(tab, "Move")
    tab.press("Enter")
    wait_for_heading(tab, "Move 1 entry")
    tab.press("Escape")
    wait_for_no_dialog(tab)
    assert focused(tab) == "Move" and tab.evaluate("document.querySelector('[data-count]').textContent") == "1 selected"
    tab.press("Enter")
    wait_for_heading(tab, "Move 1 entry")
    tab_to(tab, "sub")
    tab.press("Enter")
    tab.wait_for(
        "document.querySelectorAll('dialog .crumbs li').length === 2 && document.activeElement.closest('dialog')"
    )
    tab_to(tab, "Move here")
    tab.press("Enter")
    wait_for_no_dialog(tab)
    tab.wait_for("document.querySelectorAll('#listing tbody tr').length === 4")
    tab.wait_for("document.activeElement.closest('#listing tbody')")
    focused(tab)


def share(tab: Tab) -> None:
    tab_to(tab, "Share", "Shift+Tab")
    tab.press("Enter")
    wait_for_heading(tab, "Share")
    focused(tab)
    tab_to(tab, "Copy: Link")
    tab.press("Escape")
    wait_for_no_dialog(tab)
    assert focused(tab) == "Share"


def delete_and_undo(tab: Tab) -> None:
    tab_to(tab, "1.txt")
    tab.press("x")
    tab_to(tab, "Delete")
    tab.press("Enter")
    wait_for_heading(tab, "Delete 1 entry?")
    tab_to(tab, "Delete")
    tab.press("Enter")
    wait_for_no_dialog(tab)
    tab.wait_for("document.querySelectorAll('#listing tbody tr').length === 3")
    tab.wait_for("document.activeElement.closest('#listing tbody')")
    focused(tab)
    tab.press("z")
    tab.wait_for("document.activeElement.closest('#undo')")
    assert focused(tab) == "Put back 1.txt"
    tab.press("Enter")
    wait_for_focus(tab, "1.txt")


def test_focus_is_at_the_renamed_entry_in_a_list_with_an_order_of_its_own(scene: Scene) -> None:
    tab = scene.tab
    directory = scene.client.make_directory({"a.txt": b"first", "b.txt": b"the second"})
    scene.go(f"{directory}?sort=size&order=desc", READY)
    tab.press("j")
    wait_for_focus(tab, "b.txt")
    tab.press("F2")
    tab.write("z")
    tab.press("Enter")
    wait_for_focus(tab, "z.txt")
    tab.wait_for("document.getElementById('announce').textContent === 'Renamed b.txt to z.txt'")
    wait_for_focus(tab, "z.txt")
    names = tab.evaluate("[...document.querySelectorAll('#listing tbody bdi')].map((each) => each.textContent)")
    assert names == ["z.txt", "a.txt"], "the largest first, as before"


def test_focus_returns_to_where_the_list_of_keys_was_opened(scene: Scene) -> None:
    tab = scene.tab
    scene.go(scene.client.make_directory({"a.txt": b"first"}), READY)
    tab.press("j")
    tab.press("?")
    wait_for_heading(tab, "Keyboard shortcuts")
    tab.press("Escape")
    wait_for_no_dialog(tab)
    wait_for_focus(tab, "a.txt")


def pressed(*keys: str, then: str) -> Callable[[Scene], None]:
    """What presses keys in a directory, and waits until this is true."""

    def check(scene: Scene) -> None:
        for key in keys:
            scene.tab.press(key)
        scene.tab.wait_for(then)

    return check


def on_file(key: str, number: int) -> Callable[[Scene], None]:
    """What presses a key on the page of a file, and waits for the page of another."""

    def check(scene: Scene) -> None:
        scene.tab.run("location.href = '5.txt?t=info'")
        scene.tab.wait_for("document.querySelector('.neighbors') && document.querySelector('#preview pre')")
        scene.tab.press(key)
        scene.tab.wait_for(f"document.querySelector('main h1')?.textContent === '{number}.txt'")

    return check


def in_preview(key: str, number: int) -> Callable[[Scene], None]:
    """What presses a key in the preview of the second file."""

    def check(scene: Scene) -> None:
        for each in ("j", "j", "j", "Enter"):
            scene.tab.press(each)
        scene.tab.wait_for("document.querySelector('dialog.pane pre')?.textContent === 'text 2'")
        scene.tab.press(key)
        scene.tab.wait_for(f"document.querySelector('dialog.pane pre')?.textContent === 'text {number}'")

    return check


def go_up(scene: Scene) -> None:
    pressed(
        "j",
        "Enter",
        then="location.pathname.endsWith('/sub/') && document.querySelector('footer button:not([hidden])')",
    )(scene)
    pressed(
        "u", then="location.pathname.endsWith('/') && document.querySelectorAll('#listing tbody tr').length === 14"
    )(scene)


def download(scene: Scene) -> None:
    scene.tab.run(
        "document.addEventListener('click', (event) => { if (!event.target.closest('a[download]')) return;"
        " event.preventDefault(); window.asked = event.target.closest('a').href; })"
    )
    pressed("d", then="window.asked?.endsWith('?t=zip')")(scene)


def escape(scene: Scene) -> None:
    pressed("j", "x", then="document.querySelector('[data-count]').textContent === '1 selected'")(scene)
    pressed("Escape", then="document.querySelector('form.selection').hidden")(scene)
    pressed("?", then="document.querySelector('dialog')")(scene)
    pressed("Escape", then="!document.querySelector('dialog')")(scene)


ACTIVE = "document.activeElement"

SHORTCUTS: dict[str, Callable[[Scene], None]] = {
    "?": pressed("?", then="document.querySelector('dialog h2')?.textContent === 'Keyboard shortcuts'"),
    "/": pressed("/", then=f"{ACTIVE}.id === 'filter'"),
    "j": pressed("j", "j", then=f"{ACTIVE}.textContent === '1.txt'"),
    "k": pressed("k", then=f"{ACTIVE}.textContent === '13.txt'"),
    "↓": pressed("j", "ArrowDown", then=f"{ACTIVE}.textContent === '1.txt'"),
    "↑": pressed("j", "ArrowDown", "ArrowDown", "ArrowUp", then=f"{ACTIVE}.textContent === '1.txt'"),
    "x": pressed("j", "x", then="document.querySelector('[data-count]').textContent === '1 selected'"),
    "F2": pressed("j", "F2", then=f"{ACTIVE}.name === 'to_name'"),
    "u": go_up,
    "[": on_file("[", 4),
    "]": on_file("]", 6),
    "←": in_preview("ArrowLeft", 1),
    "→": in_preview("ArrowRight", 3),
    "Esc": escape,
    "n": pressed("n", then=f"{ACTIVE}.id === 'mkdir-name'"),
    "a": pressed("a", then=f"{ACTIVE}.textContent === 'Choose files'"),
    "z": pressed("z", then=f"{ACTIVE}.textContent === 'Put back'"),
    "d": download,
    "h": pressed("h", then="location.pathname === '/'"),
}
"""What shows that each key does what the list says."""


def test_list_of_keys_is_complete_and_each_key_does_what_it_says(scene: Scene) -> None:
    directory = scene.client.make_directory({f"{number}.txt": b"text %d" % number for number in range(1, 14)})
    scene.client.ask("PUT", f"{directory}sub?t=mkdir")
    scene.client.ask("PUT", f"{directory}gone.txt", b"gone")
    scene.client.ask("DELETE", f"{directory}gone.txt")
    scene.go(directory, READY)
    SHORTCUTS["?"](scene)
    listed = scene.tab.evaluate("[...document.querySelectorAll('dialog kbd')].map((e) => e.textContent)")
    assert listed == list(SHORTCUTS)
    for key, check in SHORTCUTS.items():
        scene.go("/", DROP)  # To load the same address again may open the preview again.
        scene.go(directory, READY)
        print(key)  # Names the key if its check fails.
        check(scene)
