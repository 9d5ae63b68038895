"""How many descriptors a node may have."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from grid.node.descriptors import WANTED, descriptors_in_use, plan_descriptors
from grid.wire.connections.places import Places


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


@pytest.mark.parametrize("limit", [40, 64, 100, 256, 1024, 4096, WANTED])
def test_descriptors_however_few_are_enough_for_places_and_files_together(limit: int) -> None:
    in_use = 10
    plan = plan_descriptors(limit, in_use)
    places = Places(plan.connections)
    assert in_use + places.most + plan.files <= limit
    assert plan.files >= min(8, plan.connections)
    assert plan.connections >= 4


def test_descriptors_when_few_still_leave_places_for_several_clients() -> None:
    plan = plan_descriptors(64, 10)
    assert plan.connections >= 16
    assert plan.files >= 16


def test_descriptors_in_use_are_counted() -> None:
    before = descriptors_in_use()
    with open(os.devnull), open(os.devnull):
        assert descriptors_in_use() == before + 2
