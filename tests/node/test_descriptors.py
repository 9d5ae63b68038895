"""How many descriptors a node may have."""

from __future__ import annotations

import resource
import subprocess
import sys

from grid.node.descriptors import WANTED


def raised_from(soft: int, hard: int) -> str:
    program = (
        "import resource, sys\n"
        "from grid.node.descriptors import raise_descriptor_limit\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))\n"
        "print(raise_descriptor_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(soft), str(hard)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_small_soft_limit_is_raised_to_the_hard_one() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = 512 if hard == resource.RLIM_INFINITY else min(512, hard)
    assert raised_from(allowed // 2, allowed) == f"{allowed} {allowed} {allowed}"


def test_large_soft_limit_is_left_alone() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    assert raised_from(allowed, allowed) == f"{allowed} {allowed} {allowed}"
