"""Reads against any combination of scripted faults, with expected results from a model."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from grid.caps import ChkCap
from grid.errors import GridError, NoServersError, NotEnoughSharesError
from grid.immutable.get import ImmutableFile
from tests.support.depth import examples
from tests.support.scripted_grid import ScriptedGrid, encoded, noise
from tests.support.scripted_server import Script

FILES = [(5_000, 1200), (90_000, 2**20), (400_000, 131072), (300_000, 2**20)]
"""(size, segment size): whole shares with the first answer; blocks apart; the layout guessed wrong; one segment."""

SERVERS = 8
LIMIT_S = 1000.0

FAULTS = st.one_of(
    st.fixed_dictionaries({"dead_from": st.integers(0, 4)}),
    st.fixed_dictionaries({"silent_from": st.integers(0, 4)}),
    st.fixed_dictionaries({"lost": st.frozensets(st.integers(0, 5), min_size=1, max_size=2)}),
    st.fixed_dictionaries({"broken": st.frozensets(st.integers(0, 5), min_size=1, max_size=2)}),
    st.fixed_dictionaries({"delay_s": st.sampled_from([0.3, 1.0, 4.0])}),
    st.fixed_dictionaries({"rate": st.sampled_from([20e3, 100e3, 1e6])}),
    st.fixed_dictionaries({"claims": st.frozensets(st.integers(-1, 12), min_size=1, max_size=4)}),
    st.fixed_dictionaries({"pieces": st.sampled_from(["many", "few", "long"])}),
)
"""Faults of a whole server."""


class Gets(RuleBasedStateMachine):
    """One file open over some reads, while servers go wrong and recover, and shares are damaged and moved."""

    def __init__(self) -> None:
        super().__init__()
        self.grid = ScriptedGrid(SERVERS)
        self.sound: set[tuple[int, int]] = set()
        self.data = b""
        self.cap: ChkCap
        self.opened: ImmutableFile

    @initialize(shape=st.sampled_from(FILES), encoding=st.sampled_from([(1, 3), (3, 10), (5, 6), (8, 8)]))
    def lay_file(self, shape: tuple[int, int], encoding: tuple[int, int]) -> None:
        """Every share on one server."""
        size, segment_size = shape
        self.k, self.n = encoding
        self.data = noise(size)
        self.file = encoded(self.data, self.k, self.n, segment_size)
        self.cap = self.file.cap
        self.grid.lay(self.file)
        self.sound = {(number % SERVERS, number) for number in range(self.n)}
        self.opened = self.grid.open(self.cap)

    @rule(index=st.integers(0, SERVERS - 1), faults=FAULTS)
    def go_wrong(self, index: int, faults: dict[str, Any]) -> None:
        """A server gets one more fault."""
        for name, value in faults.items():
            setattr(self.grid.servers[index].script, name, value)
        self.grid.servers[index].calls.clear()

    @rule(index=st.integers(0, SERVERS - 1))
    def recover(self, index: int) -> None:
        """A server behaves again, but its shares stay as they are."""
        script = self.grid.servers[index].script
        self.grid.script(index, corrupt=script.corrupt, short=script.short)

    @rule(data=st.data(), mask=st.integers(1, 255))
    def damage(self, data: st.DataObject, mask: int) -> None:
        """A byte of a share changes."""
        if not self.sound:
            return
        index, number = data.draw(st.sampled_from(sorted(self.sound)))
        position = data.draw(st.integers(0, len(self.file.shares[number]) - 1))
        self.grid.servers[index].script.corrupt[number, position] = mask
        self.sound.discard((index, number))

    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        """A share loses its end."""
        if not self.sound:
            return
        index, number = data.draw(st.sampled_from(sorted(self.sound)))
        self.grid.servers[index].script.short[number] = data.draw(st.integers(0, len(self.file.shares[number]) - 1))
        self.sound.discard((index, number))

    @rule(data=st.data(), index=st.integers(0, SERVERS - 1))
    def copy(self, data: st.DataObject, index: int) -> None:
        """A sound share appears on one more server."""
        number = data.draw(st.integers(0, self.n - 1))
        script = self.grid.servers[index].script
        if number in script.short or any(share == number for share, _ in script.corrupt):
            return
        self.grid.lay(self.file, {index: [number]})
        self.sound.add((index, number))

    @rule(reopen=st.booleans(), data=st.data())
    def read(self, reopen: bool, data: st.DataObject) -> None:
        """A range is right, or refused for lack of shares; a range with enough sound shares is never refused."""
        if reopen:
            self.opened = self.grid.open(self.cap)
        offset = data.draw(st.integers(0, len(self.data) - 1))
        length = data.draw(st.integers(1, len(self.data)))
        before = self.grid.now
        try:
            raw, _ = self.grid.read(self.opened, offset, length)
        except (NotEnoughSharesError, NoServersError) as error:
            note(str(error))
            assert not (reopen and self._certain()), "enough sound shares were within reach"
        else:
            assert raw == self.data[offset : offset + length]
        assert self.grid.now - before < LIMIT_S

    def _certain(self) -> bool:
        """Whether enough sound shares are on servers that have no fault at all, but slowness."""
        numbers = {number for index, number in self.sound if self._answers(self.grid.servers[index].script)}
        return len(numbers) >= self.k

    def _answers(self, script: Script) -> bool:
        lasting = script.dead_from is not None or script.silent_from is not None or script.pieces != "right"
        return not (lasting or script.lost or script.broken)

    @precondition(lambda self: self.data)
    @invariant()
    def nothing_is_left(self) -> None:
        """Once it is settled, no server is still waited for."""
        assert all(not server.incoming for server in self.grid.servers)


Gets.TestCase.settings = settings(
    max_examples=examples(150), stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)
)
TestGets = Gets.TestCase


def test_machine_when_all_faults_are_scripted_sees_each_of_them_fire() -> None:
    """The faults above are not idle: each occurs in a read of some file."""
    fired: set[str] = set()
    faults: list[dict[str, Any]] = [
        {"dead_from": 0},
        {"silent_from": 0},
        {"lost": frozenset({0})},
        {"broken": frozenset({0})},
        {"rate": 1e6},
        {"claims": frozenset({11})},
        {"pieces": "few"},
        {"corrupt": {(number, 40): 1 for number in range(3)}},
        {"short": dict.fromkeys(range(3), 100)},
    ]
    for fault in faults:
        grid = ScriptedGrid(3)
        file = encoded(noise(5_000), 1, 3, 1200)
        grid.lay(file)
        for index in range(3):
            grid.script(
                index, **{name: dict(value) if isinstance(value, dict) else value for name, value in fault.items()}
            )
        try:
            assert grid.get(file.cap) == noise(5_000)
        except GridError:
            assert fault.keys() & {"dead_from", "silent_from", "pieces", "corrupt", "short"}
        for server in grid.servers:
            fired |= {name for name, count in server.fired.items() if count}
    assert fired == {"dead", "silent", "lost", "broken", "slow", "claims", "pieces", "corrupt", "short"}
