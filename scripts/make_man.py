"""Write the man pages of all commands to docs/man: make_man.py, or make_man.py --check to see that they are up to date.

The pages are kept in the tree because an installation must not need click-man. They are made from the help of the
commands, with neither a date nor a version that would change them without need.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import click
from click_man.core import generate_man_page

from grid.cli.main import cli
from grid.version import __version__

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "man"


def main(arguments: list[str]) -> int:
    """Exit status 0 if the pages are written, or are up to date."""
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
    """Name -> page, of every command that is not hidden."""
    return pages_of(cli, click.Context(cli, info_name="grid"))


def pages_of(command: click.Command, context: click.Context) -> dict[str, str]:
    """The page of this command, and of those below it."""
    pages: dict[str, str] = {}
    if isinstance(command, click.Group):
        below = {name: command.get_command(context, name) for name in command.list_commands(context)}
        # click-man asks a group for its commands by an attribute that a group of lazy ones leaves empty.
        command.commands.update({name: each for name, each in below.items() if each is not None and not each.hidden})
        for name, each in command.commands.items():
            pages |= pages_of(each, click.Context(each, info_name=name, parent=context))
    name = context.command_path.replace(" ", "-")
    pages[name] = page_of(command, context)
    return pages


def page_of(command: click.Command, context: click.Context) -> str:
    """One page, in the form that man reads."""
    whole = inspect.cleandoc(command.help or "")
    command.short_help = " ".join(whole.split("\n\n")[0].split()).rstrip(".")
    command.help = "\n\n".join(text for text in (whole, command.epilog) if text)
    text = generate_man_page(context, version=f"Grid {__version__}", date=" ")
    command.help = whole
    return "\n".join(_safe(line) for line in text.splitlines()) + "\n"


def _safe(line: str) -> str:
    """The line, not taken for a request of man's language unless click-man wrote one."""
    is_request = line.startswith(".") and line[1:3].isupper()
    return "\\&" + line if line.startswith((".", "'")) and not is_request else line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
