"""Resources of a soak's processes over time: memory, descriptors, objects and timers. Pure."""

from __future__ import annotations

from collections import Counter

from attrs import field, frozen

from perf.sampling.growth import Allowance, fit

COLD = Allowance(amount=64 * 2**20, part=0.5)
"""How much more than before it was ever used a process may have resident at the end, at rest: code, caches and connections."""

MOST_RESIDENT = 200 * 2**20
"""The most resident bytes that a storage node may ever have, whatever clients do (decision 0130)."""


@frozen(kw_only=True)
class Process:
    """A process of a soak. name: of its directory. is_node: whether it is a storage node."""

    name: str
    pid: int
    is_node: bool = False


@frozen
class Holdings:
    """Samples of held resources, by process and kind. allowed: the permitted growth from early to late samples."""

    allowed: dict[str, Allowance]
    _samples: dict[tuple[Process, str], list[tuple[float, float]]] = field(factory=dict, init=False)
    _peaks: dict[Process, int] = field(factory=dict, init=False)

    def note(self, process: Process, at: float, held: dict[str, float], peak: int) -> None:
        """Record a sample of each kind. peak: peak resident bytes."""
        self._peaks[process] = peak
        for kind, value in held.items():
            self._samples.setdefault((process, kind), []).append((at, value))

    def lines(self) -> list[str]:
        """One line for each kind and each process that lived throughout: first, last and greatest values."""
        lines = []
        names = Counter(process.name for process in self._peaks)
        for (process, kind), samples in sorted(self._samples.items(), key=lambda item: (item[0][0].name, item[0][1])):
            values = [value for _, value in samples]
            text = f"{process.name} {kind}: {_shown(kind, values[0])} first, {_shown(kind, values[-1])} last"
            growth = fit([at for at, _ in samples], values)
            if names[process.name] > 1:
                continue  # It was killed and restarted.
            if growth is not None:
                text += f", {_shown(kind, growth.early)} early, {_shown(kind, growth.late)} late"
            if kind == "rss":
                text += f", {_shown(kind, self._peaks[process])} at most"
            lines.append(text)
        return lines

    def defects(self) -> list[str]:
        """Resources that grew or did not return to their level, and storage nodes that held too much."""
        wrong = []
        end = max((samples[-1][0] for samples in self._samples.values()), default=0.0)
        for (process, kind), samples in self._samples.items():
            values = [value for _, value in samples]
            growth = fit([at for at, _ in samples], values)
            if growth is None:
                continue
            if growth.exceeds(self.allowed[kind]):
                wrong.append(f"grows: {process.name} {kind}: {growth.early:.0f} -> {growth.late:.0f}")
            if kind == "descriptors" and values[-1] - values[0] > self.allowed[kind].of(values[0]):
                wrong.append(f"keeps descriptors: {process.name}: {values[0]:.0f} -> {values[-1]:.0f}")
            if kind == "rss" and samples[-1][0] == end and values[-1] - values[0] > COLD.of(values[0]):
                wrong.append(f"keeps memory: {process.name}: {_shown(kind, values[0])} -> {_shown(kind, values[-1])}")
        wrong += [
            f"holds too much: {process.name} had {_shown('rss', peak)} resident"
            for process, peak in self._peaks.items()
            if process.is_node and peak > MOST_RESIDENT
        ]
        return wrong


def _shown(kind: str, value: float) -> str:
    return f"{value / 2**20:.0f} MiB" if kind == "rss" else f"{value:.0f}"
