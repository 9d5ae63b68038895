"""Share links of a running gateway: when they end, whatever the clock does, and how uses are counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import pytest
from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred

from grid.caps import ChkCap
from grid.errors import ConfigError, NoSuchChildError
from grid.gateway.faults import ServiceUnavailable
from grid.gateway.shared.share_links import ShareLink, token_digest
from grid.gateway.sharing.live_links import CLOCK_LEEWAY_S, LiveLinks
from tests.support.virtual_time import InlineCpu, VirtualClock, VirtualRuntime

FILE = ChkCap(key=b"k" * 16, ueb_hash=b"u" * 32, needed=3, total=10, size=123_456)
DAY = 86400

T = TypeVar("T")


@define
class MemoryLinks:
    """Links in memory. error: raised by every call."""

    links: dict[bytes, ShareLink] = field(factory=dict)
    error: Exception | None = None

    def read(self) -> Sequence[ShareLink]:
        if self.error is not None:
            raise self.error
        return list(self.links.values())

    def changing(self) -> AbstractContextManager[dict[bytes, ShareLink]]:
        return self._changing()

    @contextmanager
    def _changing(self) -> Iterator[dict[bytes, ShareLink]]:
        if self.error is not None:
            raise self.error
        links = dict(self.links)
        yield links
        self.links = links


class SetClock(VirtualClock):
    """A clock that somebody sets. off_s: by how much it was set."""

    off_s = 0.0

    def unix_time(self) -> float:
        return super().unix_time() + self.off_s


@define
class Rig:
    runtime: VirtualRuntime
    clock: SetClock
    store: MemoryLinks
    live: LiveLinks

    def restarted(self) -> LiveLinks:
        """The links of the gateway's next start."""
        return LiveLinks(self.runtime, self.store)


@pytest.fixture
def rig() -> Rig:
    runtime, clock, store = VirtualRuntime(), SetClock(), MemoryLinks()
    runtime.clock = clock
    return Rig(runtime, clock, store, LiveLinks(runtime, store))


async def test_token_opens_its_link_and_no_other_token_does(rig: Rig) -> None:
    token, link = await rig.live.make(FILE, "a", DAY)
    other, _ = await rig.live.make(FILE, "b", None)
    assert await rig.live.find(token) == link and (await rig.live.find(other)) != link
    for text in ("", "x", token[:-1], token + "A", token.swapcase(), link.digest.hex(), "x" * 100_000, "\ud800"):
        assert await rig.live.find(text) is None
    await rig.live.remove("a")
    assert await rig.live.find(token) is None
    with pytest.raises(NoSuchChildError):
        await rig.live.remove("a")


async def test_link_ends_at_its_time_and_setting_the_clock_back_does_not_open_it_again(rig: Rig) -> None:
    token, _ = await rig.live.make(FILE, "a", DAY)
    rig.clock.task_clock.advance(DAY - 1)
    assert await rig.live.find(token) is not None
    rig.clock.task_clock.advance(1)
    assert await rig.live.find(token) is None
    assert [link.has_expired for link in rig.store.links.values()] == [True], "marked in the file"
    rig.clock.off_s = -DAY / 2
    assert await rig.live.find(token) is None
    assert await rig.restarted().find(token) is None


async def test_clock_that_is_set_back_keeps_no_link_open_longer(rig: Rig) -> None:
    token, _ = await rig.live.make(FILE, "a", DAY)
    assert await rig.live.find(token) is not None
    rig.clock.off_s = -DAY + CLOCK_LEEWAY_S  # As far as it can be set without being before the link.
    rig.clock.task_clock.advance(DAY)
    assert await rig.live.find(token) is None
    assert [link.has_expired for link in rig.store.links.values()] == [True]


async def test_clock_from_before_the_link_was_made_opens_nothing_until_it_is_right(rig: Rig) -> None:
    token, _ = await rig.live.make(FILE, "a", DAY)
    never, _ = await rig.live.make(FILE, "b", None)
    rig.clock.off_s = -CLOCK_LEEWAY_S - 1
    assert await rig.live.find(token) is None and await rig.live.find(never) is None
    rig.clock.off_s = 0
    assert await rig.live.find(token) is not None and await rig.live.find(never) is not None


async def test_link_that_another_process_made_is_found_and_one_that_it_removed_is_not(rig: Rig) -> None:
    token, link = await rig.restarted().make(FILE, "a", DAY)
    assert await rig.live.find(token) == link
    del rig.store.links[link.digest]
    assert await rig.live.find(token) is None
    assert not await rig.live.use(link, is_download=False), "taken back between the two"
    rig.store.links[link.digest] = link
    assert await rig.live.find(token) == link


async def test_downloads_are_counted_up_to_the_limit_and_pages_are_not(rig: Rig) -> None:
    token, link = await rig.live.make(FILE, "a", DAY, most_downloads=2)
    assert [await rig.live.use(link, is_download=False) for _ in range(3)] == [True] * 3
    assert [await rig.live.use(link, is_download=True) for _ in range(4)] == [True, True, False, False]
    (kept,) = rig.store.links.values()
    assert (kept.uses, kept.downloads) == (5, 2)
    assert await rig.live.find(token) is None and [each.state(0) for each in await rig.live.all()] == ["used up"]


class HeldCpu(InlineCpu):
    """Makes its calls when a test says so, whether anybody still waits for the result or not."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Callable[[], None]] = []

    def run(self, function: Callable[..., T], *arguments: object) -> Awaitable[T]:
        answer: Deferred[T] = Deferred()

        def call() -> None:
            result = function(*arguments)
            if not answer.called:
                answer.callback(result)

        self.held.append(call)
        return answer


async def test_download_whose_visitor_went_away_before_its_first_byte_is_taken_off_again(rig: Rig) -> None:
    _, link = await rig.live.make(FILE, "a", DAY, most_downloads=1)
    cpu = rig.runtime.cpu = HeldCpu()
    asking = Deferred.fromCoroutine(rig.live.use(link, is_download=True))
    asking.addErrback(lambda failure: failure.trap(CancelledError))
    counting = cpu.held.pop()
    asking.cancel()
    counting()
    (kept,) = rig.store.links.values()
    assert (kept.downloads, kept.uses) == (1, 1), "a thread cannot be canceled"
    cpu.held.pop()()
    (kept,) = rig.store.links.values()
    assert (kept.downloads, kept.uses, cpu.held) == (0, 0, [])
    asking = Deferred.fromCoroutine(rig.live.use(link, is_download=True))
    cpu.held.pop()()
    assert await asking and not cpu.held


async def test_links_that_cannot_be_read_are_a_fault_for_every_token_alike(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    token, link = await rig.live.make(FILE, "a", DAY)
    limited = evolve(link, most_downloads=1)
    rig.store.error = ConfigError("/secret/path/share-links.json: damaged")
    messages = set()
    for text in (token, "unknown"):
        with pytest.raises(ServiceUnavailable) as fault:
            await rig.live.find(text)
        messages.add(str(fault.value))
    assert len(messages) == 1 and "secret" not in messages.pop()
    rig.store.error = OSError(28, "No space left on device")
    assert await rig.live.use(link, is_download=True), "only a number is lost"
    with pytest.raises(ServiceUnavailable):
        await rig.live.use(limited, is_download=True)
    with pytest.raises(ServiceUnavailable, match="No space left"):
        await rig.live.make(FILE, "b", DAY)


async def test_gateway_without_a_client_directory_has_no_links() -> None:
    live = LiveLinks(VirtualRuntime(), None)
    assert await live.find("token") is None and await live.all() == []
    with pytest.raises(ServiceUnavailable, match="no client directory"):
        await live.make(FILE, "a", DAY)


async def test_password_of_a_link_is_checked(rig: Rig) -> None:
    _, link = await rig.live.make(FILE, "a", DAY, password="correct horse")
    assert link.password is not None
    assert await rig.live.matches(link.password, "correct horse")
    assert not await rig.live.matches(link.password, "wrong horse")


async def test_digest_of_a_token_is_all_that_is_kept(rig: Rig) -> None:
    token, link = await rig.live.make(FILE, "a", DAY)
    assert list(rig.store.links) == [link.digest] == [token_digest(token)]
