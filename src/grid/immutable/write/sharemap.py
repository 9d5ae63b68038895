"""Which servers hold which shares of an upload, whether they are enough, and the message if they are not. Pure.

Programs written for 1.20 look for the first sentence of each message. [spec placement 6.1]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from grid.placement.happiness import happiness
from grid.ports import ServerId, ShareNumber


def make_sharemap(
    held: Iterable[tuple[ServerId, Collection[ShareNumber]]],
) -> dict[ShareNumber, set[ServerId]]:
    """The servers that hold each share. held: servers and their shares; a server may occur twice."""
    sharemap: dict[ShareNumber, set[ServerId]] = {}
    for server_id, shares in held:
        for share in shares:
            sharemap.setdefault(share, set()).add(server_id)
    return sharemap


class ShareHolders:
    """The servers that a put counts on. existing: the shares they had before. placed: the shares they receive."""

    def __init__(
        self,
        existing: Mapping[ServerId, frozenset[ShareNumber]],
        placed: Mapping[ServerId, frozenset[ShareNumber]],
        *,
        k: int,
        happy: int,
    ) -> None:
        self._existing = existing
        self._placed = dict(placed)
        self._k = k
        self._happy = happy

    def lose(self, server_id: ServerId) -> None:
        """Stop counting on the shares that this server was to receive."""
        self._placed.pop(server_id, None)

    @property
    def placed_count(self) -> int:
        """Shares placed on servers that have not failed."""
        return sum(len(shares) for shares in self._placed.values())

    @property
    def happiness(self) -> int:
        """How many servers each hold a share of their own."""
        return happiness(self.sharemap())

    def sharemap(self, without: ServerId | None = None) -> dict[ShareNumber, set[ServerId]]:
        """The servers that hold each share, without the given server."""
        held = [*self._existing.items(), *self._placed.items()]
        return make_sharemap((server_id, shares) for server_id, shares in held if server_id != without)

    def are_enough(self, without: ServerId | None = None) -> bool:
        """Whether a put may succeed with these servers, without the given one."""
        sharemap = self.sharemap(without)
        return len(sharemap) >= self._k and happiness(sharemap) >= self._happy

    def explain(self) -> str:
        """Why they are not enough."""
        return happiness_message(self.sharemap(), self._k, self._happy)


def happiness_message(sharemap: Mapping[ShareNumber, Collection[ServerId]], k: int, happy: int) -> str:
    """Why these shares on these servers are not enough for an upload."""
    server_count = len({server_id for holders in sharemap.values() for server_id in holders})
    reached = happiness(sharemap)
    enough = f"such that any {k} of them have enough shares to recover the file"
    if server_count < k and reached < happy:
        return (
            f"shares could be placed or found on only {server_count} server(s). "
            f"We were asked to place shares on at least {happy} server(s) {enough}."
        )
    if reached < k and reached < happy:
        return (
            f"shares could be placed or found on {server_count} server(s), but they are not spread out evenly enough "
            f"to ensure that any {k} of these servers would have enough shares to recover the file. "
            f"We were asked to place shares on at least {happy} servers {enough}."
        )
    if reached < happy:
        return (
            f"shares could be placed on only {reached} server(s) {enough}, "
            f"but we were asked to place shares on at least {happy} such servers."
        )
    return f"only {len(sharemap)} distinct shares could be placed or found, but {k} are needed to recover the file."
