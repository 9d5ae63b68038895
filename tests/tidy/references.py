"""References that must be valid: to the specification, in import contracts, and to keys."""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from tests.tidy.tree import ROOT, Finding, everything, modules

PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE" + rb" KEY-----")

PURE_NAMES = (
    "grid.crypto.*",
    "grid.codec.*",
    "grid.placement.*",
    "grid.*.*plan",
    "grid.*.geometry",
    "grid.*.layout",
    "grid.*.ueb",
    "grid.*.encode",
    "grid.*.verify",
    "grid.*.sdmf",
    "grid.*.mdmf",
    "grid.*.versions",
    "grid.directory.pack",
    "grid.discovery.announcement*",
    "grid.storage.files.containers",
    "grid.storage.files.leases",
    "grid.storage.files.slots",
    "grid.wire.packed.share_ranges",
    "grid.wire.locators",
    "grid.wire.status",
    "grid.node.config",
    "grid.node.quantities",
)
"""Modules that are formats, kernels or plans by their names: the contract `pure` of setup.cfg must cover them."""

_SPEC_REFERENCE = re.compile(r"\[spec\b([^\]]*)\]")
_SPEC_ITEM = re.compile(r"(?:spec +)?(?:([a-z][a-z-]*)(?: +|$))?(?:(\d+(?:\.\d+)*)(?:-(\d+(?:\.\d+)*))?|([A-Z]))?$")
_HEADING = re.compile(r"^#+ +(?:Part +([A-Z])|(\d+(?:\.\d+)*))[. ]", re.MULTILINE)


@cache
def spec_sections(name: str) -> frozenset[str]:
    """The sections of docs/spec/NAME.md, as a reference names them; empty if there is no such file."""
    path = ROOT / "docs" / "spec" / f"{name}.md"
    if not path.exists():
        return frozenset()
    return frozenset(part or number for part, number in _HEADING.findall(path.read_text(encoding="utf-8")))


def unresolved(text: str) -> Iterator[str]:
    """Every reference to the specification in the text that leads nowhere, or is not one.

    Forms: [spec caps], [spec caps 2], [spec immutable 3, 10; placement 4-6], [spec immutable 12, step 3], [spec wire A],
    and a decision record by its path from the root beside them.
    """
    for inside in _SPEC_REFERENCE.findall(" ".join(re.sub(r"\n\s*#", " ", text).split())):
        name = ""
        for item in re.split(r"[,;] *", inside.strip()):
            if re.fullmatch(r"step \d+", item) or (item.startswith("docs/decisions/") and (ROOT / item).is_file()):
                continue
            match = _SPEC_ITEM.match(item)
            if match is None:
                yield inside.strip()
                break
            name = match[1] or name
            sections = spec_sections(name)
            if not sections or any(wanted and wanted not in sections for wanted in match.groups()[1:]):
                yield inside.strip()
                break


def dangling_references() -> Iterator[Finding]:
    """(rule, what) for each reference to a section of the specification that is not there."""
    texts = [(module.path, module.text) for module in everything()]
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")]
    texts += [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in documents]
    for path, text in texts:
        for reference in unresolved(text):
            yield "spec reference", f"{path}: [spec {reference}]"


def private_keys() -> Iterator[Finding]:
    """(rule, what) for each file of the tree with a private key in it; tests make theirs at run time."""
    for folder, folders, names in os.walk(ROOT):
        generated = {"build", "dist"} if Path(folder) == ROOT else set()
        folders[:] = [name for name in folders if not _is_hidden(name) and name not in generated]
        for path in (Path(folder, name) for name in sorted(names) if not _is_hidden(name) and name not in generated):
            if path.is_file() and PRIVATE_KEY.search(path.read_bytes()):
                yield "private key", path.relative_to(ROOT).as_posix()


def _is_hidden(name: str) -> bool:
    return name.startswith(".") and name != ".ci"


def uncovered_pure_modules() -> Iterator[Finding]:
    """(rule, what) for each module that is pure by its name and missing from the import contract."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    patterns = config["importlinter:contract:pure"]["source_modules"].split()
    for module in modules("src"):
        named = any(fnmatch(module.name, name) for name in PURE_NAMES)
        if named and not any(_matches(pattern, module.name) for pattern in patterns):
            yield "pure contract", module.name


def _matches(pattern: str, name: str) -> bool:
    return name == pattern or (pattern.endswith(".**") and name.startswith(pattern[:-2]))
