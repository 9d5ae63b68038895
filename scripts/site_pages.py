"""Pages of the documentation site besides docs/: mkdocs calls the functions of this file.

Documents elsewhere in the tree (ARCHITECTURE.md, deploy/README.md, ...) become pages, the commands' help and the
packages' docstrings become the reference, and decision records are added to the navigation. Links in documents are
written for readers of the tree; those that lead to no page of the site become plain text. Mermaid, which draws the
diagrams, is fetched with npm at a pinned version and served by the site itself, so readers need no other host.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from grid.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = {
    "deploy/README.md": "running-nodes.md",
    "CHANGES.md": "changes.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "perf/README.md": "measuring.md",
}
"""Document to page."""

MERMAID = "mermaid@11.4.1"
MERMAID_FILE = "package/dist/mermaid.min.js"
MERMAID_SHA256 = "a43bc1afd446f9c4cc66ac5dd45d02e8d65e26fc5344ec0ef787f88d6ddb6f9e"
MERMAID_PAGE = "assets/mermaid.min.js"
"""Its address in the site. The theme loads Mermaid from elsewhere unless a script of the page has done so."""

_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the generated pages to the navigation."""
    records = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("0*.md"))
    nav: list[Any] = config.nav or []
    nav[1]["Using Grid"].insert(-1, "running-nodes.md")
    nav[2]["Reference"].insert(1, "commands.md")
    nav[2]["Reference"].append("changes.md")
    nav.append(
        {
            "Working on Grid": [
                "architecture.md",
                "contributing.md",
                "measuring.md",
                "performance/tuning.md",
                {"Modules": [f"api/{name}.md" for name in packages()]},
                {"Decisions": ["decisions/README.md", *(f"decisions/{name}" for name in records)]},
            ]
        }
    )
    config.nav = nav
    config.extra_javascript.append(MERMAID_PAGE)
    return config


def packages() -> list[str]:
    """Every package and top-level module of Grid with a public interface."""
    found = (
        path.stem
        for path in (ROOT / "src" / "grid").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    )
    return sorted(name for name in found if not name.startswith("_"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents from elsewhere, the commands, the modules, and Mermaid."""
    files.append(File.generated(config, MERMAID_PAGE, content=mermaid(Path(config.site_dir).parent / "mermaid.min.js")))
    for source, target in ELSEWHERE.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "commands.md", content=command_page()))
    for name in packages():
        # The search leaves the modules out: reading their pages for it took two fifths of the whole build.
        head = f"---\ntitle: grid.{name}\nsearch:\n  exclude: true\n---"
        files.append(File.generated(config, f"api/{name}.md", content=f"{head}\n\n::: grid.{name}\n"))
    return files


def mermaid(kept: Path) -> bytes:
    """The script that draws diagrams, downloaded unless cached in the file; PluginError if it is unavailable."""
    if not kept.exists() or hashlib.sha256(kept.read_bytes()).hexdigest() != MERMAID_SHA256:
        with tempfile.TemporaryDirectory() as folder:
            command = ["npm", "pack", MERMAID, "--silent", "--pack-destination", folder]
            fetched = subprocess.run(["sh", str(ROOT / "scripts" / "retry.sh"), *command], cwd=folder, check=False)
            archives = list(Path(folder).glob("*.tgz"))
            if fetched.returncode or not archives:
                raise PluginError(f"{MERMAID} could not be fetched with npm: is npm installed, and the network there?")
            with tarfile.open(archives[0]) as archive:
                member = archive.extractfile(MERMAID_FILE)
                data = member.read() if member is not None else b""
        if hashlib.sha256(data).hexdigest() != MERMAID_SHA256:
            raise PluginError(f"{MERMAID} is not the one that scripts/site_pages.py names")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(data)
    return kept.read_bytes()


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapt the links of a document to the site."""
    uri = page.file.src_uri
    source = {target: path for path, target in ELSEWHERE.items()}.get(uri, f"docs/{uri}")
    parts = _FENCE.split(markdown)
    for index in range(0, len(parts), 2):
        parts[index] = _LINK.sub(lambda match: relink(match, source, uri, files), parts[index])
    return "".join(parts)


def relink(match: re.Match[str], source: str, uri: str, files: Files) -> str:
    """Adapt one link of the document `source` (from the tree's root), shown at `uri` of the site."""
    text, link, anchor = match[1], match[2], match[3] or ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    target = ELSEWHERE.get(path) or ("README.md" if path == "README.md" else path.removeprefix("docs/"))
    if files.get_file_from_path(target) is not None and (path in {*ELSEWHERE, "README.md"} or path.startswith("docs/")):
        return f"[{text}]({posixpath.relpath(target, posixpath.dirname(uri) or '.')}{anchor})"
    if not (ROOT / path).exists():
        return match[0]
    return text


def command_page() -> str:
    """The help of every command, as `grid COMMAND --help` prints it."""
    parts = [
        "# Commands\n\nWhat `grid --help` and `grid COMMAND --help` print. The man pages say the same: `man grid-put`.\n"
    ]
    context = click.Context(cli, info_name="grid", max_content_width=100)
    parts.append(f"```text\n{cli.get_help(context)}\n```\n")
    for name, command in walk(cli, context):
        parts.append(f"## {name.command_path}\n\n```text\n{command.get_help(name)}\n```\n")
    return "\n".join(parts).replace("\b\n", "")


def walk(group: click.Group, context: click.Context) -> list[tuple[click.Context, click.Command]]:
    """Every visible command below the group, once, with its context."""
    found: list[tuple[click.Context, click.Command]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context, max_content_width=100)
        found.append((inner, command))
        if isinstance(command, click.Group):
            found.extend(walk(command, inner))
    return found
