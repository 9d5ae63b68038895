"""The server of warm programs, which all tests with commands share, outlives whatever happens to its callers."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.warm_programs import warm_program


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\x09", b"\0\0\0\x09half"])
def test_server_when_a_caller_is_gone_before_it_has_sent_everything_serves_the_next_one(sent: bytes) -> None:
    program = warm_program("grid.cli")
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(Path(program).with_name("socket")))
        caller.sendall(sent)
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "rid" in done.stdout, done.stderr


def test_server_when_callers_are_killed_at_any_moment_serves_the_next_one() -> None:
    program = warm_program("grid.cli")
    for milliseconds in (0, 1, 3, 10, 30, 60, 100):
        caller = subprocess.Popen([program, "--version"], stdout=subprocess.PIPE)
        try:
            caller.wait(milliseconds / 1000)
        except subprocess.TimeoutExpired:
            caller.kill()
        caller.communicate()
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "rid" in done.stdout, done.stderr
