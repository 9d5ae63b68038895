"""The dialogs over the gateway's pages. See shown_pages."""

from __future__ import annotations

from tests.browser.scene import LONG, Scene, shown

FOCUSED = "document.activeElement.closest('dialog')"


def edit(scene: Scene, name: str) -> None:
    """Open the dialog in which an entry is renamed, moved or deleted."""
    scene.tab.run(f"document.querySelector('#listing a.edit[href*=\"name={name}\"]').click()")
    scene.tab.wait_for("document.querySelector('dialog #rename-to')")


def pick(scene: Scene, name: str) -> None:
    """Select an entry."""
    scene.tab.run(f"document.querySelector('#listing input[value=\"{name}\"]').click()")
    scene.tab.wait_for("document.querySelector('[data-count]')?.textContent === '1 selected'")


def preview(scene: Scene, name: str, ready: str) -> None:
    """Open a file in the pane."""
    scene.tab.run(
        f"[...document.querySelectorAll('#listing tbody th a')].find((e) => e.textContent === '{name}').click()"
    )
    scene.tab.wait_for(f"document.querySelector('dialog.pane {ready}')")


@shown("directory.render_rename", dialog="dialog")
def show_rename_dialog(scene: Scene) -> None:
    scene.go_directory()
    edit(scene, "b.png")
    scene.tab.wait_for("document.activeElement.id === 'rename-to'")


@shown("replacing.render_conflict", dialog="dialog")
def show_conflict_dialog(scene: Scene) -> None:
    show_rename_dialog(scene)
    scene.tab.run("document.querySelector('dialog #rename-to').value = 'a.txt'")
    scene.press("dialog", "Rename")
    scene.wait_for_heading("Replace")
    scene.tab.wait_for(FOCUSED)


@shown("replacing.render_gone", dialog="dialog")
def show_replaced_dialog(scene: Scene) -> None:
    show_conflict_dialog(scene)
    scene.press("dialog", "Replace")
    scene.wait_for_heading("Replaced")
    scene.tab.wait_for(FOCUSED)


@shown("replacing.render_gone", dialog="dialog")
def show_deleted_dialog(scene: Scene) -> None:
    scene.go_directory()
    edit(scene, "a.txt")
    scene.tab.run("document.querySelector('dialog #sure').click()")
    scene.press("dialog", "Delete")
    scene.wait_for_heading("Deleted")
    scene.tab.wait_for(FOCUSED)


@shown("mistakes.render_mistake", dialog="forms")
def show_mistake_dialog(scene: Scene) -> None:
    scene.go_directory()
    scene.press(".actions", "Link a capability")
    scene.tab.run("document.querySelector('#attach-name').value = 'linked'")
    scene.tab.run("document.querySelector('#attach-cap').value = 'URI:CHK:half'")
    scene.press(".actions", "Link")
    scene.tab.wait_for("document.querySelector('dialog .notice.bad')")


@shown("selection.render_removal", dialog="forms")
def show_removal_dialog(scene: Scene) -> None:
    scene.go_directory()
    pick(scene, LONG)
    scene.press(".selection", "Delete")
    scene.wait_for_heading("Delete 1")


@shown("selection.render_picker", dialog="forms")
def show_picker_dialog(scene: Scene) -> None:
    scene.go_directory()
    pick(scene, LONG)
    scene.press(".selection", "Move")
    scene.wait_for_heading("Move 1")
    scene.press("dialog", "sub")
    scene.tab.wait_for("document.querySelectorAll('dialog .crumbs li').length === 2")


@shown(dialog="shortcuts")
def show_keys_dialog(scene: Scene) -> None:
    scene.go_directory()
    scene.press("footer", "Keyboard shortcuts")
    scene.wait_for_heading("Keyboard")


@shown("info.render_info", dialog="pane")
def show_text_in_the_pane(scene: Scene) -> None:
    scene.go_directory()
    preview(scene, LONG, "pre")


@shown("info.render_info", "file_cards.render_formatted", dialog="pane")
def show_formatted_text_in_the_pane(scene: Scene) -> None:
    scene.go_directory()
    preview(scene, "c.md", "#rendered")


@shown("info.render_info", dialog="pane")
def show_picture_in_the_pane(scene: Scene) -> None:
    scene.go_directory()
    preview(scene, "b.png", "img")


@shown("visits.render_shared_file", dialog="pane")
def show_shared_file_in_the_pane(scene: Scene) -> None:
    scene.go(scene.link_to(scene.directory(), "holiday"), "document.querySelector('#listing tbody th a')")
    preview(scene, LONG, "pre")


@shown("sharing.render_sharing", dialog="dialog")
def show_sharing_dialog(scene: Scene) -> None:
    show_text_in_the_pane(scene)
    scene.press("dialog.pane", "Share")
    scene.wait_for_heading("Share")
    scene.tab.wait_for("document.querySelector('dialog:last-of-type .qr')")


@shown("sharing.render_sharing", "share_links.render_links", dialog="dialog")
def show_sharing_dialog_with_a_link_that_ends(scene: Scene) -> None:
    path = scene.directory()
    scene.enter()
    scene.go(path, "document.querySelector('.heading a[data-dialog]')")
    scene.press(".heading", "Share")
    scene.tab.wait_for("document.querySelector('dialog [data-ending]:not([hidden], [aria-busy])')")
    scene.press("dialog", "Make a link")
    scene.tab.wait_for(
        "document.querySelector('dialog #made-link .qr') && document.querySelector('dialog #share-links li')"
    )
