"""Campaign files: the built-in ones by name, and users' own by path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perf.campaigns.campaign import Campaign
from perf.campaigns.campaign_file import parse_campaign
from perf.campaigns.smoke import smoke as smallest
from perf.campaigns.toml_file import CampaignError
from perf.campaigns.workload import Workload, parse_workload

FOLDER = Path(__file__).resolve().parent

_DRIVEN = re.compile(r"^\s*driver\s*=", re.MULTILINE)


def names() -> list[str]:
    """The names of the built-in campaigns."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str, *, smoke: bool = False, changes: Mapping[str, Any] | None = None) -> Campaign | Workload:
    """Load a campaign by name or path; CampaignError if it is missing or invalid.

    smoke: reduce it to its smallest form. A file that names a driver is a workload. changes: values to use for keys at the top.
    """
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        there = ", ".join(names())
        raise CampaignError(
            f"no campaign {name!r} ({error.strerror}); there are {there}, or give a .toml file"
        ) from None
    except UnicodeDecodeError:
        raise CampaignError(f"{path}: this is no text in UTF-8, so no campaign") from None
    if _DRIVEN.search(content):
        return parse_workload(content, path.stem, str(path), smoke=smoke, changes=changes)
    campaign = parse_campaign(content, path.stem, str(path), changes)
    return smallest(campaign) if smoke else campaign


def load_campaign(name: str, changes: Mapping[str, Any] | None = None) -> Campaign:
    """The same, but CampaignError for a workload."""
    found = load(name, changes=changes)
    if isinstance(found, Workload):
        raise CampaignError(f"{name} has the driver {found.driver}: it asks no clients of grids by itself")
    return found
