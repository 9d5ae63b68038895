"""`grid df`: shows the free space of the servers, raw and for files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.invocation import examples, invocation, json_option
from grid.plural import counted

if TYPE_CHECKING:
    from grid.node.client import Client


@click.command(epilog=examples("grid df", "grid df --bytes", "grid df --json | jq .free_as_files"))
@click.option("-b", "--bytes", "in_bytes", is_flag=True, help="Print sizes in bytes.")
@json_option()
@click.pass_context
def df(ctx: click.Context, *, in_bytes: bool, as_json: bool) -> int:
    """Show how much space each server has left, and roughly how many bytes of files fit.

    With 3-of-10 encoding, files take 3.3 times their size. Servers on one host that report the same free space are
    assumed to share a disk, which counts once in the total. A file needs `happy` different servers. If some are much
    fuller than the rest, new files cannot use all the free space, and a line below the table names the server that
    sets the limit. The exit code is 5 if no server answers.
    """
    from grid.cli.connection import open_client_directory, run_with_client

    if invocation(ctx).gateway is not None:
        raise click.UsageError("a gateway does not say where its servers are: `grid df` works only without --gateway")
    found = run_with_client(open_client_directory(ctx), _ask)
    if as_json:
        click.echo(json.dumps({"event": "df", **found}))
    else:
        click.echo("\n".join(describe(found, in_bytes=in_bytes)))
    return ExitCode.OK if any(server["reachable"] for server in found["servers"]) else ExitCode.UNREACHABLE


async def _ask(client: Client) -> dict[str, Any]:
    from grid.cli.commands.status import ask_servers
    from grid.placement.space import as_files, disks_of, space_of_disks, usable_space

    settings = client.directory.settings.client
    answers = await ask_servers(client)  # Their locations are known only after this.
    hosts = {entry.identity.server_id: entry.status.host for entry in client.server_set.entries}
    servers: list[dict[str, Any]] = [
        {
            "id": answer["id"],
            "nickname": answer["nickname"],
            "reachable": answer["reachable"],
            "free": answer.get("available_space"),
            "free_as_files": None,
            "disk": None,
        }
        for answer in answers
    ]
    known = [server for server in servers if server["free"] is not None]
    places = [(hosts.get(server["id"], ""), server["free"]) for server in known]
    for server, disk in zip(known, disks_of(places), strict=True):
        server["disk"] = disk
        server["free_as_files"] = as_files(server["free"], settings.needed, settings.total)
    there = [server for server in servers if server["reachable"]]
    usable = usable_space([(hosts.get(server["id"], ""), server["free"]) for server in there], settings.happy)
    return {
        "encoding": {"needed": settings.needed, "happy": settings.happy, "total": settings.total},
        "servers": servers,
        "disks": len({server["disk"] for server in known}),
        "free": space_of_disks(places),
        "usable": usable.size,
        "limited_by": None if usable.limit is None else there[usable.limit]["id"],
        "free_as_files": as_files(usable.size, settings.needed, settings.total),
    }


def describe(found: dict[str, Any], *, in_bytes: bool) -> list[str]:
    """The lines of the table, and what limits the room for files. found: as printed with `--json`."""
    from grid.cli.terminal.columns import shown_size, table
    from grid.cli.terminal.quoting import plain

    def size(value: int | None) -> str:
        return str(value) if in_bytes and value is not None else shown_size(value)

    first: dict[int, str] = {}
    rows = []
    for server in found["servers"]:
        name = plain(server["nickname"] or server["id"][:11])
        note = "" if server["reachable"] else "offline"
        if server["disk"] is not None and first.setdefault(server["disk"], name) != name:
            note = f"on the disk of {first[server['disk']]}"
        rows.append((name, size(server["free"]), size(server["free_as_files"]), note))
    up = sum(1 for server in found["servers"] if server["reachable"])
    total = f"{up} of {counted(len(rows), 'server')}, {counted(found['disks'], 'disk')}"
    rows.append(("total", size(found["free"]), size(found["free_as_files"]), total))
    encoding = f"{found['encoding']['needed']}-of-{found['encoding']['total']}"
    lines = table(("SERVER", "FREE", f"FILES ({encoding})", ""), rows, numbers=("FREE", f"FILES ({encoding})"))
    happy = counted(found["encoding"]["happy"], "server")
    names = {server["id"]: plain(server["nickname"] or server["id"][:11]) for server in found["servers"]}
    if found["limited_by"] is not None:
        used = f"New files can use {size(found['usable'])} of the free {size(found['free'])}"
        lines += [
            "",
            f"{used}: each needs room on {happy} (`happy`), and {names[found['limited_by']]} will be full first.",
        ]
    elif found["free"] and not found["usable"]:
        roomy = counted(sum(1 for server in found["servers"] if server["free"]), "server")
        lines += ["", f"No new file fits: each needs room on {happy} (`happy`), and only {roomy} have any."]
    return lines
