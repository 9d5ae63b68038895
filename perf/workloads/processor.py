"""Ciphers on this processor, with and without its AES instructions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from perf.campaigns.workload import Workload
from perf.processes.installation import ROOT
from perf.processes.node_process import child_environment
from perf.workloads.rows import Table, blank
from perf.workloads.subjects import shuffled

WITHOUT_AES = "~0x200000200000000:~0x60000000000"
"""OPENSSL_ia32cap without AES-NI, PCLMULQDQ and their wide forms. Only OpenSSL on x86 obeys it."""

PIECE = 1 << 20


PROCESSORS = {"processor": {}, "processor without AES instructions": {"OPENSSL_ia32cap": WITHOUT_AES}}
"""Environment variables of each system's process."""


def ciphers_micro(settings: Workload, work: Path, table: Table) -> None:
    """Alternate a process with the instructions and one without; a sample per kernel."""
    for run in range(settings.runs):
        for system, variables in shuffled(settings, run, "", PROCESSORS.items()):
            for attempt in table.once(run, system, {}):
                with attempt:
                    for name, rate in _rates(variables).items():
                        sample = blank(run, system, "compute", {"kernel": name}, [PIECE])
                        table.add(evolve(sample, seconds=PIECE / 1e6 / rate))


def _rates(variables: Mapping[str, str]) -> dict[str, float]:
    """MB/s of each kernel in a process with these environment variables."""
    done = subprocess.run(
        [sys.executable, "-m", "perf.workloads.cipher_process"],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**child_environment(), **variables},
        check=True,
    )
    rates: dict[str, float] = json.loads(done.stdout)
    return rates
