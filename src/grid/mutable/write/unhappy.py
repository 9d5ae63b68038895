"""What a write says that too few servers took: how many did, how many it takes, and who is missing. Pure.

Owns the words alone: plans decide when a write has failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from grid.errors import GridError, NotHappyError, PeerGoneError, PeerTimeoutError
from grid.plural import counted
from grid.ports import ServerId, ServerIdentity

AS_IT_WAS = "nothing was changed"
"""Of a file, when a write has failed before anything of it was lost."""
MAX_NAMED = 10
"""Servers that a message names; of further ones it has the number."""
_MAX_NAME = 40


def too_few(
    reached: int, happy: int, shares: int, k: int, *, verb: str, failures: Mapping[ServerId, GridError], state: str = ""
) -> NotHappyError:
    """The error of a write. verb: what so few servers did. failures: what came of the others. state: of the file."""
    if reached < happy:
        text = f"only {counted(reached, 'server')} {verb}, and {happy} are needed"
    else:
        text = f"only {counted(shares, 'share')} could be stored, and {k} are needed to read the file"
    unreachable = [
        server_id for server_id, why in failures.items() if isinstance(why, PeerGoneError | PeerTimeoutError)
    ]
    return NotHappyError(
        f"{text}; {state}" if state else text, causes=list(failures.values()), unreachable=sorted(unreachable)
    )


def name_missing(
    error: NotHappyError, servers: Iterable[ServerIdentity], failed: Collection[ServerId]
) -> NotHappyError:
    """The same error with the names of all that could not be reached; failed: those found so before the write."""
    known = {server.server_id: server.nickname for server in servers}
    missing = [server_id for server_id in known if server_id in failed or server_id in error.unreachable]
    if not missing:
        return error
    names = [(known[server_id] or server_id.removeprefix("v0-")[:8])[:_MAX_NAME] for server_id in missing]
    shown = ", ".join(names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    text = f"{error}; {len(missing)} of {counted(len(known), 'server')} cannot be reached ({shown}{more})"
    return NotHappyError(text, causes=error.causes, unreachable=missing)
