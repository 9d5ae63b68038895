"""Modules that a command imports: only those that it needs."""

from __future__ import annotations

from pathlib import Path

from grid.node.local_grid import LocalGrid
from tests.cli.test_remembered_servers import loaded_by

RUN = "from grid.cli.main import main; assert main(['-d', *sys.argv[1:]]) == 0"

MOST_OF_THE_COMMAND_LINE = 20
"""Packages among them: a file is read or stored by about fifteen modules of the command line."""
MOST_OF_A_PUT = 195
MOST_OF_A_GET = 179
MOST_OF_A_TRANSFER = 320


def ours(loaded: set[str], package: str = "grid") -> set[str]:
    return {name for name in loaded if name == package or name.startswith(f"{package}.")}


def test_put_of_an_immutable_file_loads_nothing_of_mutable_ones(local_grid: LocalGrid, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100_000))
    loaded = loaded_by(RUN, local_grid.client, "put", tmp_path / "file")
    assert not ours(loaded, "grid.mutable")
    assert len(ours(loaded, "grid.cli")) <= MOST_OF_THE_COMMAND_LINE, sorted(ours(loaded, "grid.cli"))
    assert len(ours(loaded)) <= MOST_OF_A_PUT, sorted(ours(loaded))


def test_get_loads_nothing_that_writes(local_grid: LocalGrid, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100_000))
    cap = next(name for name in loaded_by(RUN, local_grid.client, "put", tmp_path / "file") if name.startswith("URI:"))
    loaded = loaded_by(RUN, local_grid.client, "get", cap, tmp_path / "back")
    assert not ours(loaded, "grid.mutable") | ours(loaded, "grid.immutable.write")
    assert len(ours(loaded, "grid.cli")) <= MOST_OF_THE_COMMAND_LINE, sorted(ours(loaded, "grid.cli"))
    assert len(ours(loaded)) <= MOST_OF_A_GET, sorted(ours(loaded))


def test_transfer_loads_only_the_ends_that_it_has(local_grid: LocalGrid, tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "file").write_bytes(bytes(1000))
    created = loaded_by(RUN, local_grid.client, "mkdir")
    root = next(name for name in created if name.startswith("URI:DIR2:"))
    to_grid = loaded_by(RUN, local_grid.client, "transfer", tmp_path / "from", root)
    assert not ours(to_grid, "grid.s3") | ours(to_grid, "obstore") | ours(to_grid, "asyncssh")
    assert not ours(to_grid, "grid.cli.undo.journal"), "nothing was replaced"
    assert len(ours(to_grid)) <= MOST_OF_A_TRANSFER, len(ours(to_grid))


def test_object_end_loads_no_parser_until_it_reads_a_document() -> None:
    loaded = loaded_by("import grid.transfer.object_end")
    assert not ours(loaded, "xml") | ours(loaded, "grid.s3.documents") | ours(loaded, "grid.transfer.local_end")
