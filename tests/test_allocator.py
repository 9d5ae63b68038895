"""What processes ask of glibc's allocator, each in a process of its own."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from grid.allocator import HUGE_ROOM, KEPT_MEMORY
from grid.cli.main import cli
from grid.node.create import NewClient, create_client

MIB = 2**20
IS_GLIBC = platform.libc_ver()[0] == "glibc"
FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def test_freed_memory_when_kept_then_taking_it_again_costs_no_page_faults() -> None:
    program = (
        "import resource, sys\n"
        "from grid.allocator import keep_freed_memory\n"
        "if sys.argv[1] == 'keep': keep_freed_memory()\n"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "bytearray(b'x') * 2**22\n"
        "before = faults()\n"
        "for _ in range(10): bytearray(b'x') * 2**22\n"
        "print(faults() - before)\n"
    )
    faults = {
        choice: int(subprocess.run([sys.executable, "-c", program, choice], capture_output=True, check=True).stdout)
        for choice in ("keep", "leave")
    }
    if platform.libc_ver()[0] == "glibc":
        assert faults["keep"] < faults["leave"] / 4


def test_freed_memory_when_kept_then_all_threads_take_from_one_place(tmp_path: Path) -> None:
    program = (
        "import ctypes, sys, threading\n"
        "from grid.allocator import keep_freed_memory\n"
        "if sys.argv[1] == 'keep': keep_freed_memory()\n"
        "libc = ctypes.CDLL(None)\n"
        "gate = threading.Barrier(5)\n"
        "def work():\n"
        "    held = [bytearray(2**16) for _ in range(8)]\n"
        "    gate.wait(), gate.wait()\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "gate.wait()\n"
        "libc.fopen.restype = ctypes.c_void_p\n"
        "file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b'w'))\n"
        "libc.malloc_info(0, file), libc.fclose(file)\n"
        "gate.wait()\n"
    )
    if platform.libc_ver()[0] == "glibc":
        arenas = {}
        for choice in ("keep", "leave"):
            path = tmp_path / choice
            subprocess.run([sys.executable, "-c", program, choice, str(path)], check=True)
            arenas[choice] = path.read_text().count("<heap ")
        assert arenas["keep"] == 1 < arenas["leave"]


def memory_of(*lines: str, limit: int | None = None) -> dict[str, int]:
    """What a program prints as JSON: it may use `status(name)`, KiB of /proc/self/status, and `faults()`."""
    program = (
        "import json, resource\n"
        "from grid.allocator import keep_freed_memory, use_huge_pages\n"
        "def status(name): return int(open('/proc/self/status').read().split(name + ':')[1].split()[0])\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        f"LIMIT = {limit}\n"
        "if LIMIT: resource.setrlimit(resource.RLIMIT_AS, (status('VmSize') * 1024 + LIMIT,) * 2)\n"
    )
    program += "\n".join(lines)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_room_for_huge_pages_when_taken_is_not_resident() -> None:
    found = memory_of(
        "before = {name: status(name) for name in ('VmSize', 'VmRSS')}",
        "use_huge_pages()",
        "print(json.dumps({name: status(name) - before[name] for name in before}))",
    )
    if IS_GLIBC:
        assert found["VmSize"] * 1024 >= HUGE_ROOM
    assert found["VmRSS"] * 1024 < 8 * MIB


def test_memory_of_a_command_is_in_huge_pages_if_the_kernel_has_them() -> None:
    found = memory_of(
        "use_huge_pages()",
        "held = [bytearray(b'x') * 2**20 for _ in range(64)]",
        "rollup = open('/proc/self/smaps_rollup').read()",
        "print(json.dumps({'huge': int(rollup.split('AnonHugePages:')[1].split()[0])}))",
    )
    if IS_GLIBC and HUGE_PAGES.exists() and "[never]" not in HUGE_PAGES.read_text():
        assert found["huge"] * 1024 >= 2 * MIB


def test_memory_that_a_command_frees_costs_nothing_when_taken_again_even_if_asked_to_keep_less_later() -> None:
    found = memory_of(
        "use_huge_pages()",
        "keep_freed_memory()",
        "held = [bytearray(b'x') * 2**20 for _ in range(128)]",
        "del held",
        "kept, before = status('VmRSS'), faults()",
        "held = [bytearray(b'x') * 2**20 for _ in range(128)]",
        "print(json.dumps({'kept': kept, 'faults': faults() - before}))",
    )
    if IS_GLIBC:
        assert found["kept"] * 1024 > 128 * MIB > KEPT_MEMORY
        assert found["faults"] < 128


@pytest.mark.parametrize("limit", [HUGE_ROOM + 24 * MIB, HUGE_ROOM, 48 * MIB])
def test_command_when_its_address_space_is_limited_has_all_of_it(limit: int) -> None:
    found = memory_of(
        "import threading",
        "use_huge_pages()",
        "threads = [threading.Thread(target=int) for _ in range(4)]",
        "for thread in threads: thread.start()",
        "for thread in threads: thread.join()",
        "held = [bytearray(b'x') * 2**16 for _ in range(16 * LIMIT // 2**20 // 4)]",
        "print(json.dumps({'held': sum(map(len, held))}))",
        limit=limit,
    )
    assert found["held"] == limit // 4


def test_command_takes_no_room_where_the_kernel_promises_only_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "overcommit").write_text("2\n")
    found = memory_of(
        "import grid.allocator, pathlib",
        f"grid.allocator.OVERCOMMIT = pathlib.Path({str(tmp_path / 'overcommit')!r})",
        "before = status('VmSize')",
        "use_huge_pages()",
        "print(json.dumps({'room': status('VmSize') - before}))",
    )
    assert found["room"] * 1024 < HUGE_ROOM


def test_commands_that_move_files_use_huge_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class AskedError(Exception):
        """Instead of a client."""

    def note() -> None:
        raise AskedError

    monkeypatch.setattr("grid.allocator.use_huge_pages", note)

    create_client(tmp_path / "client", NewClient(introducer_furl=FURL))
    (tmp_path / "file").write_bytes(b"x")
    for command in (["put"], ["transfer", str(tmp_path / "copy")]):
        ended = CliRunner().invoke(
            cli, ["-d", str(tmp_path / "client"), command[0], str(tmp_path / "file"), *command[1:]]
        )
        assert isinstance(ended.exception, AskedError), ended.exception
