"""Local state of a command that uses a gateway: aliases, the local database, and spool space.

They belong to the client directory, if there is one. Without one there are no aliases, and everything recorded is
discarded when the command ends. The configuration is not read, so a directory of Tahoe-LAFS works as well.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from grid.cli.terminal.failures import tell_warning
from grid.cli.terminal.invocation import invocation
from grid.cli.webapi.address import GatewayAddress, parse_address
from grid.errors import ConfigError
from grid.node.files import make_private_directory, read_text
from grid.values import field, frozen


@frozen(kw_only=True)
class GatewayHome:
    """address: of the gateway. is_lasting: whether the directory still exists after the command."""

    address: GatewayAddress = field(repr=False)
    path: Path
    is_lasting: bool

    @property
    def private(self) -> Path:
        """The directory of aliases and the local database."""
        return self.path / "private"

    @property
    def temporary_path(self) -> Path:
        """The directory in which uploads are spooled."""
        return self.path / "tmp"


def open_gateway_home(context: click.Context, path: Path, gateway: str, ca_file: str | None) -> GatewayHome:
    """The home for this gateway: a URL, or `node` for the one that runs in the client directory.

    click.UsageError for an invalid URL; ConfigError if no gateway runs there.
    """
    exists = path.is_dir()
    if gateway == "node":
        text, where = read_text(path / "node.url") if exists else None, str(path / "node.url")
        if text is None:
            raise ConfigError(
                f"{where} does not exist: no gateway is running in this directory; `grid gateway` starts one"
            )
        address = parse_address(text, where, ca_file)
    else:
        try:
            address = parse_address(gateway, "--gateway or GRID_GATEWAY", ca_file)
        except ConfigError as problem:
            raise click.UsageError(str(problem)) from None
    if not address.is_secure and not address.is_loopback:
        what = f"everyone between here and {address.host} can read what you send, including capabilities: use https"
        tell_warning(what, as_json=invocation(context).as_json)
    if exists:
        make_private_directory(path / "private")
        return GatewayHome(address=address, path=path.absolute(), is_lasting=True)
    scratch = tempfile.TemporaryDirectory(prefix="grid-")
    context.call_on_close(scratch.cleanup)
    home = GatewayHome(address=address, path=Path(scratch.name), is_lasting=False)
    make_private_directory(home.private)
    return home
