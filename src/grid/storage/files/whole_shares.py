"""Stores whole small shares of any number of files in one call. Blocking.

Runs on pool threads. The caller holds the locks of all storage indexes named, each of which occurs once. When `store`
returns, stored shares are as durable as the server's setting requires, and failed ones have left nothing behind. After
a crash, the next start removes incomplete ones. [spec storage-server 3, 8.1]

Cost per share: a file is created and written below incoming/, synced, and renamed; the directory created for it and
that one's parent are synced. All files are written before the first is synced, and all are renamed before the first
directory is synced, so that the file system commits its journal about twice in all, however many shares there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from twisted.logger import Logger

from grid.errors import NoSpaceError
from grid.limits import STORE_CALL_SHARES
from grid.ports import Buffer, NewShares, ShareNumber, StoreAnswer
from grid.storage.files.containers import LATEST_VERSION, pack_header
from grid.storage.files.disk import Handle
from grid.storage.files.incoming import create_anew, make_directories, remove_if_empty
from grid.storage.files.leases import ALLOCATION_OWNER, new_lease, pack_share_lease
from grid.storage.files.paths import SHARES, prefix_directory, share_directory, share_path, whole_path
from grid.storage.files.share_files import share_numbers
from grid.storage.files.store import Hidden, ShareStore
from grid.values import define, field, frozen

log = Logger()


@frozen(kw_only=True)
class Order:
    """Shares to store. name: of their storage index; hidden: its unfinished shares."""

    name: str
    hidden: Hidden
    new: NewShares


@define(eq=False)
class _Begun:
    """An order in progress: how much of it is on the disk, and the error if it failed."""

    order: Order
    already: frozenset[ShareNumber] = frozenset()
    refused: bool = False
    handles: dict[ShareNumber, Handle] = field(factory=dict)
    drafts: set[ShareNumber] = field(factory=set)
    named: set[ShareNumber] = field(factory=set)


class WholeShares:
    """Stores whole shares of many files."""

    def __init__(self, store: ShareStore, most_open: int = STORE_CALL_SHARES) -> None:
        """most_open: about how many files one call may have open at once; after that many, files are synced before more are written."""
        self._most_open = most_open
        self._store = store
        self._disk = store.disk
        self._settled: set[str] = set()
        """Prefix directories (never removed) whose own names are durable."""

    def store(self, orders: Sequence[Order], reserved: int, now: float) -> list[StoreAnswer]:
        """Carry out the orders and answer each. reserved: bytes promised to others; now: Unix time."""
        available = self._store.available_space()
        room = None if available is None else available - reserved
        begun: list[_Begun] = []
        for order in orders:
            one = _Begun(order)
            begun.append(one)
            self._attempt(one, partial(self._begin, room=room, now=now))
            if sum(len(other.handles) for other in begun) >= self._most_open:
                for other in begun:
                    if not other.refused:
                        self._attempt(other, self._sync_files)
            if room is not None and not one.refused:
                room -= order.new.size
        for step in (self._sync_files, self._rename, self._sync_share_directory):
            for one in begun:
                if not one.refused:
                    self._attempt(one, step)
        self._sync_prefixes([one for one in begun if not one.refused])
        return [StoreAnswer(already=one.already, stored=not one.refused) for one in begun]

    def _attempt(self, one: _Begun, step: Callable[[_Begun], None]) -> None:
        """Run one step of an order. If it fails, undo the order."""
        try:
            step(one)
        except (OSError, NoSpaceError) as error:
            log.warn("shares could not be stored: {reason}", reason=getattr(error, "strerror", None) or str(error))
            one.refused = True
        if one.refused:
            self._undo(one)

    def _begin(self, one: _Begun, room: int | None, now: float) -> None:
        """Renew the leases on existing shares. If there are none, and there is room, write the files."""
        order, disk = one.order, self._disk
        name, new = order.name, order.new
        fits = room is None or new.size <= room
        if room is not None and not fits:
            self._store.room_log.refused(max(0, room), now)
        made = fits and self._make_directory(name)
        if not made:
            one.already = self._store.renew(name, order.hidden, new.secrets, now)
            taken = {*order.hidden, *share_numbers(disk, name)}
            if one.already or not fits or not taken.isdisjoint(new.shares):
                one.refused = True
                return
        lease = new_lease(
            new.secrets, version=LATEST_VERSION, owner=ALLOCATION_OWNER, now=now, node_id=self._store.node_id
        )
        head, tail = pack_header(new.share_size), pack_share_lease(lease)
        for number, pieces in new.shares.items():
            self._write(one, number, [head, *pieces, tail])

    def _make_directory(self, name: str) -> bool:
        """Create the directory of the finished shares. Returns whether it is new."""
        path = share_directory(name)
        try:
            self._disk.make_directory(path)
        except FileNotFoundError:
            make_directories(self._disk, prefix_directory(name))
            self._disk.make_directory(path)
        except FileExistsError:
            return False
        return True

    def _write(self, one: _Begun, number: ShareNumber, pieces: Sequence[Buffer]) -> None:
        one.drafts.add(number)
        handle = create_anew(self._disk, whole_path(one.order.name, number))
        one.handles[number] = handle
        self._disk.write(handle, 0, pieces)
        if len(one.handles) >= self._most_open:
            self._sync_files(one)

    def _sync_files(self, one: _Begun) -> None:
        while one.handles:
            _, handle = one.handles.popitem()
            try:
                if self._store.durable:
                    self._disk.sync_file(handle)
            finally:
                self._disk.close_file(handle)

    def _rename(self, one: _Begun) -> None:
        name = one.order.name
        for number in sorted(one.drafts):
            self._disk.rename(whole_path(name, number), share_path(name, number))
            one.drafts.discard(number)
            one.named.add(number)

    def _sync_share_directory(self, one: _Begun) -> None:
        if self._store.durable:
            self._disk.sync_directory(share_directory(one.order.name))

    def _sync_prefixes(self, begun: Sequence[_Begun]) -> None:
        """Make the directories' names durable, up to the storage directory."""
        if not self._store.durable or not begun:
            return
        prefixes = {prefix_directory(one.order.name) for one in begun}
        failed: set[str] = set()
        for prefix in sorted(prefixes):
            failed |= self._failed_to_sync(prefix, [prefix])
        if not prefixes <= self._settled:
            failed |= self._failed_to_sync(SHARES, prefixes - self._settled)
        self._settled |= prefixes - failed
        for one in begun:
            if prefix_directory(one.order.name) in failed:
                one.refused = True
                self._undo(one)

    def _failed_to_sync(self, directory: str, concerned: Iterable[str]) -> set[str]:
        """Sync the directory. Returns the orders concerned if that fails."""
        try:
            self._disk.sync_directory(directory)
        except OSError as error:
            log.warn("shares could not be stored: {reason}", reason=error.strerror)
            return set(concerned)
        return set()

    def _undo(self, one: _Begun) -> None:
        """Remove everything of the order. What cannot be removed below incoming/ is left to the next start."""
        name = one.order.name
        for handle in one.handles.values():
            self._quietly(self._disk.close_file, handle)
        one.handles.clear()
        for path in [*(whole_path(name, n) for n in one.drafts), *(share_path(name, n) for n in one.named)]:
            self._quietly(self._disk.unlink, path)
        if not one.already:
            remove_if_empty(self._disk, share_directory(name))

    @staticmethod
    def _quietly(work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.warn("an abandoned share could not be removed: {reason}", reason=error.strerror)
