"""Open files: read in ranges, or written to a spool and stored atomically when closed.

A file open for reading keeps its contents, even if it is replaced at its path.

A transaction links all of its files when it ends, with one publish per directory. Several directories are changed one
after the other, and one that fails does not undo those before it.
"""

from __future__ import annotations

import errno
from typing import Any

from fsspec.asyn import AbstractAsyncStreamedFile, sync
from fsspec.spec import AbstractBufferedFile
from fsspec.transaction import Transaction

from grid.caps import KnownCap
from grid.filesystem.descriptions import refusal
from grid.filesystem.paths import shown
from grid.filesystem.spool import Spool
from grid.filesystem.tree import Opened


class GridFile(AbstractBufferedFile):
    """An open file with blocking calls. stored: the capability of the written contents, once stored."""

    stored: KnownCap | None = None

    def __init__(self, fs: Any, path: str, mode: str = "rb", **options: Any) -> None:  # noqa: ANN401
        self._spool: Any = _new_spool(mode, path)
        self._opened: Opened | None = None
        if mode == "rb":
            self._opened = sync(fs.loop, fs._open_now, path)
            options["size"] = self._opened.size
        if mode == "xb" and fs.exists(path):
            raise refusal(errno.EEXIST, "there is already something at this path", path)
        super().__init__(fs, path, mode, **options)
        if mode == "ab" and fs.exists(path):
            sync(fs.loop, fs._read_into, path, self._spool)
            self.loc = self._spool.tell()

    def _fetch_range(self, start: int, end: int) -> bytes:
        assert self._opened is not None
        data: bytes = sync(self.fs.loop, self.fs._read_opened, self._opened, self.path, start, end)
        return data

    def _upload_chunk(self, final: bool = False) -> bool:
        self._spool.write(self.buffer.getvalue())
        if final:
            self.stored = sync(self.fs.loop, self.fs._store, self._spool, self.path)
            self._spool.close()
            if self.autocommit:
                self.commit()
        return True

    def commit(self) -> None:
        """Link the stored file at its path."""
        sync(self.fs.loop, self.fs._link_files, [self])

    def discard(self) -> None:
        """Discard the written data without linking anything."""
        self.stored, self.forced = None, True
        if self._spool is not None:
            self._spool.close()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:  # noqa: ANN401
        """Close the file; if an error ended the block, nothing is stored."""
        if kind is not None and self.mode != "rb" and not self.closed:
            self.discard()
        self.close()

    def __repr__(self) -> str:
        return f"<GridFile {shown(self.path)}>"

    __str__ = __repr__


class GridStreamedFile(AbstractAsyncStreamedFile):
    """An open file with coroutines. stored: the capability of the written contents, once stored."""

    stored: KnownCap | None = None

    def __init__(self, fs: Any, path: str, mode: str, opened: Opened | None = None, **options: Any) -> None:  # noqa: ANN401
        """opened: the file to read, if the mode is for reading."""
        self._spool: Any = _new_spool(mode, path)
        self._opened = opened
        if opened is not None:
            options["size"] = opened.size
        super().__init__(fs, path, mode, cache_type="none", **options)

    async def begin_with_what_is_there(self) -> None:
        """Copy the existing contents of a file opened for appending."""
        await self.fs._read_into(self.path, self._spool)
        self.loc = self._spool.tell()

    async def _fetch_range(self, start: int, end: int) -> bytes:
        assert self._opened is not None
        data: bytes = await self.fs._read_opened(self._opened, self.path, start, end)
        return data

    async def _upload_chunk(self, final: bool = False) -> bool:
        self._spool.write(self.buffer.getvalue())
        if final:
            self.stored = await self.fs._store(self._spool, self.path)
            self._spool.close()
            await self.fs._link_files([self])
        return True

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:  # noqa: ANN401
        """Close the file; if an error ended the block, nothing is stored."""
        if kind is not None and self._spool is not None and not self.closed:
            self.forced = True
            self._spool.close()
        await self.close()

    def __repr__(self) -> str:
        return f"<GridStreamedFile {shown(self.path)}>"

    __str__ = __repr__


class GridTransaction(Transaction):
    """Files that are linked together when it ends; those of one directory all or not at all."""

    def complete(self, commit: bool = True) -> None:
        """Link all files; those of one directory appear simultaneously."""
        files, fs = list(self.files), self.fs
        self.files.clear()
        try:
            if commit:
                for file in files:
                    file.close()
                sync(fs.loop, fs._link_files, files)
            else:
                for file in files:
                    file.discard()
        finally:
            super().complete(commit)


def _new_spool(mode: str, path: str) -> Any:  # noqa: ANN401 - None if nothing is written
    return None if mode == "rb" else Spool(path)
