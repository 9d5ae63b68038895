"""Resumes the upload of a large file: all attempts use the same key, so servers keep the shares they have.

It owns the rule that a key encrypts only one file. Each range is recorded with its digest before servers get any of it,
and an attempt ends if a range differs from what an earlier attempt read under the same key. [decision 337]

Cost: CPU: the digest is a GMAC, which takes a tenth of the time of SHA-256. Its key is a hash of the file's key, which
only the journal has, so that nobody can make two contents with the same digest.
"""

from __future__ import annotations

from hashlib import sha256

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from twisted.internet.defer import CancelledError

from grid.directory.file_store import FileStore
from grid.errors import ConflictingWriteError, NotHappyError
from grid.immutable.put import Keeps
from grid.ports import Buffer
from grid.transfer.choices import may_pass
from grid.transfer.ends import Body, KeptPart, NoParts, SourceChangedError

KEY_SIZE = 16
NONCE_SIZE = 12
DIGEST = "gmac"
"""In tokens: what an earlier version recorded by other digests begins anew."""


class Resumption:
    """One attempt to put a file, the first or a later one."""

    def __init__(self, body: Body, store: FileStore) -> None:
        """Use the key of an earlier attempt, if it would produce the same shares. JournalError."""
        encoding = store.grid.encoding
        self._parts = body.parts
        self._end = f" {encoding.k}-{encoding.n}-{encoding.max_segment_size} {DIGEST}"
        self._known: dict[int, KeptPart] = {}
        self._read = 0  # Bytes that this attempt or an earlier one has read.
        self.key: bytes | None = None
        self.keeps: Keeps | None = None if isinstance(body.parts, NoParts) else is_worth_keeping
        if store.convergence is not None:
            return  # The key is derived from the contents.
        kept = body.parts.load()
        tokens = {part.token for part in kept}
        self.key = self._parse(tokens.pop()) if len(tokens) == 1 else None
        if self.key is None:
            self._parts.forget()
            self.key = store.runtime.entropy.random_bytes(KEY_SIZE)
        else:
            self._known = {part.offset: part for part in kept}
            self._read = max(part.offset + part.length for part in kept)
        self._mac = AESGCM(sha256(b"digests of a file's ranges:" + self.key).digest())

    def examine(self, offset: int, data: Buffer) -> None:
        """Record bytes before servers get them. SourceChangedError if an earlier attempt read others; JournalError."""
        if self.key is None:
            return
        token = self.key.hex() + self._end
        part = KeptPart(offset=offset, length=len(data), token=token, digest=self._digest(offset, data))
        known = self._known.get(offset)
        if known == part:
            return
        if known is not None or offset < self._read:
            raise SourceChangedError("the source is not what an earlier attempt read; starting over")
        self._parts.keep(part)
        self._known[offset] = part
        self._read = offset + len(data)

    def failed(self, error: BaseException) -> None:
        """Discard the key unless the next attempt may resume. JournalError."""
        if self.key is not None and not is_worth_keeping(error):
            self._parts.forget()

    def _digest(self, offset: int, data: Buffer) -> bytes:
        """A range's digest under the key. Each range of an attempt has its own nonce."""
        return self._mac.encrypt(offset.to_bytes(NONCE_SIZE), b"", data)

    def _parse(self, token: str) -> bytes | None:
        try:
            key = bytes.fromhex(token.removesuffix(self._end))
        except ValueError:
            return None
        return key if len(key) == KEY_SIZE and token.endswith(self._end) else None


def is_worth_keeping(error: BaseException) -> bool:
    """Whether the next attempt may resume after this error."""
    causes = error.causes if isinstance(error, NotHappyError) else ()
    if any(isinstance(each, SourceChangedError | ConflictingWriteError) for each in (error, *causes)):
        return False
    return not isinstance(error, Exception) or isinstance(error, CancelledError) or may_pass(error)
