"""Write the table of packages in ARCHITECTURE.md from the first line of each package's docstring."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- rooms -->\n", "<!-- end of rooms -->\n"


def table() -> str:
    """The table in Markdown: every package of Grid and of its benchmarks, sorted by path."""
    rows = ["| Package | What it owns |", "|---|---|"]
    for top in (ROOT / "src" / "grid", ROOT / "perf"):
        for init in sorted(top.rglob("__init__.py")):
            docstring = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
            folder = init.parent.relative_to(ROOT).as_posix().removeprefix("src/grid/")
            name = "src/grid" if folder == "src/grid" else folder
            rows.append(f"| `{name}/` | {docstring.splitlines()[0] if docstring else ''} |")
    return "\n".join(rows) + "\n"


def with_table(page: str) -> str:
    """The page with a current table."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
