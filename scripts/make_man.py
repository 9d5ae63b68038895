"""Write the man pages of all commands to docs/man: make_man.py, or make_man.py --check to verify that they are current.

The pages are kept in the tree so that installing does not require click-man. They are generated from the commands'
help, without a date or version, which would change them needlessly.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path

import click
from click_man.core import generate_man_page

from grid.cli.main import cli
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.invocation import COMMANDS, DEFAULT_DIRECTORY, SECTIONS, examples
from grid.version import __version__

DOCS = Path(__file__).resolve().parent.parent / "docs"
FOLDER = DOCS / "man"
FILES = {
    f"{DEFAULT_DIRECTORY}/": "The client directory that commands use if neither -d nor GRID_NODE_DIR names another.",
    f"{DEFAULT_DIRECTORY}/tahoe.cfg": "Its configuration; grid.cfg is a link to it.",
    f"{DEFAULT_DIRECTORY}/private/aliases": "The names of your directories, with their capabilities. Keep it secret, and keep a copy elsewhere.",
    f"{DEFAULT_DIRECTORY}/node.url": "The address of the gateway that this client serves.",
}
"""The section on a client's files, in every page."""


def main(arguments: list[str]) -> int:
    """Exit code 0 if the pages are written, or current."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    pages = {f"{name}.1": text for name, text in man_pages().items()}
    kept = {path.name: path.read_text() for path in FOLDER.glob("*.1")}
    stale = sorted(name for name in {*pages, *kept} if pages.get(name) != kept.get(name))
    if not arguments:
        FOLDER.mkdir(exist_ok=True)
        for name in stale:
            (FOLDER / name).unlink(missing_ok=True)
            if name in pages:
                (FOLDER / name).write_text(pages[name])
        return 0
    if stale:
        print(f"these man pages are not what the commands' help says: {' '.join(stale)}", file=sys.stderr)
        print("write them anew: .tox/environment/bin/python scripts/make_man.py", file=sys.stderr)
    return 1 if stale else 0


def man_pages() -> dict[str, str]:
    """The pages by name, of every command that is not hidden."""
    return pages_of(cli, click.Context(cli, info_name="grid"))


def pages_of(command: click.Command, context: click.Context) -> dict[str, str]:
    """The pages of this command and its subcommands."""
    pages: dict[str, str] = {}
    if isinstance(command, click.Group):
        below = {name: command.get_command(context, name) for name in command.list_commands(context)}
        # click-man reads a group's commands from an attribute that lazy groups leave empty. Two names of one command
        # get a phrase each.
        command.commands.update(
            {name: copy(each) for name, each in below.items() if each is not None and not each.hidden}
        )
        for name, each in command.commands.items():
            pages |= pages_of(each, click.Context(each, info_name=name, parent=context))
    name = context.command_path.replace(" ", "-")
    pages[name] = page_of(command, context)
    return pages


def page_of(command: click.Command, context: click.Context) -> str:
    """One page in man's format."""
    whole = inspect.cleandoc(command.help or "")
    command.short_help = _phrase(command, context)
    said, _, command_lines = (command.epilog or "").partition(_EXAMPLES)
    command.help = "\n\n".join(text for text in (whole, said) if text)
    text = generate_man_page(context, version=f"Grid {__version__}", date=" ")
    # click-man puts a hyphen only before the last word of a page's name.
    path = context.command_path
    text = text.replace(f"See \\fB{path}-", f"See \\fB{path.replace(' ', '-')}-")
    command.help = whole
    lines = [_safe(line) for line in text.splitlines()]
    ends = [*_examples(command_lines.splitlines()), *_exit_codes(context), *_files(), *_see_also(context)]
    return "\n".join([*lines, *ends]) + "\n"


_EXAMPLES = examples("").removesuffix("  ")
"""What stands before the example command lines in an epilog."""


def _examples(given: Sequence[str]) -> list[str]:
    """The section of example command lines, as they are typed."""
    typed = [line.strip().replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq") for line in given]
    return [".SH EXAMPLES", ".nf", *typed, ".fi"] if typed else []


def _phrase(command: click.Command, context: click.Context) -> str:
    """What the command does, as a phrase that apropos lists: its line in the list of commands."""
    words = context.command_path.split(" ")
    entry = COMMANDS.get(words[1]) if len(words) == 2 else None
    text = (
        entry.help if entry is not None else command.short_help or inspect.cleandoc(command.help or "").split("\n\n")[0]
    )
    text = " ".join(text.split()).partition(". ")[0].rstrip(".")
    return text[:1].lower() + text[1:]


def _exit_codes(context: click.Context) -> list[str]:
    """The section that man pages call EXIT STATUS, from the first two columns of docs/exit-codes.md.

    The page of a command leaves out what a code means only for another command.
    """
    rows = re.findall(
        r"^\| (\d+) \| ([^|]+) \|", (DOCS / "exit-codes.md").read_text().partition("\n## ")[0], re.MULTILINE
    )
    assert [int(code) for code, _ in rows] == [code.value for code in ExitCode], "docs/exit-codes.md lacks a code"
    kept = [
        (code, "; ".join(part for part in meaning.split("; ") if _concerns(part, context))) for code, meaning in rows
    ]
    return [".SH EXIT STATUS", *_terms(kept)]


def _concerns(meaning: str, context: click.Context) -> bool:
    """Whether a meaning that may begin with "for `backup`" concerns this command; `grid` has all of them."""
    named = re.match(r"for `([\w-]+)`", meaning)
    return named is None or context.command_path in ("grid", f"grid {named[1]}")


def _files() -> list[str]:
    """The section on the files of a client directory."""
    return [".SH FILES", *_terms(FILES.items())]


def _see_also(context: click.Context) -> list[str]:
    """The section that names the parent command and those of the same group."""
    path = context.command_path.split(" ")
    if len(path) == 1:
        names = []
    else:
        group = next((list(entries) for entries in SECTIONS.values() if path[1] in entries), [])
        names = ["-".join(path[:-1]), *(f"grid-{name}" for name in group if path != ["grid", name])]
    shown = [f"\\fB{name.replace('-', chr(92) + '-')}\\fP(1)" for name in dict.fromkeys(names)]
    where = "The source tree of Grid contains its documentation: begin with docs/README.md."
    return [".SH SEE ALSO", *([", ".join(shown), ".PP"] if shown else []), where]


def _terms(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A list of terms and definitions."""
    return [line for term, meaning in pairs for line in (".TP", f"\\fB{term}\\fP", meaning)]


def _safe(line: str) -> str:
    """Escape a line that man would take for a request, unless click-man wrote one."""
    is_request = line.startswith(".") and line[1:3].isupper()
    return "\\&" + line if line.startswith((".", "'")) and not is_request else line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
