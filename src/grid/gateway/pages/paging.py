"""Splits a long listing into pages and links them. Pure. [spec webapi 10]

Sorting and searching come first and cover all entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from grid.directory.pack import Child
from grid.gateway.pages.markup import Markup, join, tag
from grid.plural import counted
from grid.values import frozen

PAGE_ROWS = 500
"""Entries of one page: as many as a browser shows quickly, even on a phone."""

MAX_FIND = 300
"""Characters of a search text; the rest is cut off."""


@frozen
class Paged:
    """One page of the entries. number: from 1; a number out of range selects the nearest page."""

    total: int
    asked: int

    @property
    def count(self) -> int:
        """The number of pages; at least one."""
        return max(1, -(-self.total // PAGE_ROWS))

    @property
    def number(self) -> int:
        """The number of the page shown."""
        return min(max(self.asked, 1), self.count)

    @property
    def first(self) -> int:
        """The index of its first entry."""
        return (self.number - 1) * PAGE_ROWS

    @property
    def end(self) -> int:
        """The index after its last entry."""
        return min(self.first + PAGE_ROWS, self.total)


def parse_page(text: str | None) -> int:
    """Parse a page number; 1 if it is invalid."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else 1


def find_names(children: Mapping[str, Child], text: str) -> Mapping[str, Child]:
    """The entries whose names contain every word of the text, regardless of case."""
    words = text.casefold().split()
    if not words:
        return children
    return {name: child for name, child in children.items() if all(word in name.casefold() for word in words)}


def caption_text(paged: Paged, whole: int) -> str:
    """Say how many entries there are and which are shown. whole: the count before the search."""
    words = counted(whole, "entry", "entries")
    if paged.total != whole:
        words = f"{paged.total} of {words} found"
    return words if paged.count == 1 else f"{words}, {paged.first + 1} to {paged.end} shown"


def page_links(paged: Paged, address: Callable[[int], str]) -> Markup | None:
    """Links to the pages around this one, the first and the last; None if there is only one page."""
    if paged.count == 1:
        return None
    here = paged.number
    near = sorted({1, *range(max(1, here - 2), min(paged.count, here + 2) + 1), paged.count})
    items = [_step("Previous", here - 1, address)] if here > 1 else []
    before = 0
    for number in near:
        if number > before + 1:
            items.append(tag("li", "…", aria_hidden="true"))
        current = "page" if number == here else None
        label = f"Page {number}"
        items.append(tag("li", tag("a", str(number), href=address(number), aria_current=current, aria_label=label)))
        before = number
    if here < paged.count:
        items.append(_step("Next", here + 1, address))
    return tag("nav", tag("ul", join(*items)), class_="pages", aria_label="Pages of this list")


def _step(word: str, number: int, address: Callable[[int], str]) -> Markup:
    return tag("li", tag("a", word, href=address(number), rel="prev" if word == "Previous" else "next"))
