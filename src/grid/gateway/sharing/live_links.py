"""The share links of a running gateway: which can be opened now, and how often they were. (decision 460)

Owns what makes a link end: the clock's time, but also the seconds that have passed since this gateway first saw the link,
so setting the clock back keeps no link open. A link that was found expired is marked, and stays so.

Cost: a comparison with every link's digest per request; a rewrite of the links' file, on the pool, per page and download.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from grid.caps import KnownCap
from grid.errors import ConfigError
from grid.gateway.faults import ServiceUnavailable
from grid.gateway.shared.passwords import SALT_SIZE, Attempts, Passes, PasswordHash, hash_password
from grid.gateway.shared.share_links import (
    LinkStore,
    ShareLink,
    add_link,
    find_link,
    make_link,
    new_token,
    token_digest,
)
from grid.gateway.shared.store_turns import Semaphore
from grid.ports import Runtime
from grid.runtime import Tasks

CLOCK_LEEWAY_S = 3600.0
"""Seconds by which the clock may be behind the time at which a link was made. If it is further behind, it is wrong."""

UNREADABLE = "share links cannot be opened here at the moment; tell the person who sent you this one"

T = TypeVar("T")

_log = Logger("grid.gateway")


class LiveLinks:
    """The links of one gateway. store: None if it belongs to no client directory, so that it has none."""

    def __init__(self, runtime: Runtime, store: LinkStore | None) -> None:
        self._runtime = runtime
        self._store = store
        self._ends_at: dict[bytes, float] = {}
        self._hashing = Semaphore(1)
        self._writing = Semaphore(
            1
        )  # A write waits for a lock and the disk; more of them would take all threads of the pool.
        self._problem = ""
        self._counting = Tasks()
        self.passes = Passes(runtime.clock, runtime.entropy.random_bytes(32))
        self.attempts = Attempts(runtime.clock)

    async def find(self, token: str) -> ShareLink | None:
        """The link that this token opens; None if there is none, or it has ended. ServiceUnavailable."""
        digest, found = token_digest(token), None
        if digest is None:
            return None
        for link in await self._read():
            if hmac.compare_digest(link.digest, digest):
                found = link
        now = self._runtime.clock.unix_time()
        return found if found is not None and found.state(now) == "open" and not _is_before(found, now) else None

    async def use(self, link: ShareLink, *, is_download: bool) -> bool:
        """Count that the link was used; whether it still can be. Call this when the first byte is ready, before it is sent.

        If the caller is canceled meanwhile, nothing is sent, and what was counted is taken off again.
        """
        answer: Deferred[bool] = Deferred()

        def counted(is_open: bool) -> None:
            if not answer.called:
                answer.callback(is_open)
            elif is_open:
                self._counting.start(self._write(link, self._take_off, is_download), on_error=lambda _: None)

        def failed(error: BaseException) -> None:
            if not answer.called:
                answer.errback(error)

        self._counting.start(self._write(link, self._count, is_download), counted, failed)
        return await answer

    async def _write(self, link: ShareLink, change: Callable[[ShareLink, bool], bool], is_download: bool) -> bool:
        try:
            async with self._writing.one():
                return await self._runtime.cpu.run(change, link, is_download)
        except (ConfigError, OSError) as problem:
            self._warn(problem)
            if link.most_downloads is None:
                return True  # Only the number of uses is lost.
            raise ServiceUnavailable(UNREADABLE) from None

    async def all(self) -> Sequence[ShareLink]:
        """All links, the newest first, marked if they have expired. ServiceUnavailable."""
        return sorted(await self._read(), key=lambda link: link.created, reverse=True)

    async def make(
        self,
        cap: KnownCap,
        name: str,
        lifetime_s: int | None,
        *,
        until: int | None = None,
        most_downloads: int | None = None,
        password: str = "",
    ) -> tuple[str, ShareLink]:
        """A new link: its token, and what is kept of it. lifetime_s: seconds until it ends, None for never. until: the Unix time instead.

        GridError for a verify capability; ServiceUnavailable if it cannot be kept.
        """
        hashed = await self._hash(password) if password else None
        now, token = self._runtime.clock.unix_time(), new_token(self._runtime.entropy.random_bytes)
        expires = until if lifetime_s is None else int(now) + lifetime_s
        link = make_link(token, cap, name, now, expires=expires, most_downloads=most_downloads, password=hashed)

        def add(links: dict[bytes, ShareLink]) -> None:
            add_link(links, link, now)

        await self._change(add)
        return token, link

    async def remove(self, text: str) -> ShareLink:
        """Take the link of this identifier or name back; NoSuchChildError if there is none. ServiceUnavailable."""
        return await self._change(lambda links: links.pop(find_link(links.values(), text).digest))

    async def matches(self, password: PasswordHash, given: str) -> bool:
        """Whether a visitor knows the password. One is checked at a time."""
        async with self._hashing.one():
            return await self._runtime.cpu.run(password.matches, given)

    async def _hash(self, password: str) -> PasswordHash:
        salt = self._runtime.entropy.random_bytes(SALT_SIZE)
        async with self._hashing.one():
            return await self._runtime.cpu.run(hash_password, password, salt)

    async def _read(self) -> Sequence[ShareLink]:
        """All links; those that are found expired are marked, also in the file."""
        if self._store is None:
            return ()
        try:
            links = await self._runtime.cpu.run(self._store.read)
        except (ConfigError, OSError) as problem:
            self._warn(problem)
            raise ServiceUnavailable(UNREADABLE) from None
        self._problem = ""
        expired = {link.digest for link in links if not link.has_expired and self._has_expired(link)}
        for digest in self._ends_at.keys() - {link.digest for link in links}:
            del self._ends_at[digest]
        if not expired:
            return links
        try:
            async with self._writing.one():
                await self._runtime.cpu.run(self._mark, expired)
        except (ConfigError, OSError) as problem:
            self._warn(problem)
        return [evolve(link, has_expired=True) if link.digest in expired else link for link in links]

    def _has_expired(self, link: ShareLink) -> bool:
        clock = self._runtime.clock
        now = clock.unix_time()
        if link.expires is None or _is_before(link, now):
            return False
        ends_at = self._ends_at.setdefault(link.digest, clock.now() + link.expires - now)
        return now >= link.expires or clock.now() >= ends_at

    def _mark(self, expired: set[bytes]) -> None:
        assert self._store is not None
        with self._store.changing() as links:
            for digest in expired & links.keys():
                links[digest] = evolve(links[digest], has_expired=True)

    def _count(self, link: ShareLink, is_download: bool) -> bool:
        """Count one use, in the file, so that no two processes let more downloads begin than are allowed."""
        assert self._store is not None
        now = self._runtime.clock.unix_time()
        with self._store.changing() as links:
            found = links.get(link.digest)
            if found is None or found.state(now) != "open":
                return False
            links[link.digest] = evolve(found, uses=found.uses + 1, downloads=found.downloads + is_download)
        return True

    def _take_off(self, link: ShareLink, is_download: bool) -> bool:
        """Undo one count, since nothing was sent after all."""
        assert self._store is not None
        with self._store.changing() as links:
            found = links.get(link.digest)
            if found is not None:
                uses, downloads = max(0, found.uses - 1), max(0, found.downloads - is_download)
                links[link.digest] = evolve(found, uses=uses, downloads=downloads)
        return True

    async def _change(self, change: Callable[[dict[bytes, ShareLink]], T]) -> T:
        """Change the links; raises the errors of the change."""
        store = self._store
        if store is None:
            raise ServiceUnavailable("this gateway belongs to no client directory, so it keeps no share links")

        def locked() -> T:
            with store.changing() as links:
                return change(links)

        try:
            return await self._runtime.cpu.run(locked)
        except OSError as problem:
            raise ServiceUnavailable(f"the share links cannot be stored: {problem.strerror}") from None
        except ConfigError as problem:
            raise ServiceUnavailable(str(problem)) from None

    def _warn(self, problem: Exception) -> None:
        """Log the problem, once as long as it stays the same."""
        text = str(problem)
        if text != self._problem:
            self._problem = text
            _log.warn("share links: {problem}", problem=text)


def _is_before(link: ShareLink, now: float) -> bool:
    """Whether the clock shows a time before the link was made: then nobody knows when it ends."""
    return now < link.created - CLOCK_LEEWAY_S
