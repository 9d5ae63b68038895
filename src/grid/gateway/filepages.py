"""What people see of a file that was stored, and of one they ask about. [spec webapi 3, 4.1]"""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from grid.caps import KnownCap, UnknownChild
from grid.directory.pack import Child
from grid.gateway.answers import Answer, page


def upload_page(cap: KnownCap) -> Answer:
    """An unlinked immutable file was stored."""
    text = cap.to_string()
    return page(_page("File stored", f'<p><a href="/uri/{quote(text, safe="")}"><code>{escape(text)}</code></a></p>'))


def info_page(child: Child, size: int | None) -> Answer:
    """What is known of a file or of an object of an unknown kind. size: octets, None if they are not known."""
    target = child.target
    if isinstance(target, UnknownChild):
        return page(_page("Object of an unknown kind", "<p>This capability is of a kind that is not known here.</p>"))
    rows = [("Size", "unknown" if size is None else f"{size} bytes"), ("Mutable", "yes" if target.is_mutable else "no")]
    if target.authority == "write":
        rows.append(("Write capability", target.to_string()))
    if target.authority != "verify":
        rows.append(("Read capability", target.read_cap().to_string()))
    verify = target.verify_cap()
    if verify is not None:
        rows.append(("Verify capability", verify.to_string()))
    listed = "".join(f"<dt>{escape(name)}</dt><dd><code>{escape(value)}</code></dd>" for name, value in rows)
    return page(_page("File", f"<dl>{listed}</dl>"))


def _page(title: str, body: str) -> str:
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )
