"""Words: one for each thing, the field's own, in plain English. The specifications in docs/spec keep theirs."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.tidy.tree import ROOT, Finding, everything, sources

GONE_WORDS = {
    # word, as a regular expression over identifiers and texts: what is said instead
    r"(?i:octets?)(?!-stream)": "byte",
    r"foresight": "layout cache",
    r"whendone": "when_done",
    r"happymessage": "happiness message",
    r"opresource": "operation_resource",
    r"optable": "operation_table",
    r"opdocuments": "operation_documents",
    r"apitable": "api table",
    r"dirpages": "directory_pages",
    r"checkdocs": "check_documents",
    r"nodejson": "node_json",
    r"statuspages": "status_pages",
    r"recordedstore": "recorded_store",
    r"readbatch": "segment_batch",
    r"heldshare": "held_share",
}

PHRASES = {
    r"so many": "a number, or a limit: `at most COUNT`",
    r"for ever": "forever, or the time that it takes",
    r"whoever": "the caller, you",
    r"whom": "who, or the name of the thing",
    r"what there is": "the name of the thing",
    r"what is said of": "the name of the thing",
    r"comes to": "is, becomes, reaches",
    r"told": "passed, given, notified",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"answered nonsense": "sent an invalid answer",
    r"on a defect": "because of a bug",
    r"exit (?-i:status)(?:es)?": "exit code",  # In capitals, it is a section of man pages.
}
"""What reads as translated, in comments, strings, docstrings and documents: what is written instead."""

GONE_CLASSES = {
    "Asker": "Requester",
    "Claims": "ProofRequests",
    "Entrance": "Endpoint",
    "Foresight": "Speculation",
    "Gathering": "BytesSink",
    "Mended": "RepairResult",
    "Pace": "BodyRate",
    "Place": "Permit, PathEntry, ShareLocation, Extent",
    "Places": "ConnectionLimit",
    "Portions": "ReadChunks",
    "Question": "HttpRequest",
    "Rivals": "OtherWriters",
    "Turns": "Semaphore, ReadWriteLock",
    "Watch": "a word for each meaning",
    "Window": "SegmentRun",
}
"""Names of classes that explained nothing."""

GONE_MODULES = {
    "candidate",
    "claims",
    "finds",
    "foresight",
    "kept",
    "lanes",
    "latch",
    "leaf_runs",
    "number_proof",
    "pace",
    "patience",
    "place",
    "places",
    "portions",
    "rivals",
    "room",
    "rows",
    "stores",
    "turns",
    "unhappiness",
    "unhappy",
    "unlinked",
    "unread",
    "waves",
}
"""Names of modules that explained nothing."""

GLOSSARY = (
    "grid",
    "node",
    "gateway",
    "cap",
    "storage index",
    "share",
    "segment",
    "block",
    "batch",
    "run",
    "row",
    "slot",
    "version",
    "lease",
    "happiness",
    "hedge",
    "plan",
    "driver",
    "port",
    "store",
)
"""Words with one meaning each, which ARCHITECTURE.md gives."""

DOCUMENTS = (".md", ".html", ".js", ".css")
_SPEC = ("docs/spec/", "tests/vectors/")
_GONE = {word: re.compile(rf"(?<![a-zA-Z]){word}(?![a-z])") for word in GONE_WORDS}
_PHRASES = {phrase: re.compile(rf"\b{phrase.replace(' ', '[ ]')}\b", re.IGNORECASE) for phrase in PHRASES}
_ANY_GONE = re.compile("|".join(GONE_WORDS))
_ANY_PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
"""Searched for first: most files hold none, and one pattern takes a tenth of the time that all take."""


@cache
def documents() -> tuple[tuple[str, str], ...]:
    """Path and text of every document, page and script that people read."""
    found = []
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    paths = [*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*"))]
    for path in sorted(set(paths)):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in DOCUMENTS and not name.startswith(_SPEC) and path.is_file():
            found.append((name, path.read_text(encoding="utf-8")))
    return tuple(found)


def gone_words() -> Iterator[Finding]:
    """Banned words, wherever they occur."""
    for path, text in [*((module.path, module.text) for module in everything()), *documents()]:
        for word, pattern in _GONE.items() if _ANY_GONE.search(text) else ():
            for _ in pattern.findall(text):
                yield f"word that has gone, now {GONE_WORDS[word]}", path


def phrases() -> Iterator[Finding]:
    """English that reads as translated, in texts and not in names."""
    for path, text in [*((module.path, module.text) for module in everything()), *documents()]:
        if not _ANY_PHRASE.search(" ".join(text.replace("#", " ").split())):
            continue
        one_line = " ".join((prose(text) if path.endswith(".py") else text).split())
        for phrase, pattern in _PHRASES.items():
            for _ in pattern.findall(one_line):
                yield f"phrase ({phrase.partition('(')[0]})", path


def unexplained_words() -> Iterator[Finding]:
    """Words of the glossary that ARCHITECTURE.md does not explain."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Glossary")[2]
    explained = {word.strip() for words in re.findall(r"^\|([^|]+)\|", text, re.MULTILINE) for word in words.split(",")}
    for word in GLOSSARY:
        if word not in explained:
            yield "glossary", word


@cache
def prose(source: str) -> str:
    """The comments and strings of a module."""
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return "\n".join(token.string.lstrip("# ") for token in tokens if token.type in kinds)


def gone_names() -> Iterator[Finding]:
    """Modules and classes whose names have gone."""
    for module in sources():
        if Path(module.path).stem in GONE_MODULES:
            yield "name that has gone", module.path
        for node in module.nodes:
            if isinstance(node, ast.ClassDef) and node.name.lstrip("_") in GONE_CLASSES:
                yield "name that has gone", f"{module.path}::{node.name}"
