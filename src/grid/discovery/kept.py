"""The announcements that are kept: one for each service and key, bounded in number. Pure. [spec wire 9]"""

from __future__ import annotations

from collections.abc import Iterator

from grid.discovery.announcement import Announcement, replaces
from grid.limits import MAX_ANNOUNCEMENTS
from grid.ports import ServerId


class KeptAnnouncements:
    """What has been accepted so far; nothing is ever dropped."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ServerId], Announcement] = {}

    def __iter__(self) -> Iterator[Announcement]:
        return iter(self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    def of_service(self, service_name: str) -> list[Announcement]:
        """Those of one service."""
        return [announcement for announcement in self if announcement.service_name == service_name]

    def offer(self, new: Announcement) -> bool:
        """Whether it was accepted: it is the first of its service and key (and there is room), or replaces another."""
        place = (new.service_name, new.server_id)
        kept = self._kept.get(place)
        if kept is None and len(self._kept) >= MAX_ANNOUNCEMENTS:
            return False
        if not replaces(new, kept):
            return False
        self._kept[place] = new
        return True
