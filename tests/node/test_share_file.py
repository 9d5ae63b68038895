"""The file of share links: private to its owner, changed by several processes, and refused if it is not whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from grid.caps import ChkCap
from grid.errors import ConfigError
from grid.gateway.shared.share_links import ShareLink, add_link, make_link
from grid.gateway.sharing.live_links import LiveLinks
from grid.node.share_file import NAME, ShareFile
from tests.support.virtual_time import VirtualRuntime

FILE = ChkCap(key=b"k" * 16, ueb_hash=b"u" * 32, needed=3, total=10, size=123_456)
ROOT = Path(__file__).resolve().parent.parent.parent


def add(file: ShareFile, name: str = "a") -> ShareLink:
    link = make_link(f"token of {name}", FILE, name, 1000, expires=None)
    with file.changing() as links:
        add_link(links, link, 1000)
    return link


def test_links_that_are_added_or_removed_count_at_once_in_every_process(tmp_path: Path) -> None:
    mine, gateway = ShareFile(tmp_path / "private"), ShareFile(tmp_path / "private")
    assert gateway.read() == ()
    link = add(mine)
    assert list(gateway.read()) == [link] and gateway.read() is gateway.read()
    with gateway.changing() as links:
        links[link.digest] = evolve(link, uses=1)
    assert [each.uses for each in mine.read()] == [1]
    with mine.changing() as links:
        del links[link.digest]
    assert list(gateway.read()) == []
    assert mine.path.stat().st_mode & 0o777 == 0o600 and (tmp_path / "private").stat().st_mode & 0o777 == 0o700


def test_change_that_fails_or_changes_nothing_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = ShareFile(tmp_path)
    add(file)
    before = file.path.stat()
    with file.changing():
        pass
    with pytest.raises(KeyError), file.changing() as links:
        links.pop(links.popitem()[0])
    after = file.path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert [path.name for path in tmp_path.iterdir()] == [NAME], "no temporary file is left"


@pytest.mark.parametrize("text", ["", "{}", '{"version": 1, "links": [', "\0" * 100])
def test_damaged_file_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    file = ShareFile(tmp_path)
    file.path.write_text(text)
    file.path.chmod(0o600)
    with pytest.raises(ConfigError, match="not a file of share links; restore it, or remove it"):
        file.read()
    with pytest.raises(ConfigError, match=str(file.path)):
        add(file)
    assert file.path.read_text() == text


def test_file_that_others_can_read_opens_nothing(tmp_path: Path) -> None:
    file = ShareFile(tmp_path)
    add(file)
    file.path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        file.read()
    with pytest.raises(ConfigError, match="chmod 600"):
        add(file, "b")


def test_file_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(ConfigError, match="Is a directory"):
        ShareFile(tmp_path).read()


ADDING = """
import sys
from pathlib import Path
from tests.node.test_share_file import ShareFile, add
for number in range(20):
    add(ShareFile(Path(sys.argv[1])), f"{sys.argv[2]} {number}")
"""


def test_two_processes_that_change_the_file_at_once_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ADDING, str(tmp_path)]
    processes = [subprocess.Popen([*command, name], cwd=ROOT) for name in ("one", "two")]
    assert [process.wait(100) for process in processes] == [0, 0]
    names = {link.name for link in ShareFile(tmp_path).read()}
    assert names == {f"{name} {number}" for name in ("one", "two") for number in range(20)}


USING = """
import sys
from pathlib import Path
from tests.node.test_share_file import use_often
print(use_often(Path(sys.argv[1])))
"""


def use_often(private: Path) -> int:
    """Begin twenty downloads of the only link; how many were allowed."""
    runtime, file = VirtualRuntime(), ShareFile(private)
    live, (link,) = LiveLinks(runtime, file), file.read()
    return sum(runtime.run(live.use(link, is_download=True)) for _ in range(20))


def test_two_gateways_that_count_downloads_at_once_allow_no_more_than_the_limit(tmp_path: Path) -> None:
    file = ShareFile(tmp_path)
    with file.changing() as links:
        add_link(links, make_link("token", FILE, "a", 1000, expires=None, most_downloads=25), 1000)
    command = [sys.executable, "-c", USING, str(tmp_path)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sum(int(process.communicate(timeout=100)[0]) for process in processes) == 25
    assert [(link.downloads, link.uses) for link in file.read()] == [(25, 25)]
