"""`grid mkdir`: make a directory. [spec cli 2.2]"""

from __future__ import annotations

import json

import click


@click.command(short_help="Make a directory.")
@click.argument("path", metavar="[PATH]", required=False, default="")
@click.option("--format", "format_name", type=click.Choice(["SDMF", "MDMF"], case_sensitive=False), help="Its format.")
@click.option("--json", "as_json", is_flag=True, help="The result as one line of JSON.")
@click.pass_context
def mkdir(ctx: click.Context, *, path: str, format_name: str | None, as_json: bool) -> int:
    """Make the directory PATH, with those above it that are missing, and print its capability.

    Without a PATH, and for `ALIAS:` alone, the directory is linked nowhere: its capability is all there is of it. A
    directory that exists is left as it is.
    """
    from grid.caps import DirectoryCap
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import Tree, open_tree_directory, run_in_tree
    from grid.errors import ChildOfWrongTypeError
    from grid.mutable.share.geometry import FormatName

    directory, aliases = open_tree_directory(ctx)
    names = parse_remote(path, aliases) if path.strip(" ") else None
    chosen: FormatName | None = None if format_name is None else "mdmf" if format_name.upper() == "MDMF" else "sdmf"

    async def operation(tree: Tree) -> DirectoryCap:
        if names is None or not names.names:
            return await tree.store.create_directory(format=chosen)
        await tree.require_meant(names)
        root = tree.store.directory(names.directory)
        try:
            return (await root.make_directories(names.names, format=chosen)).cap
        except ChildOfWrongTypeError:
            raise ChildOfWrongTypeError(
                f"{names.shown}: something on this path is not a directory", name=names.shown
            ) from None

    cap = run_in_tree(directory, operation).to_string()
    click.echo(json.dumps({"event": "mkdir", "cap": cap}) if as_json else cap)
    return 0
