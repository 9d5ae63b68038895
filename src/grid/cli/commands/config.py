"""`grid config`: the settings of a node directory, one by one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.terminal.invocation import examples, invocation, json_option

if TYPE_CHECKING:
    from pathlib import Path

_KEY = click.argument("key", metavar="[SECTION.]KEY")


@click.group()
def config() -> None:
    """Show and change the settings of the node directory that -d names (or GRID_NODE_DIR; default ~/.grid).

    You may leave out the section of a key that only one section has: `web.port` is node.web.port.
    """


@config.command(
    "list",
    short_help="Show the settings.",
    epilog=examples("grid config list", "grid config list --all", "grid -d ~/storage config list --json"),
)
@click.option("--all", "show_all", is_flag=True, help="Also show keys that are not set.")
@json_option()
@click.pass_context
def list_command(ctx: click.Context, *, show_all: bool, as_json: bool) -> int:
    """Show the settings in the configuration file. FURLs are shortened: `grid config get` shows one in full."""
    from grid.cli.terminal.quoting import plain
    from grid.node.config_edit import values_in
    from grid.node.known_keys import known_names
    from grid.node.redaction import redact

    path, text = _read(ctx)
    values: dict[str, str | None] = {key: redact(value) for key, value in values_in(text, str(path)).items()}
    if show_all:
        values |= {name: None for name in known_names() if name not in values}
    if as_json:
        click.echo(json.dumps({"event": "config-list", "file": str(path), "values": values}))
        return 0
    for key, value in values.items():
        click.echo(f"# {key} is not set" if value is None else f"{plain(key)} = {plain(value)}")
    return 0


@config.command(
    "get",
    short_help="Show a setting.",
    epilog=examples(
        "grid config get client.shares.happy",
        "grid -d ~/storage config get storage.reserved_space",
        "grid config get --json node.nickname | jq .value",
    ),
)
@_KEY
@json_option()
@click.pass_context
def get_command(ctx: click.Context, *, key: str, as_json: bool) -> int:
    """Print the value of a key. If it is not set, its default applies: stdout stays empty, and the exit code is 4."""
    from grid.cli.terminal.quoting import plain
    from grid.errors import NoSuchChildError
    from grid.node.config_edit import split_name, values_in

    path, text = _read(ctx)
    name = ".".join(split_name(key))
    value = values_in(text, str(path)).get(name)
    if value is None:
        raise NoSuchChildError(f"{name} is not set in {path}: its default applies", name="")
    click.echo(json.dumps({"event": "config-get", "key": name, "value": value}) if as_json else plain(value))
    return 0


@config.command(
    "set",
    short_help="Change a setting.",
    epilog=examples(
        "grid config set client.shares.happy 5",
        "grid -d ~/storage config set storage.reserved_space 50G",
        "grid config set node.nickname 'my laptop'",
    ),
)
@_KEY
@click.argument("value")
@json_option()
@click.pass_context
def set_command(ctx: click.Context, *, key: str, value: str, as_json: bool) -> int:
    """Set a key to VALUE. Everything else in the file stays as it is, comments included.

    A value that the node could not use is refused. Restart a running node to make it use the new value.
    """
    return _store(ctx, key, value, as_json=as_json)


@config.command(
    "unset",
    short_help="Reset a setting to its default.",
    epilog=examples(
        "grid config unset client.shares.happy",
        "grid -d ~/storage config unset storage.readonly",
        "grid config unset --json node.web.port",
    ),
)
@_KEY
@json_option()
@click.pass_context
def unset_command(ctx: click.Context, *, key: str, as_json: bool) -> int:
    """Remove a key from the configuration file, so that its default applies."""
    return _store(ctx, key, None, as_json=as_json)


def _store(ctx: click.Context, key: str, value: str | None, *, as_json: bool) -> int:
    import stat

    from grid.cli.terminal.quoting import plain
    from grid.errors import NoSuchChildError
    from grid.node.config_edit import split_name, values_in, with_value
    from grid.node.files import write_atomically
    from grid.node.running import find_running

    path, text = _read(ctx)
    old = values_in(text, str(path))
    name = key if value is None and key in old else ".".join(split_name(key))
    if value is None and name not in old:
        raise NoSuchChildError(f"{name} is not set in {path}", name="")
    changed = with_value(text, str(path), name, value)
    if changed != text:
        write_atomically(path, changed.encode("utf-8"), stat.S_IMODE(path.stat().st_mode))
    runs = find_running(path.parent) is not None
    if as_json:
        line = {"event": "config-set", "key": name, "value": value, "old": old.get(name), "restart_needed": runs}
        click.echo(json.dumps(line))
        return 0
    click.echo(f"{name} is no longer set" if value is None else f"{name} = {plain(value)}")
    if runs:
        click.echo("The node is running: restart it to use the new value.", err=True)
    return 0


def _read(ctx: click.Context) -> tuple[Path, str]:
    """Read the configuration file: its path and text; ConfigError.

    Its settings may be invalid, since these commands fix them.
    """
    from grid.errors import ConfigError
    from grid.node.directory import CONFIG_NAMES, require_node_directory
    from grid.node.files import expand_home, read_text

    directory = expand_home(invocation(ctx).node_directory).absolute()
    require_node_directory(directory)
    files = {(directory / name).resolve() for name in CONFIG_NAMES if (directory / name).exists()}
    if len(files) > 1:
        raise ConfigError(
            f"{directory}: grid.cfg and tahoe.cfg are two different files; make grid.cfg a link to tahoe.cfg: ln -sf tahoe.cfg grid.cfg"
        )
    path = files.pop() if files else directory / "tahoe.cfg"
    return path, read_text(path) or ""
