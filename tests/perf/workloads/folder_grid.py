"""A grid of which no node runs, for workloads: its files are in a folder, with ten empty shares beside each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from perf.network.contract import Host
from perf.peers.contract import Cost, PeerError
from perf.peers.grids import GridClientName, GridPeer
from perf.workloads import growing, subjects

DONE = Cost(seconds=0.1)


class FolderGrid(GridPeer):
    """Tests override what is to go wrong; `asked` lists what a workload asked for, in order."""

    def __init__(self, client: GridClientName = "cli", asked: list[str] | None = None) -> None:
        super().__init__("grid@http", client, 10)
        self.asked: list[str] = [] if asked is None else asked

    def bring_up(self, server: Host) -> None:
        (self.root / "shares").mkdir()

    def put(self, source: Path, name: str, number: int = 0, words: Sequence[str] = ()) -> Cost:
        shutil.copyfile(source, self.root / "remote" / name)
        self.repair(name)
        return DONE

    def get(self, name: str, target: Path, number: int = 0) -> Cost:
        shutil.copyfile(self.root / "remote" / name, target)
        return DONE

    def put_folder(self, source: Path, name: str) -> Cost:
        self.asked.append(" ".join(self.words))
        shutil.copytree(source, self.root / "remote" / name)
        return DONE

    def get_folder(self, name: str, target: Path, *words: str) -> Cost:
        shutil.copytree(self.root / "remote" / name, target)
        return DONE

    def delete_folder(self, name: str) -> Cost:
        shutil.rmtree(self.root / "remote" / name)
        return DONE

    def make_folder(self, name: str) -> None:
        (self.root / "remote" / name).mkdir(exist_ok=True)

    def copy_command(self, paths: Sequence[Path], name: str, *words: str) -> list[str]:
        return ["true"]

    def copy_into(self, paths: Sequence[Path], name: str, *words: str) -> Cost:
        self.make_folder(name)
        for path in paths:
            shutil.copyfile(path, self.root / "remote" / name / path.name)
        return DONE

    def check(self, name: str) -> Cost:
        if not (self.root / "remote" / name).exists():
            raise PeerError(f"nothing is stored as {name}")
        return DONE

    def repair(self, name: str) -> Cost:
        for number in range(10):
            (self.root / "shares" / f"{name}.{number}").touch()
        return DONE

    def share_files(self) -> set[Path]:
        return set((self.root / "shares").iterdir())

    def use_clients(self, count: int) -> None:
        self.asked.append(f"{count} clients")

    def restart(self) -> None:
        self.asked.append("restart")

    def warm_up(self, name: str) -> None:
        self.asked.append("warm up")


def stand_in(monkeypatch: pytest.MonkeyPatch, make: Callable[[], GridPeer]) -> None:
    """Let workloads measure such a grid in place of every system."""
    for module in (subjects, growing):
        monkeypatch.setattr(module, "make_subject", lambda *_: make())
