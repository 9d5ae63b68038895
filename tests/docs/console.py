"""Examples in documents: commands in ```console blocks, programs in ```python blocks, and their output.

A line that begins with `$ ` is a command, run in one shell with all others of the page; the lines up to the next are its output.
What a program prints is in the ```text block behind it, if any. In output, `...` stands for anything within a line, and alone on a line for any number of lines.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

_BLOCK = re.compile(
    r"^```console\n(?P<console>.*?)^```$|^```python\n(?P<python>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_MARK = "\x01"
DEADLINE_S = 300


@frozen
class Example:
    """A command, and the lines that it should print."""

    command: str
    expected: tuple[str, ...]

    def matches(self, output: str) -> bool:
        """Whether that is the expected output."""
        pattern = ""
        for line in self.expected:
            if line == "...":
                pattern += r"(?:.*\n)*"
            else:
                pattern += ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
        return re.fullmatch(pattern, output) is not None


def examples(text: str) -> Iterator[Example]:
    """Every example of a document, in order."""
    for block in _BLOCK.finditer(text):
        if block["python"] is not None:
            program = f"python - <<'PROGRAM'\n{block['python']}PROGRAM"
            yield Example(program, tuple((block["output"] or "").splitlines()))
            continue
        command, expected = "", list[str]()
        for line in block["console"].splitlines():
            if line.startswith("$ "):
                if command:
                    yield Example(command, tuple(expected))
                command, expected = line[2:], []
            else:
                expected.append(line)
        yield Example(command, tuple(expected))


def in_place_of(text: str, changes: Mapping[str, str]) -> str:
    """The text with other ports, names and folders. What was put in stays, even if it looks like what is to be replaced."""
    return re.sub("|".join(map(re.escape, changes)), lambda found: changes[found[0]], text)


def run(found: list[Example], home: Path, environment: Mapping[str, str]) -> list[tuple[str, int]]:
    """What each prints, errors included, and its exit code."""
    script = ["exec 2>&1", "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT"]
    for example in found:
        script += ["{", example.command, "}", f"printf '{_MARK}%d{_MARK}' $?"]
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=home,
        env={**environment, "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    parts = done.stdout.split(_MARK)
    return list(zip(parts[0:-1:2], map(int, parts[1::2]), strict=True))
