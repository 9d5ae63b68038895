"""`grid run`: one node in the foreground, until it is asked to stop."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import click

from grid.cli.terminal.invocation import invocation


@click.command(short_help="Run one node until SIGTERM or Ctrl-C.")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@click.option("--stop-with-stdin", is_flag=True, help="Stop as well when stdin ends, as it does with a parent process.")
@click.option("--allow-stdin-close", is_flag=True, hidden=True, help="What `grid run` does anyway; 1.20 has it.")
@click.pass_context
def run(ctx: click.Context, *, directory: str | None, stop_with_stdin: bool, allow_stdin_close: bool) -> int:
    """Run the node of DIR (default: that of -d) until SIGTERM or Ctrl-C.

    The log goes to stdout, and never has a capability in it.
    """
    from grid.cli.terminal.runner import InterruptedBySignal, run_task
    from grid.node.core_dumps import forbid_core_dumps
    from grid.node.descriptors import raise_descriptor_limit
    from grid.node.directory import open_directory
    from grid.node.log import NodeLog
    from grid.node.running import claim
    from grid.node.services import run_node
    from grid.runtime import make_runtime

    node = open_directory(Path(directory if directory is not None else invocation(ctx).node_directory))
    log = NodeLog(node.settings.log_format)
    log.say(f"'grid run' in {str(node.path)!r}")

    async def task(reactor: Any) -> None:  # noqa: ANN401
        if stop_with_stdin:
            _watch_stdin(reactor)
        await run_node(node, make_runtime(reactor), reactor, log.say)

    forbid_core_dumps()
    raise_descriptor_limit()
    with claim(node.path):
        try:
            run_task(task, log, node.settings.web_drain_s if node.settings.web_port else 0.0)
        except InterruptedBySignal as stopped:
            log.say("stopped")
            return 0 if stopped.number == signal.SIGTERM else 128 + stopped.number
    return 0


def _watch_stdin(reactor: Any) -> None:  # noqa: ANN401
    """Send ourselves SIGTERM when stdin ends; a thread waits for that, for stdin may be of any kind."""
    import threading

    def wait() -> None:
        try:
            while os.read(0, 4096):
                pass
        except OSError:
            pass
        reactor.callFromThread(os.kill, os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="stdin", daemon=True).start()
