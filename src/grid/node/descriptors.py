"""How many files and connections a node may have open at once."""

from __future__ import annotations

import resource

WANTED = 65536
"""Descriptors that serve thousands of idle connections with room for the files of those that are served."""


def raise_descriptor_limit() -> int:
    """Let this process have as many descriptors as it may, up to WANTED; how many that are.

    The limit that systems give a process is often 1024: that many idle connections would shut everybody else out.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        # Some systems refuse what their hard limit seems to allow: the node runs with what it has.
        return soft
    return wanted
