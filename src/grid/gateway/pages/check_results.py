"""The answer to a check, a verification or a repair, for people. Pure. [spec webapi 6.1]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grid.gateway.pages.directory import check_form
from grid.gateway.pages.health import health_card
from grid.gateway.pages.markup import tag
from grid.gateway.pages.server_view import ServerView
from grid.gateway.pages.shell import document


def render_check_results(
    checked: Mapping[str, object], known: Sequence[ServerView], path: str, return_to: str | None = None
) -> str:
    """checked: as programs get it. known: all servers. path: of the object; return_to: where to go back to."""
    back = tag("p", tag("a", "Back", href=return_to or path, class_="button quiet"))
    return document("Health", tag("h1", "Health"), health_card(checked, known, check_form(path)), back)
