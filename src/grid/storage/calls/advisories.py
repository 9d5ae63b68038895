"""Clients' reports of corrupt shares, kept as files for the operator. Blocking. [spec storage-server 11]"""

from __future__ import annotations

from datetime import UTC, datetime

from twisted.logger import Logger

from grid.errors import FormatError
from grid.limits import MAX_ADVISORIES, MAX_ADVISORY_LENGTH
from grid.ports import ShareKind, ShareNumber
from grid.storage.files.paths import ADVISORIES
from grid.storage.files.store import Hidden, ShareStore

log = Logger()


class Advisories:
    """The reports about one server's shares. Each is written whole or not at all, and not synced, because it is only a hint."""

    def __init__(self, store: ShareStore) -> None:
        self._store = store
        self._count: int | None = None

    def note(
        self, name: str, hidden: Hidden, kind: ShareKind, share_number: ShareNumber, reason: str, now: float
    ) -> None:
        """Store a report if the share exists and there is room for one more; FormatError if it is too long."""
        if len(reason.encode("utf-8", "surrogatepass")) > MAX_ADVISORY_LENGTH:
            raise FormatError(f"a report of more than {MAX_ADVISORY_LENGTH} bytes")
        if not self._store.has(name, hidden, kind, share_number):
            return
        report = advisory_text(kind, name, share_number, reason)
        available = self._store.available_space()
        if (available is not None and available < len(report)) or self._is_full():
            log.info("a corruption report on share {number} of {name} is dropped", number=share_number, name=name)
            return
        path = f"{ADVISORIES}/{advisory_name(name, share_number, now)}"
        self._write(path, report)
        log.warn("a client found a damaged share: {path} names it", path=path)

    def _is_full(self) -> bool:
        if self._count is None:
            self._count = len(self._store.disk.list_directory(ADVISORIES))
        return self._count >= MAX_ADVISORIES

    def _write(self, path: str, report: bytes) -> None:
        disk = self._store.disk
        try:
            handle = disk.create_file(path)
        except FileExistsError:
            return  # Two reports about one share in one microsecond say the same.
        try:
            disk.write(handle, 0, [report])
            self._count = (self._count or 0) + 1
        except OSError:
            disk.unlink(path)
            raise
        finally:
            disk.close_file(handle)


def advisory_name(name: str, share_number: int, now: float) -> str:
    """The name of a report's file: time, storage index, share number."""
    time = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H%M%S.%f")
    return f"{time}--{name}-{share_number}"


def advisory_text(kind: ShareKind, name: str, share_number: int, reason: str) -> bytes:
    """The content of a report's file."""
    text = (
        f"report: Share Corruption\ntype: {kind}\nstorage_index: {name}\nshare_number: {share_number}\n\n{reason}\n\n"
    )
    return text.encode("utf-8", "backslashreplace")
