"""Ciphers on this processor, with its instructions for AES and without them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from attrs import evolve

from perf.campaigns.workload import Workload
from perf.processes.installation import ROOT
from perf.processes.node_process import child_environment
from perf.workloads.rows import Table, blank

WITHOUT_AES = "~0x200000200000000:~0x60000000000"
"""OPENSSL_ia32cap: no AES-NI and PCLMULQDQ, and none of their wide forms. Only OpenSSL heeds it, on x86 alone."""

PIECE = 1 << 20


PROCESSORS = {"processor": {}, "processor without AES instructions": {"OPENSSL_ia32cap": WITHOUT_AES}}
"""System -> variables of its process."""


def ciphers_micro(settings: Workload, work: Path, table: Table) -> None:
    """A process with the instructions, and one without, in turn; a sample for each kernel."""
    for run in range(settings.runs):
        for system, variables in PROCESSORS.items():
            for _ in table.once(run, system, {}):
                done = subprocess.run(
                    [sys.executable, "-m", "perf.workloads.cipher_process"],
                    stdout=subprocess.PIPE,
                    cwd=ROOT,
                    env={**child_environment(), **variables},
                    check=True,
                )
                for name, rate in json.loads(done.stdout).items():
                    table.add(
                        evolve(blank(run, system, "compute", {"kernel": name}, [PIECE]), seconds=PIECE / 1e6 / rate)
                    )
