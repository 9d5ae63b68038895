"""Creates a mutable file: its key and its first version. [spec mutable 3, 15]

It owns when a key is made. goal.py decides where the shares go, and publish.py puts them there.
"""

from __future__ import annotations

from grid.crypto.rsa import PrivateKey
from grid.engine.grid import Grid
from grid.errors import NoServersError
from grid.mutable.key_supply import make_key_ahead, new_key
from grid.mutable.perform import in_turn
from grid.mutable.publish import WHOLE_BYTES, Release, publish
from grid.mutable.session import Session
from grid.mutable.share.geometry import MDMF_VERSION, SDMF_VERSION, FormatName, Geometry
from grid.mutable.share.keys import FileKeys, WriteCap, write_cap
from grid.mutable.share.versions import VersionMap
from grid.mutable.sources import as_source
from grid.ports import Buffer, Source


async def create_mutable(
    contents: Buffer | Source, grid: Grid, *, format: FormatName, key: PrivateKey | None = None
) -> WriteCap:
    """Store a new mutable file and return its write cap, once `happy` servers and k distinct shares have it.

    key: its private key; None for a new one. ConflictError if a file with this key exists; NotHappyError;
    NoServersError; FormatError for an encoding that mutable files cannot have.
    """
    source, encoding = as_source(contents), grid.encoding
    version = MDMF_VERSION if format == "mdmf" else SDMF_VERSION
    geometry = Geometry.of_file(version, source.size, encoding.k, encoding.n)
    if not grid.servers:
        raise NoServersError("no storage server is known; is the introducer reachable?")
    is_large, has_key = source.size > WHOLE_BYTES, key is not None
    if key is None:
        key = await new_key(grid, ahead=not is_large)
    cap = write_cap(key, version)
    session = Session.open(FileKeys.of_cap(cap), grid)
    nothing = VersionMap(servers=session.server_ids)
    release = Release(
        geometry=geometry,
        seqnum=1,
        source=source,
        key=key,
        goal=session.goal_for(nothing, encoding.n),
        happy=min(encoding.happy, encoding.n),
    )
    session.note(await in_turn(grid, session.keys.storage_index, lambda: publish(session, nothing, release)))
    if is_large and not has_key:
        make_key_ahead(grid)
    return cap
