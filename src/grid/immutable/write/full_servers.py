"""Names the servers that had no room for a file, in the error of its put. Pure.

A server of 1.20 says only how much it still takes: nothing may mean that it is full, or that its operator made it
read-only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from grid.errors import NotHappyError
from grid.placement.space import lack_as_verb, lack_of_room
from grid.ports import ServerId, StorageServer

MOST_NAMED = 10

MOST_LETTERS = 40
"""Of a nickname, which its server's operator chooses."""


def name_full(
    error: NotHappyError, without_room: Collection[ServerId], servers: Sequence[StorageServer], share_size: int
) -> NotHappyError:
    """The same error with the names of the servers that had no room for such a share; the error itself if there are none."""
    full = [_describe(server, share_size) for server in servers if server.identity.server_id in without_room]
    if not full:
        return error
    more = [f"{len(full) - MOST_NAMED} more take no shares"] if len(full) > MOST_NAMED else []
    shown = [*full[:MOST_NAMED], *more]
    text = f"{error} {', '.join(shown)}."
    return NotHappyError(text, causes=error.causes, reached=error.reached, happy=error.happy, full=shown)


def _describe(server: StorageServer, share_size: int) -> str:
    name = (server.identity.nickname or server.identity.server_id[:11])[:MOST_LETTERS]
    version = server.known_version
    if version is None:
        return f"{name} takes no shares"
    if lack := lack_of_room(version.available_space, version.is_read_only):
        return f"{name} {lack_as_verb(lack)}"
    return f"{name} is full" if version.available_space < share_size else f"{name} cannot write, and its log says why"
