"""What every write to a mutable file begins with: a map that is good enough, the private key, and patience. [spec mutable 13, 16]

It owns the waits: for a writer that seems to be at work, and before a retry.
"""

from __future__ import annotations

import math

from grid.crypto.rsa import PrivateKey
from grid.errors import CapError, FormatError, IntegrityError, NoServersError, NotEnoughSharesError
from grid.mutable.read.layout_cache import Speculate
from grid.mutable.read.map_plan import MapMode
from grid.mutable.session import Session
from grid.mutable.share.keys import FileKeys
from grid.mutable.share.prefix import Prefix
from grid.mutable.share.versions import VersionMap
from grid.plural import counted
from grid.ports import Entropy

UNFINISHED_WAITS_S = (1.0, 3.0)
"""A version of which too few shares are there may be one that is just being written: it is given this time."""

RETRIES = 3
FIRST_DELAY_S = 1.0
DELAY_DEVIATION = 0.11962656492
"""Collisions are waited out for about 2.7, 7.4 and 20 s, as 1.20 does. [spec mutable 16]"""


async def find_for_write(
    session: Session, mode: MapMode, private_key: PrivateKey | None, speculate: Speculate | None = None
) -> VersionMap:
    """A map to write by; if there is a version newer than what can be read, only after its writer had time to end.

    Where a write could only fail because servers kept silent, everybody is asked once more.
    """
    found = await session.find(mode, private_key=private_key, speculate=speculate)
    if len(found.servers) - len(found.failed) < session.grid.encoding.happy <= len(found.servers) and found.silent:
        found = await session.find(mode, private_key=found.private_key or private_key, speculate=speculate)
    for wait_s in UNFINISHED_WAITS_S:
        enough = min([session.grid.encoding.happy, *(prefix.n for prefix in found.newer_unrecoverable)])
        if not found.newer_unrecoverable or len(found.answered) < enough:
            break  # Where too few servers answer, no write succeeds, however long its writer waits.
        await session.grid.runtime.clock.sleep(wait_s)
        found = await session.find(mode, private_key=found.private_key, speculate=speculate)
    return found


def require_best(found: VersionMap) -> Prefix:
    """The newest version that can be read; NotEnoughSharesError, or NoServersError if nobody answered."""
    best = found.best
    if best is not None:
        return best
    if not found.answered:
        count = len(found.servers)
        raise NoServersError(
            f"none of {counted(count, 'server')} could be reached" if count else "there is no server to ask"
        )
    versions = found.unrecoverable()
    if not versions:
        bad = f"; {counted(len(found.bad), 'is', 'are')} damaged" if found.bad else ""
        raise NotEnoughSharesError(
            f"no share of the file was found on {counted(len(found.answered), 'server')}{bad}", found=0, needed=1
        )
    newest = versions[0]
    have = len({share.number for share in found.shares_of(newest)})
    raise NotEnoughSharesError(
        f"{counted(have, 'share')} of the newest version {'was' if have == 1 else 'were'} found, and it needs {newest.k}",
        found=have,
        needed=newest.k,
    )


def require_size(prefix: Prefix, largest: int | None) -> Prefix:
    """The version, if it is no longer than that; FormatError."""
    if largest is not None and prefix.size > largest:
        raise FormatError(f"the file has {prefix.size} bytes, and {largest} is the most there may be here")
    return prefix


def require_key(found: VersionMap, private_key: PrivateKey | None) -> PrivateKey:
    """The file's private key; IntegrityError if no share has given it."""
    key = found.private_key or private_key
    if key is None:
        raise IntegrityError("no share that could be read holds the file's private key, so it cannot be written")
    return key


def require_same_format(keys: FileKeys, prefix: Prefix) -> None:
    """CapError if the cap is that of the other format. [spec mutable 1]"""
    if keys.version != prefix.version:
        names = ("SDMF", "MDMF")
        raise CapError(
            f"the file is stored as {names[prefix.version]}, but this capability is for {names[keys.version]}: "
            "use its {names[prefix.version]} capability"
        )


def next_delay(entropy: Entropy, delay_s: float) -> float:
    """Seconds to wait after having waited delay_s, or FIRST_DELAY_S before the first: longer, and never the same twice."""
    mean = delay_s * math.e
    # Twelve uniform numbers add up to a normal one, near enough.
    data = entropy.random_bytes(48)
    uniform = [int.from_bytes(data[index : index + 4]) / 2**32 for index in range(0, 48, 4)]
    return max(0.1, mean + DELAY_DEVIATION * mean * (sum(uniform) - 6.0))
