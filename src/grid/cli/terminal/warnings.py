"""What a command tells of what went well, but not as it should: each once, on stderr, a line each."""

from __future__ import annotations

import click

from grid.node.redaction import one_line
from grid.ports import Event, Observer


class Warnings:
    """The warnings of one command."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, text: str) -> None:
        """Say it, unless it was said before."""
        line = one_line(text)
        if line and line not in self._told:
            self._told.add(line)
            click.echo(f"grid: warning: {line}", err=True)

    def heard_by(self, observer: Observer) -> Observer:
        """An observer that tells the warnings among the events, and passes all of them on."""

        def observe(event: Event) -> None:
            if event.what == "warning":
                self.tell(event.detail)
            observer(event)

        return observe
