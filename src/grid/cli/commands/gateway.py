"""`grid gateway`: a client node with its web gateway, in the foreground, until it is asked to stop."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import click

from grid.cli.terminal.invocation import invocation


@click.command(short_help="Serve the grid over HTTP until SIGTERM or Ctrl-C.")
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@click.option(
    "--listen",
    metavar="ENDPOINT",
    help="Where: a port number, or tcp:PORT:interface=ADDRESS, or ssl:PORT:privateKey=FILE:certKey=FILE. "
    "Default: [node] web.port, else port 3456; always of this machine alone, unless an interface is named.",
)
@click.pass_context
def gateway(ctx: click.Context, *, directory: str | None, listen: str | None) -> int:
    """Serve the web API and the pages of the client directory DIR (default: that of -d).

    Whoever reaches it can use the grid with the capabilities that they know, and can store files. The log goes to stdout,
    and never has a capability in it. The address is written to DIR/node.url, where `tahoe` looks for it too.
    """
    from attrs import evolve

    from grid.cli.terminal.runner import InterruptedBySignal, run_task
    from grid.errors import ConfigError
    from grid.node.core_dumps import forbid_core_dumps
    from grid.node.descriptors import raise_descriptor_limit
    from grid.node.directory import NodeKind, open_directory
    from grid.node.log import NodeLog
    from grid.node.running import claim
    from grid.node.services import run_node
    from grid.node.web_address import DEFAULT_PORT, PortInUseError
    from grid.runtime import make_runtime

    node = open_directory(Path(directory if directory is not None else invocation(ctx).node_directory))
    if node.kind is NodeKind.INTRODUCER:
        raise ConfigError(f"{node.path}: a gateway takes the directory of a client; `grid create client DIR` makes one")
    node = evolve(node, settings=evolve(node.settings, web_port=listen or node.settings.web_port or DEFAULT_PORT))
    log = NodeLog(node.settings.log_format)
    log.hold()
    log.say(f"'grid gateway' in {str(node.path)!r}")

    def say(line: str) -> None:
        log.release()
        log.say(line)

    async def task(reactor: Any) -> None:  # noqa: ANN401
        await run_node(node, make_runtime(reactor), reactor, say)

    forbid_core_dumps()
    raise_descriptor_limit()
    with claim(node.path):
        try:
            run_task(task, log, node.settings.web_drain_s)
        except InterruptedBySignal as stopped:
            say("stopped")
            return 0 if stopped.number == signal.SIGTERM else 128 + stopped.number
        except PortInUseError as problem:
            raise ConfigError(f"Port {problem.port} is already in use; choose another with --listen.") from None
        except ConfigError:
            raise
        except BaseException:
            log.release()  # A defect: whatever was logged says where.
            raise
    return 0
