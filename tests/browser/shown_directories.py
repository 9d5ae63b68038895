"""The pages of directories, each in the states that look different."""

from __future__ import annotations

import json
from urllib.parse import quote

from tests.browser.scene import DONE, DROP, FILES, READY, Scene, cap_text, shown
from tests.browser.visitor import uri
from tests.gateway.test_weight import photos


@shown("directory.render_directory")
def show_directory(scene: Scene) -> None:
    scene.go_directory()


@shown("directory.render_directory")
def show_large_files(scene: Scene) -> None:
    made = scene.client.ask("POST", "/uri?t=mkdir-with-children", photos(3, size=999_499_999))
    scene.go(f"{uri(made.decode().strip())}/", READY)


@shown("directory.render_directory")
def show_empty_directory(scene: Scene) -> None:
    scene.go(f"{scene.directory()}sub/", DROP)


@shown("directory.render_directory")
def show_directory_by_a_long_path(scene: Scene) -> None:
    path = scene.directory() + "/".join(["a%20directory%20with%20a%20name%20that%20is%20not%20short"] * 4)
    scene.client.ask("PUT", f"{path}?t=mkdir")
    scene.go(f"{path}/", DROP)


@shown("directory.render_directory")
def show_selected_entries(scene: Scene) -> None:
    scene.go_directory()
    scene.tab.run("for (const each of document.querySelectorAll('#listing tbody .pick input')) each.click()")
    scene.tab.wait_for("document.querySelector('[data-count]')?.textContent === '5 selected'")


@shown("directory.render_directory")
def show_opened_forms(scene: Scene) -> None:
    scene.go_directory()
    scene.tab.run("for (const each of document.querySelectorAll('.actions details, #undo details')) each.open = true")


@shown("directory.render_directory")
def show_changes_to_undo(scene: Scene) -> None:
    path = scene.directory()
    for name in FILES:
        scene.client.ask("DELETE", path + quote(name))
    scene.go(path, READY)
    scene.press("#undo", "Recently removed or replaced here: 4")


@shown("directory.render_directory")
def show_last_page_of_a_long_directory(scene: Scene) -> None:
    children = {f"{number}.txt": ["filenode", {"ro_uri": "URI:LIT:pb4hq"}] for number in range(1010)}
    made = scene.client.ask("POST", "/uri?t=mkdir-with-children", json.dumps(children).encode())
    scene.go(f"{uri(made.decode().strip())}/?page=3", READY)


@shown("directory.render_directory")
def show_names_that_are_not_found(scene: Scene) -> None:
    children = {f"{number}.txt": ["filenode", {"ro_uri": "URI:LIT:pb4hq"}] for number in range(600)}
    made = scene.client.ask("POST", "/uri?t=mkdir-with-children", json.dumps(children).encode())
    scene.go(f"{uri(made.decode().strip())}/?find={'nothing' * 20}", "document.querySelector('#listing .hint')")


@shown("directory.render_directory")
def show_directory_without_shares(scene: Scene) -> None:
    scheme, kind, key, rest = cap_text(scene.directory()).split(":")
    other = ("b" if key[0] == "a" else "a") + key[1:]
    absent = f"{scheme}:{kind}:{other}:{rest}"
    scene.go(f"{uri(absent)}/", "document.querySelector('main .notice.bad')")


def make_backup(scene: Scene) -> str:
    """A directory as `grid backup` leaves it; its path."""
    directory = scene.client.make_directory()
    where = f"/home/ada/{'documents/' * 6}"
    note = {"host": "laptop", "directory": where, "tags": ["weekly"], "files": 12, "size": 10**9}
    snapshots = {}
    for day in (1, 2, 3):
        cap = scene.client.ask("POST", "/uri?t=mkdir-immutable", b"{}").decode().strip()
        facts = {"ro_uri": cap, "metadata": {"grid-snapshot": {**note, "is_complete": day != 3}}}
        snapshots[f"2026-01-0{day}_12:00:00Z"] = ["dirnode", facts]
    scene.client.ask("POST", f"{directory}Archives?t=mkdir-with-children", json.dumps(snapshots).encode())
    scene.client.ask("PUT", f"{directory}Latest?t=mkdir")
    return directory


def see_pictures(scene: Scene) -> None:
    """Show the list as pictures, and scroll to one, which is loaded then."""
    scene.press("#listing", "Pictures")
    scene.tab.run("document.querySelector('#listing th.image').scrollIntoView()")
    scene.tab.wait_for("document.querySelector('#listing img')?.naturalWidth")


@shown("directory.render_directory")
def show_pictures(scene: Scene) -> None:
    scene.go_directory()
    see_pictures(scene)


@shown("directory.render_directory")
def show_selected_pictures(scene: Scene) -> None:
    show_pictures(scene)
    scene.tab.run("for (const each of document.querySelectorAll('#listing tbody .pick input')) each.click()")
    scene.tab.wait_for("document.querySelector('[data-count]')?.textContent === '5 selected'")


@shown("visits.render_shared_directory")
def show_pictures_to_the_visitor_of_a_link(scene: Scene) -> None:
    scene.go(scene.link_to(scene.directory(), "holiday"), "document.querySelector('[data-pictures]:not([hidden])')")
    see_pictures(scene)


@shown("directory.render_directory")
def show_backup(scene: Scene) -> None:
    scene.go(make_backup(scene), READY)


@shown("directory.render_directory")
def show_snapshots(scene: Scene) -> None:
    scene.go(f"{make_backup(scene)}Archives/", "document.querySelectorAll('#snapshots li').length === 3")


@shown("directory.render_directory")
def show_running_upload(scene: Scene) -> None:
    scene.go_directory()
    scene.served.order("hold")
    scene.give("#pick-files", *(f"{number}.txt" for number in range(5)), f"{'long' * 30}!.txt")
    scene.tab.wait_for("document.querySelectorAll('.queue li').length === 6")


@shown("directory.render_directory")
def show_question_of_an_upload(scene: Scene) -> None:
    scene.go_directory()
    scene.give("#pick-files", "a.txt")
    scene.tab.wait_for("document.querySelector('.queue .notice:not([hidden])')")


@shown("directory.render_directory")
def show_finished_upload(scene: Scene) -> None:
    scene.go_directory()
    scene.give("#pick-files", "new.txt", f"{'long' * 30}!.txt")
    scene.tab.wait_for("document.querySelector('.queue .sum')?.textContent.includes('Finished')")


@shown("directory.render_rename")
def show_rename(scene: Scene) -> None:
    scene.go(f"{scene.directory()}?t=rename-form&name=a.txt", DONE)
