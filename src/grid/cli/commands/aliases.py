"""`grid create-alias`, `add-alias`, `list-aliases`: names for directories. [spec cli 2.1]"""

from __future__ import annotations

import json

import click

from grid.cli.terminal.invocation import examples, json_option


@click.command(
    "create-alias", epilog=examples("grid create-alias work", "grid create-alias photos", "grid cp -r docs work:")
)
@click.argument("name")
@json_option()
@click.pass_context
def create_alias(ctx: click.Context, *, name: str, as_json: bool) -> int:
    """Create an empty directory and call it NAME: from now on, `NAME:PATH` is a path in it.

    The name belongs to this client directory: private/aliases stores it there, with the directory's write capability.
    """
    from grid.caps import DirectoryCap
    from grid.cli.arguments.aliases import add_alias, check_new_name, require_lasting
    from grid.cli.arguments.tree import Tree, open_tree_directory, run_in_tree

    directory, aliases = open_tree_directory(ctx)
    name = check_new_name(name, aliases)
    require_lasting(directory)

    async def operation(tree: Tree) -> DirectoryCap:
        return await tree.store.create_directory()

    cap = run_in_tree(directory, operation)
    add_alias(directory, name, cap)
    line = {"event": "create-alias", "name": name, "cap": cap.to_string()}
    click.echo(json.dumps(line) if as_json else f"Alias '{name}' created")
    return 0


@click.command(
    "add-alias",
    epilog=examples(
        "grid add-alias theirs URI:DIR2-RO:...", "grid add-alias theirs - < directory.cap", "grid ls theirs:"
    ),
)
@click.argument("name")
@click.argument("cap", metavar="DIRCAP|-")
@json_option()
@click.pass_context
def add_alias_command(ctx: click.Context, *, name: str, cap: str, as_json: bool) -> int:
    """Give the directory DIRCAP (- reads it from stdin) the name NAME: from now on, `NAME:PATH` is a path in it."""
    from grid.caps import DirectoryCap
    from grid.cli.arguments.aliases import add_alias, check_new_name, require_lasting
    from grid.cli.arguments.cap_argument import take_cap
    from grid.cli.arguments.tree import open_tree_directory
    from grid.errors import CapError

    directory, aliases = open_tree_directory(ctx)
    name = check_new_name(name, aliases)
    require_lasting(directory)
    parsed, _ = take_cap((cap,), None)
    if not isinstance(parsed, DirectoryCap):
        raise CapError("this is not the capability of a directory")
    add_alias(directory, name, parsed)
    click.echo(json.dumps({"event": "add-alias", "name": name}) if as_json else f"Alias '{name}' added")
    return 0


@click.command(
    "list-aliases",
    epilog=examples("grid list-aliases", "grid list-aliases --readonly-uri", "grid list-aliases --json | jq keys"),
)
@click.option("--readonly-uri", is_flag=True, help="Show read capabilities.")
@json_option("Print JSON, with both capabilities of each.")
@click.pass_context
def list_aliases(ctx: click.Context, *, readonly_uri: bool, as_json: bool) -> int:
    """Show every alias with its capability. A capability gives access to the whole directory: keep it secret."""
    from grid.cli.arguments.aliases import usable_aliases
    from grid.cli.arguments.tree import open_tree_directory
    from grid.cli.terminal.quoting import plain

    _, aliases = open_tree_directory(ctx)
    caps, problem = usable_aliases(aliases)
    if as_json:
        both = {
            name: {"readwrite": cap.to_string(), "readonly": cap.read_cap().to_string()} for name, cap in caps.items()
        }
        click.echo(json.dumps(both, indent=4))
    else:
        width = max((len(plain(name)) for name in caps), default=0) + 2
        for name, cap in caps.items():
            shown = cap.read_cap() if readonly_uri else cap
            click.echo(f"{plain(name):>{width}}: {shown.to_string()}")
    if problem is not None:
        raise problem
    return 0
