"""The share links of a client directory, in the private file `private/share-links.json`. (decision 460)

Commands and a running gateway change it: each locks it for the moment of a change. A gateway reads it again when it has
changed, so a link that was taken back opens nothing from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from grid.errors import ConfigError
from grid.gateway.shared.share_links import ShareLink, pack_links, parse_links
from grid.node.files import MAX_TEXT, locked, make_private_directory, read_text, write_atomically

NAME = "share-links.json"

PUBLIC_URL = "node.public_url"
"""The file beside `node.url` with the gateway's address for other machines, if it has one."""

VISITORS = "node.visitors"
"""The file beside it that says what those who reach the gateway may do: READ_ONLY, or READ_WRITE, which also stores files."""

DOOR_URLS = {"S3": "node.s3_url", "SFTP": "node.sftp_url"}
"""The files beside it with the addresses of the node's other interfaces, by their names."""

READ_ONLY = "read-only"
READ_WRITE = "read-write"


class ShareFile:
    """The file, which need not exist yet; implements `LinkStore`."""

    def __init__(self, private: Path) -> None:
        self._private = private
        self._seen: tuple[tuple[int, ...] | None, Sequence[ShareLink]] = (None, ())

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._private / NAME

    def read(self) -> Sequence[ShareLink]:
        """The links, parsed again only if the file has changed; ConfigError, also if others can read it."""
        mark = self._look()
        before, links = self._seen
        if mark is None:
            return ()
        if mark != before:
            links = self._parse()
            self._seen = (mark, links)
        return links

    @contextmanager
    def changing(self) -> Iterator[dict[bytes, ShareLink]]:
        """Lock and read the links by digest, and write them if the block changed them. ConfigError, OSError."""
        make_private_directory(self._private)
        with locked(self._private):
            before = {link.digest: link for link in self._parse()}
            links = dict(before)
            yield links
            if links == before:
                return
            data = pack_links(links.values()).encode("ascii")
            if len(data) > MAX_TEXT:
                raise ConfigError(f"{self.path}: there are too many share links: take some back with `grid unshare`")
            # If the file is a symbolic link, replace its target.
            write_atomically(self.path.resolve(), data)

    def _parse(self) -> Sequence[ShareLink]:
        text = read_text(self.path)
        if text is None:
            return ()
        if self.path.stat().st_mode & 0o077:
            raise ConfigError(
                f"{self.path}: others can read it, and what is shared in it; run `chmod 600` on it, and make new links"
            )
        return parse_links(text, str(self.path))

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise ConfigError(f"{self.path}: {problem.strerror}") from None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode
