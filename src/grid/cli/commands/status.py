"""`grid status`: shows which introducers and servers can be reached now."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.invocation import examples
from grid.plural import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twisted.internet.defer import Deferred

    from grid.errors import GridError
    from grid.node.client import Client
    from grid.ports import StorageServer

_ANSWER_S = 10.0
_PATIENCE_S = 1.5
"""When to say on a terminal which servers have not answered."""

MAX_DETAIL = 48
"""Characters of an error; together with a server's name, they fit into a terminal's line."""

_WRONG_FURL = "the FURL is not that introducer's: copy its private/introducer.furl again"


@click.command(
    epilog=examples("grid status", "grid -d ~/other status", "grid --gateway http://127.0.0.1:3456 status --json")
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
@click.pass_context
def status(ctx: click.Context, *, as_json: bool) -> int:
    """Show the introducers and the storage servers, and ask each server for its version and free space.

    The exit code is 0 if enough servers answer and have room to store a file (shares.happy), 5 if too few answer, and 12 if
    too few of those that answer have room.

    With --gateway, show the servers to which the gateway is connected. One server is then enough.
    """
    from grid.cli.connection import open_home, run_with_client, run_with_gateway
    from grid.node.directory import NodeDirectory

    home = open_home(ctx)
    if isinstance(home, NodeDirectory):
        found = {"node": str(home.path), **run_with_client(home, _ask)}
    else:
        from grid.cli.webapi.connection import ask_gateway

        found = {"node": home.address.shown, **run_with_gateway(home, ask_gateway)}
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo("\n".join(describe_status(found)))
    if _count_up(found) < _needed(found):
        return ExitCode.UNREACHABLE
    return ExitCode.OK if _count_with_room(found) >= _needed(found) else ExitCode.NO_SPACE


def _count_up(found: dict[str, Any]) -> int:
    return sum(1 for server in found["servers"] if server["reachable"])


def _count_with_room(found: dict[str, Any]) -> int:
    """How many servers answer and may take files; a server that does not say counts."""
    return sum(1 for server in found["servers"] if server["reachable"] and server["available_space"] != 0)


def _needed(found: dict[str, Any]) -> int:
    """How many servers must answer for exit code 0."""
    encoding = found.get("encoding")
    return max(1, encoding["happy"]) if encoding else 1


async def _ask(client: Client) -> dict[str, Any]:
    answers = await ask_servers(client)
    settings = client.directory.settings.client
    return {
        "encoding": {"needed": settings.needed, "happy": settings.happy, "total": settings.total},
        "introducers": [
            {"name": introducer.petname, "state": introducer.status.state.value, "detail": introducer.status.detail}
            for introducer in client.introducers
        ],
        "servers": answers,
    }


async def ask_servers(client: Client) -> list[dict[str, Any]]:
    """Ask each server for its version and free space; sorted by nickname."""
    from twisted.internet.defer import Deferred as Answer
    from twisted.internet.defer import gatherResults

    from grid.errors import NoServersError

    try:
        servers = await client.servers()
    except NoServersError:
        servers = []
    recalled = {entry.identity.server_id for entry in client.server_set.entries if entry.is_recalled}
    servers = [server for server in servers if server.identity.server_id not in recalled]
    answering = [Answer.fromCoroutine(_ask_server(client, server)) for server in servers]
    notice = client.runtime.clock.call_later(_PATIENCE_S, lambda: _tell_who_is_late(servers, answering))
    try:
        answers = await gatherResults(answering)
    finally:
        notice.cancel()
    # Nicknames are chosen by the servers' operators: shown, never trusted.
    return sorted(answers, key=lambda server: (str(server["nickname"]), str(server["id"])))


def _tell_who_is_late(servers: Sequence[StorageServer], answering: Sequence[Deferred[Any]]) -> None:
    """Print on a terminal which servers have not answered yet, and how long the command waits for them."""
    from grid.node.redaction import one_line

    if not sys.stderr.isatty():
        return
    late = [
        server.identity.nickname or server.identity.server_id[:11]
        for server, answer in zip(servers, answering, strict=True)
        if not answer.called
    ]
    if late:
        names = _shorten(", ".join(late))
        click.echo(one_line(f"waiting up to {_ANSWER_S - _PATIENCE_S:g} s longer for {names} ..."), err=True)


async def _ask_server(client: Client, server: StorageServer) -> dict[str, object]:
    from grid.errors import GridError, PeerTimeoutError
    from grid.placement.space import lack_of_room
    from grid.runtime import with_deadline

    clock = client.runtime.clock
    about: dict[str, object] = {
        "id": server.identity.server_id,
        "nickname": server.identity.nickname,
        "addresses": _addresses(client, server),
    }
    began_at = clock.now()
    try:
        version = await with_deadline(clock, server.get_version(), _ANSWER_S, lambda: PeerTimeoutError("no answer"))
    except GridError as problem:
        # The line already names the server.
        return {**about, "reachable": False, "detail": _why_not(client, server, problem)}
    lack = lack_of_room(version.available_space, version.is_read_only)
    return {
        **about,
        "reachable": True,
        "seconds": round(clock.now() - began_at, 4),
        "version": version.application,
        "available_space": version.available_space,
        **({} if lack is None else {"no_room": lack}),
        "batched_reads": version.batched_reads,
        **_connection(client, server),
    }


def _why_not(client: Client, server: StorageServer, problem: GridError) -> str:
    """Why a server does not answer, without its name. A wait that ended early says less than the state of the connection."""
    from grid.wire.reasons import MUTE

    server_id = server.identity.server_id
    if any(each.identity.server_id == server_id and each.status.detail == MUTE for each in client.server_set.entries):
        return MUTE
    return str(getattr(problem, "reason", "") or problem)


def _addresses(client: Client, server: StorageServer) -> list[str]:
    """Where the server says that it can be reached; the first two."""
    server_id = server.identity.server_id
    entries = client.server_set.entries
    return [hint for entry in entries if entry.identity.server_id == server_id for hint in entry.addresses[:2]]


def _connection(client: Client, server: StorageServer) -> dict[str, object]:
    """The connection's transport, why it is not a better one, if so, and how much the server's clock is ahead."""
    for entry in client.server_set.entries:
        if entry.identity.server_id == server.identity.server_id:
            found: dict[str, object] = {"transport": entry.status.transport, "fallback": entry.status.fallback}
            ahead_s = entry.status.clock_ahead_s
            return found if ahead_s is None else {**found, "clock_ahead": round(ahead_s)}
    return {}


def describe_status(found: dict[str, Any]) -> list[str]:
    """The state as text."""
    from grid.node.redaction import one_line

    lines = [f"node       {found['node']}"]
    if encoding := found.get("encoding"):
        encoded = f"{encoding['needed']}-of-{encoding['total']}, happy with {counted(encoding['happy'], 'server')}"
        lines.append(f"encoding   {encoded}")
    for introducer in found["introducers"]:
        detail = f": {introducer['detail']}" if introducer["detail"] else ""
        lines.append(one_line(f"introducer {introducer['name']}: {introducer['state']}{detail}"))
        if "another node" in detail or "unable to find reference" in detail:
            lines.append(f"  {_WRONG_FURL}")
    lines.append(f"servers    {_summary(found)}")
    if encoding and len(found["servers"]) < _needed(found):
        lines.append("  not listed: servers that have not reached the introducer since it started")
        lines += _fitting_numbers(found)
    if _is_own_clock_off(found["servers"]):
        lines.append(f"  all clocks agree except {'this machine' if encoding else 'the gateway'}'s: correct it")
    for server in found["servers"]:
        name = f"{server['nickname'] or '-':16} {server['id'][:11]:12}"
        if server["reachable"]:
            answer = ", ".join(_describe_answer(server))
        else:
            answer = _shorten(f"offline: {server['detail']}" if server["detail"] else "offline")
        lines.append("  " + one_line(f"{name} {answer}"))
        if not server["reachable"] and (question := _question(server)):
            lines.append("    " + one_line(question))
    return lines


def _fitting_numbers(found: dict[str, Any]) -> list[str]:
    """What to do if every put fails because the grid never had as many servers as the configuration wants."""
    from pathlib import Path

    from grid.cli.arguments.share_counts import fitting_commands
    from grid.node.redaction import one_line

    count = len(found["servers"])
    if not count:
        return []
    has = f"this grid has only {counted(count, 'server')}, and shares.happy is {_needed(found)}"
    return ["  " + one_line(f"{has}; for numbers that fit: {fitting_commands(Path(found['node']), count)}")]


def _summary(found: dict[str, Any]) -> str:
    """How many servers answer, and whether they suffice for storing files."""
    up, needed = _count_up(found), _needed(found)
    text = f"{up} of {len(found['servers'])} answer"
    if up < needed:
        return f"{text}; {needed} are needed to store files"
    with_room = _count_with_room(found)
    if with_room < needed:
        return f"{text}; {with_room} have room, and {needed} are needed to store files"
    return text


def _is_own_clock_off(servers: Sequence[dict[str, Any]]) -> bool:
    """Whether several servers' clocks are known, agree with each other, and all differ from ours."""
    from grid.wire.status import CLOCK_MATTERS_S

    ahead = [server["clock_ahead"] for server in servers if "clock_ahead" in server]
    differs = all(abs(seconds) >= CLOCK_MATTERS_S for seconds in ahead)
    return len(ahead) > 1 and differs and max(ahead) - min(ahead) < CLOCK_MATTERS_S


def _question(server: dict[str, Any]) -> str:
    """What to look at, if a server is offline; "" if the reason is none of the common ones."""
    from grid.wire.status import next_question

    where = _shorten(", ".join(server.get("addresses", ())))
    return ": ".join(part for part in (where, next_question(server["detail"])) if part)


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_DETAIL else text[: MAX_DETAIL - 1] + "…"


def _describe_answer(server: dict[str, Any]) -> list[str]:
    """What is known of a server that answers; a gateway does not report everything."""
    from grid.cli.terminal.columns import shown_size
    from grid.wire.status import clock_text

    known = [server["version"] or "of an unknown version"]
    if server["available_space"] == 0:
        known.append(server.get("no_room") or "no space or read-only")
    elif server["available_space"] is not None:
        known.append(f"{shown_size(server['available_space'])} free")
    if "seconds" in server:
        known.append(f"{server['seconds'] * 1000:.0f} ms")
    known += [server[what] for what in ("transport", "fallback") if server.get(what)]
    if clock := clock_text(server.get("clock_ahead")):
        known.append(clock)
    return known
