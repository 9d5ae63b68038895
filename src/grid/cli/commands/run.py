"""`grid run` and `grid gateway`, which run a node in the foreground, and `grid stop`, which stops one."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from grid.cli.terminal.invocation import examples, invocation, json_option

if TYPE_CHECKING:
    from grid.node.directory import NodeDirectory

_STOP_WITH_STDIN = click.option(
    "--stop-with-stdin", is_flag=True, help="Also stop when stdin ends, as it does when a parent process exits."
)


@click.command(
    epilog=examples("grid run ~/storage1", "grid -d ~/storage1 run", "grid run --json ~/storage1 | tee node.log")
)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@_STOP_WITH_STDIN
@click.option("--allow-stdin-close", is_flag=True, hidden=True, help="What `grid run` does anyway; 1.20 has it.")
@json_option("Write the log as lines of JSON, like [node] log_format = json.")
@click.pass_context
def run(
    ctx: click.Context, *, directory: str | None, stop_with_stdin: bool, allow_stdin_close: bool, as_json: bool
) -> int:
    """Run the node in DIR, or in the directory that -d names, until SIGTERM or Ctrl-C.

    The log goes to stdout, and never contains a capability.
    """
    from grid.cli.terminal.runner import InterruptedBySignal, run_task
    from grid.node.directory import open_directory
    from grid.node.log import NodeLog
    from grid.node.process_limits import raise_descriptor_limit
    from grid.node.running import claim
    from grid.node.services import run_node
    from grid.runtime import make_runtime

    node = open_directory(Path(directory if directory is not None else invocation(ctx).node_directory))
    log = NodeLog("json" if as_json else node.settings.log_format)
    log.say(f"'grid run' in {str(node.path)!r}")
    _tell_what_matters(node, log.say)

    async def task(reactor: Any) -> None:  # noqa: ANN401
        if stop_with_stdin:
            _watch_stdin(reactor)
        await run_node(node, make_runtime(reactor), reactor, log.say)

    raise_descriptor_limit()
    with claim(node.path):
        try:
            run_task(task, log, node.settings.web_drain_s if node.settings.web_port else 0.0)
        except InterruptedBySignal as stopped:
            log.say("stopped")
            return 0 if stopped.number == signal.SIGTERM else 128 + stopped.number
    return 0


def _tell_what_matters(node: NodeDirectory, say: Callable[[str], None]) -> None:
    """Log how the last run ended, if it crashed; log, and print to stderr, that the node has no introducer."""
    from grid.node.introducers import missing_introducer
    from grid.node.running import find_dead

    dead = find_dead(node.path)
    if dead is not None:
        say(
            f"the last run (pid {dead}) did not end cleanly: its process was killed or crashed, or the machine went down"
        )
    warning = missing_introducer(node)
    if warning:
        say(f"warning: {warning}")
        if not _is_same_file(1, 2):
            click.echo(f"grid: warning: {warning}", err=True)


def _is_same_file(one: int, other: int) -> bool:
    """Whether two file descriptors lead to the same place, such as a terminal or a journal."""
    try:
        return os.path.sameopenfile(one, other)
    except OSError:
        return False


def _watch_stdin(reactor: Any) -> None:  # noqa: ANN401
    """Send SIGTERM to this process when stdin ends. A thread waits for it, because stdin may be anything."""
    import threading

    def wait() -> None:
        try:
            while os.read(0, 4096):
                pass
        except OSError:
            pass
        reactor.callFromThread(os.kill, os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="stdin", daemon=True).start()


@click.command(
    epilog=examples(
        "grid gateway",
        "grid gateway --read-only --listen ssl:8443:privateKey=KEY.pem:certKey=CERT.pem:interface=0.0.0.0 ~/.grid",
        "grid web     # opens its pages",
    )
)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@click.option(
    "--listen",
    metavar="ENDPOINT",
    help="Where to listen: a port number, tcp:PORT:interface=ADDRESS, or ssl:PORT:privateKey=FILE:certKey=FILE. "
    "Default: [node] web.port, or port 3456. Only this machine can connect unless you name an interface.",
)
@click.option(
    "--read-only",
    "is_read_only",
    is_flag=True,
    help="Visitors can only open and download what they have a capability for; the same as [node] web.read_only = "
    "yes. A browser opened by `grid web` can still do everything.",
)
@_STOP_WITH_STDIN
@json_option("Write the log as lines of JSON, like [node] log_format = json.")
@click.pass_context
def gateway(
    ctx: click.Context,
    *,
    directory: str | None,
    listen: str | None,
    is_read_only: bool,
    stop_with_stdin: bool,
    as_json: bool,
) -> int:
    """Serve the web API and the pages for browsers from the client in DIR, or in the directory that -d names.

    Like `grid run`, but with a web gateway even if web.port is not set, then at port 3456.
    Anyone who can reach the gateway can use the capabilities they have and, unless it is read-only, store files. The
    log goes to stdout, and never contains a capability. The address is written to DIR/node.url, where the `tahoe`
    command looks for it too.
    """
    from attrs import evolve

    from grid.cli.terminal.runner import InterruptedBySignal, run_task
    from grid.errors import ConfigError
    from grid.node.directory import NodeKind, open_directory
    from grid.node.log import NodeLog
    from grid.node.process_limits import raise_descriptor_limit
    from grid.node.running import claim
    from grid.node.services import run_node
    from grid.node.web_address import DEFAULT_PORT, PortInUseError
    from grid.runtime import make_runtime

    node = open_directory(Path(directory if directory is not None else invocation(ctx).node_directory))
    if node.kind is NodeKind.INTRODUCER:
        raise ConfigError(f"{node.path}: a gateway needs a client directory; `grid create client DIR` creates one")
    settings = node.settings
    is_read_only = is_read_only or settings.web_read_only
    settings = evolve(settings, web_port=listen or settings.web_port or DEFAULT_PORT, web_read_only=is_read_only)
    node = evolve(node, settings=settings)
    log = NodeLog("json" if as_json else node.settings.log_format)
    log.hold()
    log.say(f"'grid gateway' in {str(node.path)!r}")
    _tell_what_matters(node, log.say)

    def say(line: str) -> None:
        log.release()
        log.say(line)

    async def task(reactor: Any) -> None:  # noqa: ANN401
        if stop_with_stdin:
            _watch_stdin(reactor)
        await run_node(node, make_runtime(reactor), reactor, say)

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
            log.release()  # A bug: release the log, which says where.
            raise
    return 0


@click.command(epilog=examples("grid stop ~/storage1", "grid stop --now ~/storage1", "grid -d ~/storage1 stop"))
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(file_okay=False))
@click.option("--now", is_flag=True, help="Cut off requests in progress.")
@json_option()
@click.pass_context
def stop(ctx: click.Context, *, directory: str | None, now: bool, as_json: bool) -> int:
    """Stop the node in DIR, or in the directory that -d names, and wait until it has stopped.

    Its web gateway accepts no new connections, and has up to `[node] web.drain_timeout` (60 s) to finish requests in
    progress. Ctrl-C ends the wait, not the node. With --now, a node that does not react within 10 s is left as it is, and the exit
    code is 1.
    """
    from grid.node.directory import require_node_directory
    from grid.node.files import expand_home
    from grid.node.running import find_dead, patience_s
    from grid.node.running import stop as stop_node

    # The pid is enough: the configuration may be broken or missing.
    path = expand_home(directory if directory is not None else invocation(ctx).node_directory).absolute()

    def say(line: str) -> None:
        if not as_json:
            click.echo(line, err=True)

    found = stop_node(path, patience_s=patience_s(path), say=say, at_once=now)
    dead = None if found else find_dead(path)
    if not found:
        require_node_directory(path)
    if as_json:
        click.echo(json.dumps({"event": "stop", "directory": str(path), "stopped": found}))
    elif dead is not None:
        click.echo(f"no node was running: its process (pid {dead}) has ended before, without cleaning up")
    else:
        click.echo("the node has stopped" if found else "no node was running")
    return 0
