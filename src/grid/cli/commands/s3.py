"""`grid s3 key|public add|list|remove`: manage access to a node's S3 interface."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from grid.cli.terminal.invocation import examples, json_option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from grid.caps import DirectoryCap
    from grid.cli.arguments.remote import RemotePath


@click.group()
def s3() -> None:
    """Manage the S3 interface of a node. `[s3] port` in the configuration turns it on."""


@s3.group()
def key() -> None:
    """Manage access keys. A running node picks up changes immediately."""


@key.command(
    short_help="Create an access key.",
    epilog=examples(
        "grid s3 key add --bucket photos=work:photos",
        "grid s3 key add --bucket photos=work:photos --read-only",
        "grid s3 key add --buckets-in work:buckets",
    ),
)
@click.option(
    "--bucket", "buckets", metavar="NAME=ALIAS:PATH", multiple=True,
    help="A bucket, and the directory that holds its objects; repeat for more buckets.",
)  # fmt: skip
@click.option(
    "--buckets-in", "home", metavar="ALIAS:PATH",
    help="A directory of buckets: each directory in it is one. The key can create and delete buckets there, unless it "
    "is read-only.",
)  # fmt: skip
@click.option("--read-only", is_flag=True, help="Create a key that can only read.")
@json_option()
@click.pass_context
def add(ctx: click.Context, *, buckets: tuple[str, ...], home: str | None, read_only: bool, as_json: bool) -> int:
    """Create an access key, and print it with its secret, which is never shown again.

    Give --bucket, --buckets-in, or both. The directories must exist; `grid mkdir` creates them.
    """
    import time

    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import Tree, open_tree_directory, run_in_tree
    from grid.node.s3_keys import changing_keys, new_pair
    from grid.s3.accounts import Account

    if not buckets and home is None:
        raise click.UsageError("Name at least one bucket with --bucket, or a directory of buckets with --buckets-in.")
    directory, aliases = open_tree_directory(ctx)
    private = _private(directory)
    wanted = _parse_buckets(buckets, aliases)
    home_path = None if home is None else parse_remote(home, aliases)

    async def operation(tree: Tree) -> tuple[dict[str, DirectoryCap], DirectoryCap | None]:
        async def cap(path: RemotePath) -> DirectoryCap:
            found = (await tree.find_directory(path)).cap
            return found.read_cap() if read_only else found

        found = {name: await cap(path) for name, path in wanted.items()}
        return found, None if home_path is None else await cap(home_path)

    found, home_cap = run_in_tree(directory, operation)
    access_key, secret = new_pair()
    with changing_keys(private) as accounts:
        accounts[access_key] = Account(
            access_key=access_key, secret=secret, buckets=found, home=home_cap, created=round(time.time())
        )
    if as_json:
        click.echo(json.dumps({"event": "s3-key-add", "access_key": access_key, "secret_key": secret}))
        return 0
    click.echo(f"access key: {access_key}")
    click.echo(f"secret key: {secret}")
    return 0


@key.command(
    "list",
    short_help="Show the access keys.",
    epilog=examples("grid s3 key list", "grid s3 key list --json", "grid -d ~/client s3 key list"),
)
@json_option("Print a JSON array on one line.")
@click.pass_context
def list_keys(ctx: click.Context, *, as_json: bool) -> int:
    """Show the access keys and their buckets, never their secrets."""
    from grid.cli.arguments.tree import open_tree_directory
    from grid.node.s3_keys import read_keys
    from grid.s3.accounts import PUBLIC
    from grid.s3.times import iso_time

    accounts = read_keys(_private(open_tree_directory(ctx)[0]))
    accounts.pop(PUBLIC, None)
    if as_json:
        said = [
            {
                "access_key": each.access_key,
                "created": each.created,
                "buckets": sorted(each.buckets),
                "makes_buckets": each.home is not None and not each.is_read_only,
                "read_only": each.is_read_only,
            }
            for each in accounts.values()
        ]
        click.echo(json.dumps(said))
        return 0
    for each in accounts.values():
        created = iso_time(each.created)[:10]
        opened = [*sorted(each.buckets), *(["a directory of buckets"] if each.home else [])]
        kind = "read only" if each.is_read_only else "read and write"
        click.echo(f"{each.access_key}  {created}  {kind}: {', '.join(opened)}")
    return 0


@key.command(
    short_help="Remove an access key.",
    epilog=examples(
        "grid s3 key remove GK0123456789ABCDEFGH",
        "grid -d ~/client s3 key remove GK0123456789ABCDEFGH",
        "grid s3 key remove --json GK0123456789ABCDEFGH",
    ),
)
@click.argument("access_key", metavar="KEY")
@json_option()
@click.pass_context
def remove(ctx: click.Context, *, access_key: str, as_json: bool) -> int:
    """Remove an access key. A running node refuses it at once. Its buckets stay."""
    from grid.cli.arguments.tree import open_tree_directory
    from grid.errors import GridError
    from grid.node.s3_keys import changing_keys

    with changing_keys(_private(open_tree_directory(ctx)[0])) as accounts:
        if not access_key or accounts.pop(access_key, None) is None:
            raise GridError(f"there is no access key {access_key}; `grid s3 key list` shows all keys")
    line = {"event": "s3-key-remove", "access_key": access_key}
    click.echo(json.dumps(line) if as_json else f"removed {access_key}")
    return 0


@s3.group()
def public() -> None:
    """Manage public buckets, which anyone can read and list without an access key. A running node picks up
    changes immediately.
    """


@public.command(
    "add",
    short_help="Make directories public buckets.",
    epilog=examples(
        "grid s3 public add --bucket website=work:website",
        "grid -d ~/client s3 public add --bucket website=work:website",
        "grid s3 public add --json --bucket website=work:website",
    ),
)
@click.option(
    "--bucket", "buckets", metavar="NAME=ALIAS:PATH", multiple=True, required=True,
    help="A bucket, and the directory that holds its objects; repeat for more buckets.",
)  # fmt: skip
@json_option("Print a line of JSON for each bucket.")
@click.pass_context
def add_public(ctx: click.Context, *, buckets: tuple[str, ...], as_json: bool) -> int:
    """Let anyone who can reach the S3 interface read and list a directory, without an access key.

    The directory must exist. Nobody can change it without an access key.
    """
    from grid.cli.arguments.tree import Tree, open_tree_directory, run_in_tree
    from grid.node.s3_keys import changing_keys
    from grid.s3.accounts import PUBLIC, everybody

    directory, aliases = open_tree_directory(ctx)
    private = _private(directory)
    wanted = _parse_buckets(buckets, aliases)

    async def operation(tree: Tree) -> dict[str, DirectoryCap]:
        return {name: (await tree.find_directory(path)).cap for name, path in wanted.items()}

    found = run_in_tree(directory, operation)
    with changing_keys(private) as accounts:
        before = accounts[PUBLIC].buckets if PUBLIC in accounts else {}
        accounts[PUBLIC] = everybody({**before, **found})
    for name in sorted(found):
        line = {"event": "s3-public-add", "bucket": name}
        click.echo(json.dumps(line) if as_json else f"{name} is public")
    return 0


@public.command(
    "list",
    short_help="Show the public buckets.",
    epilog=examples("grid s3 public list", "grid s3 public list --json", "grid -d ~/client s3 public list"),
)
@json_option("Print a JSON array on one line.")
@click.pass_context
def list_public(ctx: click.Context, *, as_json: bool) -> int:
    """Show the names of the public buckets."""
    from grid.cli.arguments.tree import open_tree_directory
    from grid.node.s3_keys import read_keys
    from grid.s3.accounts import PUBLIC

    account = read_keys(_private(open_tree_directory(ctx)[0])).get(PUBLIC)
    names = sorted(account.buckets) if account is not None else []
    if as_json:
        click.echo(json.dumps(names))
        return 0
    for name in names:
        click.echo(name)
    return 0


@public.command(
    "remove",
    short_help="Make a bucket private again.",
    epilog=examples(
        "grid s3 public remove website",
        "grid -d ~/client s3 public remove website",
        "grid s3 public remove --json website",
    ),
)
@click.argument("bucket", metavar="BUCKET")
@json_option()
@click.pass_context
def remove_public(ctx: click.Context, *, bucket: str, as_json: bool) -> int:
    """Make a public bucket private again. The directory stays.

    A running node then refuses requests that have no access key.
    """
    from grid.cli.arguments.tree import open_tree_directory
    from grid.errors import GridError
    from grid.node.s3_keys import changing_keys
    from grid.s3.accounts import PUBLIC, everybody

    with changing_keys(_private(open_tree_directory(ctx)[0])) as accounts:
        left = dict(accounts[PUBLIC].buckets) if PUBLIC in accounts else {}
        if left.pop(bucket, None) is None:
            raise GridError(f"{bucket} is not a public bucket; `grid s3 public list` shows them")
        accounts[PUBLIC] = everybody(left)
    line = {"event": "s3-public-remove", "bucket": bucket}
    click.echo(json.dumps(line) if as_json else f"{bucket} is private")
    return 0


def _parse_buckets(texts: tuple[str, ...], aliases: Mapping[str, str]) -> dict[str, RemotePath]:
    """Parse NAME=ALIAS:PATH, each name once; UsageError, GridError."""
    from grid.cli.arguments.remote import parse_remote
    from grid.errors import GridError
    from grid.s3.accounts import is_bucket_name

    wanted: dict[str, RemotePath] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not is_bucket_name(name):
            raise click.UsageError(
                f"--bucket {text}: expected NAME=ALIAS:PATH; a NAME has 3 to 63 lower-case letters, digits, dots and hyphens"
            )
        if name in wanted:
            raise GridError(f"the bucket {name} is named twice")
        wanted[name] = parse_remote(path, aliases)
    return wanted


def _private(home: object) -> Path:
    """The directory that holds the keys; ConfigError without a client directory."""
    from grid.cli.arguments.aliases import require_lasting

    require_lasting(home)  # type: ignore[arg-type]
    private: Path = home.private  # type: ignore[attr-defined]
    return private
