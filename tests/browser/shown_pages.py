"""The pages of the gateway but those of directories, each in the states that look different."""

from __future__ import annotations

import json
import os
import random

from tests.browser.scene import DONE, DROP, FILES, Scene, cap_text, shown
from tests.browser.visitor import uri


@shown("home.render_welcome")
def show_home(scene: Scene) -> None:
    scene.go("/", DROP)


@shown("home.render_welcome")
def show_home_after_an_upload(scene: Scene) -> None:
    scene.go("/", DROP)
    scene.give("#pick-files", "a <b> c.txt", f"{'long' * 30}.txt")
    scene.tab.wait_for("document.querySelectorAll('.given input.cap').length === 2")


@shown("home.render_welcome")
def show_home_without_servers(scene: Scene) -> None:
    for number in range(4):
        scene.served.kill(number)
    scene.go("/", DROP)


@shown("home.render_welcome", "home.render_own")
def show_own_home(scene: Scene) -> None:
    path = scene.directory()
    lines = f"work: {cap_text(path)}\n{'a-long-name-' * 8}: {cap_text(path)}\n"
    (scene.served.folder / "aliases").write_text(lines)
    scene.enter()
    scene.give(
        "#pick-files", f"{'long' * 30}.txt", text="the contents of a file that has shares of its own, the contents"
    )
    scene.tab.wait_for("document.querySelector('#recent')?.textContent.includes('longlong')")


@shown("home.render_welcome", "home.render_entrance")
def show_entrance(scene: Scene) -> None:
    # The page goes on at once, so its contents are shown in another one.
    scene.go("/", DROP)
    scene.tab.evaluate(
        "fetch('/home?t=enter').then((answer) => answer.text()).then((text) => {"
        " const page = new DOMParser().parseFromString(text, 'text/html');"
        " document.querySelector('main').replaceChildren(...page.querySelector('main').childNodes); return 1; })"
    )
    late = "document.querySelector('main .late')"
    scene.tab.wait_for(f"{late} && getComputedStyle({late}).visibility === 'visible'")


@shown("home.render_visitors_home")
def show_visitors_home(scene: Scene) -> None:
    scene.tab.go(f"{scene.served.visits}/")
    scene.tab.wait_for(DONE)


@shown("directory.render_directory")
def show_directory_to_a_visitor(scene: Scene) -> None:
    scene.tab.go(scene.served.visits + scene.directory())
    scene.tab.wait_for("document.querySelector('#listing')")


@shown("servers.render_servers")
def show_servers(scene: Scene) -> None:
    scene.go("/servers", DONE)


@shown("servers.render_servers")
def show_servers_that_are_away(scene: Scene) -> None:
    scene.served.kill(0)
    scene.served.kill(3)
    scene.go("/servers", DONE)


@shown("operation_list.render_operations")
def show_operations(scene: Scene) -> None:
    scene.client.ask("GET", uri(scene.client.store(random.Random(5).randbytes(100_000))))
    # Of this kind there are few, so axe does not take long.
    scene.go("/status?kind=download&all=true", "document.querySelector('#operations table')")


@shown("operations.render_operation")
def show_operation(scene: Scene) -> None:
    scene.client.store(random.Random(1).randbytes(100_000))
    recent = json.loads(scene.client.ask("GET", "/status?t=json"))["recent"]
    upload = next(operation["id"] for operation in recent if operation["type"] == "upload")
    scene.go(f"/status/{upload}", "document.querySelector('svg.timeline')")


@shown("statistics.render_statistics")
def show_statistics(scene: Scene) -> None:
    scene.go("/statistics", "document.querySelector('.plot svg')")


@shown("storage.render_no_storage")
def show_no_storage(scene: Scene) -> None:
    scene.served.order("no-storage")
    scene.go("/storage", DONE)


@shown("storage.render_storage")
def show_storage(scene: Scene) -> None:
    scene.served.order("storage")
    scene.client.store(random.Random(2).randbytes(100_000))
    scene.go("/storage", "document.querySelector('table.cards')")


@shown("monitoring_resource.render_plain")
def show_helper(scene: Scene) -> None:
    scene.go("/helper_status", DONE)


@shown("info.render_info")
def show_file(scene: Scene) -> None:
    scene.go(f"{scene.directory()}a.txt?t=info", "document.querySelector('#preview pre')")


@shown("info.render_info")
def show_picture(scene: Scene) -> None:
    scene.go(f"{scene.directory()}b.png?t=info", "document.querySelector('#preview img')?.naturalWidth")


@shown("info.render_info")
def show_editable_file(scene: Scene) -> None:
    path = scene.directory()
    scene.client.ask("PUT", f"{path}editable.txt?format=sdmf", b"contents")
    scene.go(f"{path}editable.txt?t=info", "document.querySelector('#preview pre')")


@shown("info.render_info")
def show_details_of_a_directory(scene: Scene) -> None:
    scene.go(f"{scene.directory()}sub/?t=info", DONE)


@shown("info.render_info")
def show_unknown_kind(scene: Scene) -> None:
    scene.go(f"{uri('ro.x-future:something')}?t=info", "document.querySelector('.notice.warn')")


@shown("info.render_info", "health.render_check_results")
def show_health(scene: Scene) -> None:
    path = f"{uri(scene.client.store(random.Random(3).randbytes(100_000)))}?t=info"
    scene.served.kill(2)
    scene.go(path, DONE)
    scene.press("#health", "Check")
    scene.tab.wait_for("document.querySelector('.shares')")


@shown("info.render_upload_results")
def show_stored_file(scene: Scene) -> None:
    scene.go("/", DROP)
    scene.give("#upload-file", "a.txt")
    scene.tab.run("document.querySelector('#upload-file').form.submit()")
    scene.wait_for_heading("File stored", "main")


@shown("file_cards.render_formatted")
def show_formatted_text(scene: Scene) -> None:
    scene.go(f"{scene.directory()}c.md?t=preview", "document.querySelector('#rendered')")


@shown("sharing.render_sharing")
def show_sharing(scene: Scene) -> None:
    scene.go(f"{scene.directory()}?t=share", "document.querySelector('.qr')")


@shown("health.render_check_results")
def show_check_of_a_directory(scene: Scene) -> None:
    path = scene.go_directory()
    scene.send(path, "Health", t="check", return_to=path)


@shown("tree_check.render_tree_check")
def show_running_check(scene: Scene) -> None:
    path = scene.go_directory()
    scene.served.order("hold")
    scene.send(path, "Check of everything below", t="start-deep-check", ask="true")
    scene.tab.wait_for("document.querySelector('#operation progress')")


@shown("tree_check.render_tree_check")
def show_finished_check(scene: Scene) -> None:
    path = scene.go_directory()
    scene.served.kill(1)
    scene.served.kill(4)
    scene.send(path, "Check of everything below", t="start-deep-check", ask="true")
    scene.tab.wait_for("document.querySelector('#unhealthy') && !document.querySelector('.busy')")


@shown("tree_operation.render_tree_operation")
def show_operation_of_a_program(scene: Scene) -> None:
    path = scene.go_directory()
    handle = os.urandom(8).hex()
    scene.send(path, "List of everything below", t="start-manifest", ophandle=handle, output="html")
    scene.tab.wait_for("document.querySelectorAll('#operation .card li').length === 6")
    scene.tab.wait_for("![...document.querySelectorAll('button')].some((each) => each.textContent === 'Stop')")


@shown("replacing.render_conflict")
def show_conflict(scene: Scene) -> None:
    path = scene.go_directory()
    scene.send(path, "Replace", t="rename", from_name="b.png", to_name="a.txt", ask="true", when_done=path)


@shown("replacing.render_gone")
def show_deleted_entry(scene: Scene) -> None:
    path = scene.go_directory()
    scene.send(path, "Deleted", t="unlink", name="a.txt", ask="true", when_done=path)


@shown("selection.render_removal")
def show_removal(scene: Scene) -> None:
    path = scene.go_directory()
    scene.send(path, "Delete 1", t="unlink-many", name="a.txt", when_done=path)


@shown("selection.render_picker")
def show_picker(scene: Scene) -> None:
    path = scene.go_directory()
    scene.send(path, "Move 1", t="move-many", name="a.txt", when_done=path)


@shown("mistakes.render_mistake")
def show_mistake(scene: Scene) -> None:
    path = scene.go_directory()
    scene.send(path, "", t="uri", name="linked", uri=f"URI:CHK:{'half' * 30}", ask="true", when_done=path)
    scene.tab.wait_for("document.querySelector('main .notice.bad')")


@shown("mistakes.render_mistake")
def show_missing_file(scene: Scene) -> None:
    scene.go(f"{scene.directory()}{'gone' * 30}.txt", "document.querySelector('main .notice.bad')")


@shown("mistakes.render_mistake")
def show_blocked_file(scene: Scene) -> None:
    path = f"{uri(scene.client.store(random.Random(4).randbytes(2000)))}?t=info"
    scene.block(path, "it must not be shown")
    scene.go(path, "document.querySelector('main .notice.bad')")


@shown("mistakes.render_mistake")
def show_what_visitors_may_not_see(scene: Scene) -> None:
    scene.tab.go(f"{scene.served.visits}/servers")
    scene.tab.wait_for("document.querySelector('main .notice.bad')")


@shown("shell.render_error")
def show_error(scene: Scene) -> None:
    # A name that the gateway does not answer to. Browsers know its address without asking anybody.
    scene.tab.go(scene.served.address.replace("127.0.0.1", "elsewhere.localhost"))
    styled = "getComputedStyle(document.querySelector('.failure') ?? document.body).textAlign === 'center'"
    scene.tab.wait_for(styled)


@shown("visits.render_shared_directory")
def show_shared_directory(scene: Scene) -> None:
    scene.go(scene.link_to(scene.directory(), "holiday", most_downloads=3), "document.querySelector('#listing')")


@shown("visits.render_shared_directory")
def show_directory_in_a_shared_one(scene: Scene) -> None:
    scene.go(f"{scene.link_to(scene.directory(), 'holiday')}sub/", "document.querySelector('.crumbs')")


@shown("visits.render_shared_file")
def show_file_in_a_shared_directory(scene: Scene) -> None:
    link = scene.link_to(scene.directory(), "holiday")
    scene.go(f"{link}a.txt?t=info", "document.querySelector('#preview pre')")


@shown("visits.render_shared_file")
def show_shared_file(scene: Scene) -> None:
    cap = scene.client.store(FILES["a.txt"])
    scene.go(scene.link_to(uri(cap), f"{'long' * 30}.txt"), "document.querySelector('#preview pre')")


@shown("visits.render_password")
def show_password(scene: Scene) -> None:
    scene.go(scene.link_to(scene.directory(), "holiday", "open sesame"), "document.querySelector('#password')")


@shown("visits.render_password")
def show_wrong_password(scene: Scene) -> None:
    show_password(scene)
    scene.tab.run("document.querySelector('#password').value = 'wrong'; document.querySelector('main form').submit()")
    scene.tab.wait_for("document.querySelector('.notice.bad')")


@shown("visits.render_gone")
def show_ended_link(scene: Scene) -> None:
    scene.go("/s/no-such-token/", DONE)


@shown("visits.render_unavailable")
def show_links_that_cannot_be_opened(scene: Scene) -> None:
    link = scene.link_to(scene.directory(), "holiday")
    file = scene.served.folder / "share-links.json"
    file.chmod(0o644)  # Others could read it.
    try:
        scene.go(link, DONE)
    finally:
        file.chmod(0o600)
