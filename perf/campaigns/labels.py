"""Labels of systems under test: program, transport, commit, codec and durability. Pure.

`grid@http:054f5b7+zfec#2` is Grid over HTTP at commit 054f5b7 with the zfec codec, the second of its kind. Without a
commit, it is the harness's own tree. `+` introduces departures from the defaults; `#` merely distinguishes identical
systems.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from attrs import frozen

Codec = Literal["isal", "zfec"]
Durability = Literal["full", "none"]

BASES = ("grid@foolscap", "grid@http", "grid@http-plain", "tahoe@foolscap", "tahoe@http")
ALIASES = {"grid": "grid@foolscap", "tahoe": "tahoe@foolscap"}
OPTIONS = ("zfec", "undurable", "unbatched", "unprefetched", "unhedged", "window=*")
ENGINE = ("unbatched", "unprefetched", "unhedged", "window")
"""Options that disable or change one thing in the measured client's engine: perf.systems.engine_options."""

S3_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "rclone": ("tuned", "crypt"),
    "s5cmd": ("tuned",),
    "aws": ("tuned",),
    "boto3": ("tuned",),
    "http": (),
}
S3_SERVERS: Mapping[str, tuple[str, ...]] = {"versitygw": (), "minio": (), "grid": ("packed",)}
PEERS: Mapping[str, tuple[str, ...]] = {
    **{
        f"{client}@{server}": (*options, *more)
        for server, more in S3_SERVERS.items()
        for client, options in S3_OPTIONS.items()
    },
    "scp": ("tuned", "old", "strict", "cipher=*"),
    "sftp": ("tuned", "sync", "strict", "cipher=*"),
    "sftp@grid": ("tuned",),
    "sshfs": (),
    "sshfs@grid": (),
    **dict.fromkeys(("restic", "restic@versitygw", "restic@minio"), ("tuned",)),
    "cp": ("sync",),
}
"""Systems that are not grids: a client program, its server if there is a choice, and the options of each.

`*` stands for any value. Without options, a program runs with its defaults; `tuned` uses its options for speed, `sync`
waits for the disk, a `packed` door puts small objects into packs, `old` is scp's old protocol, and a `strict` server accepts only its default ciphers. perf.peers runs
them.
"""


@frozen(kw_only=True)
class Label:
    """A parsed label.

    base: one of BASES or PEERS. codec, durability: as in records; 1.20 has only one of each, and a peer none. commit:
    of an older Grid, as typed, or empty. options: of a peer, or of ENGINE.
    """

    base: str
    codec: Codec | None
    durability: Durability | None
    commit: str = ""
    options: tuple[str, ...] = ()

    @property
    def is_peer(self) -> bool:
        """Whether it is not a grid."""
        return self.base in PEERS

    @property
    def is_grid(self) -> bool:
        """Whether it is one of our Grids."""
        return self.base.startswith("grid@")

    @property
    def is_guest(self) -> bool:
        """Whether it can be measured on an existing grid: only the Grid of this tree, which starts clients alone."""
        return self.is_grid and not self.commit and self.durability == "full"

    @property
    def is_default(self) -> bool:
        """Whether all settings are the defaults that users get."""
        if not self.is_grid:
            return not self.options
        return (
            not self.commit
            and not self.options
            and self.codec == "isal"
            and self.durability == "full"
            and self.base != BASES[2]
        )


def is_label(text: str) -> bool:
    """Whether there is such a system. Some campaigns measure something else, such as the processor."""
    try:
        parse_label(text)
    except ValueError:
        return False
    return True


def parse_label(text: str) -> Label:
    """Parse a label; ValueError if there is no such system."""
    head, *options = text.partition("#")[0].split("+")
    name, colon, commit = head.partition(":")
    base = ALIASES.get(name, name)
    if base in PEERS and not colon:
        if wrong := [option for option in options if not _is_offered(option, PEERS[base])]:
            raise ValueError(f"no option {wrong[0]!r} of {base}; there are {', '.join(PEERS[base]) or 'none'}")
        return Label(base=base, codec=None, durability=None, options=tuple(options))
    if base not in BASES:
        raise ValueError(f"no system {name!r}; there are {', '.join([*ALIASES, *BASES, *PEERS])}")
    if wrong := [option for option in options if not _is_offered(option, OPTIONS)]:
        raise ValueError(f"no option {wrong[0]!r} of a system; there are {', '.join(OPTIONS)}")
    if colon and not (commit and base.startswith("grid@")):
        raise ValueError(f"{text}: a commit of Grid's stands behind a colon, as in grid@http:054f5b7")
    if commit and _engine_options(options):
        raise ValueError(f"{text}: an older commit has no options of the engine")
    if base.startswith("tahoe@"):
        if options:
            raise ValueError(f"{text}: Tahoe-LAFS codes with zfec and never waits for a disk")
        return Label(base=base, codec="zfec", durability="none")
    return Label(
        base=base,
        codec="zfec" if "zfec" in options else "isal",
        durability="none" if "undurable" in options else "full",
        commit=commit,
        options=_engine_options(options),
    )


def _engine_options(options: Sequence[str]) -> tuple[str, ...]:
    """The options of ENGINE; ValueError for a window that is not a number of bytes."""
    found = tuple(option for option in options if option.partition("=")[0] in ENGINE)
    for option in found:
        name, _, value = option.partition("=")
        if name == "window" and not (value.isdigit() and int(value)):
            raise ValueError(f"{option}: a window is a number of bytes, as in window=4194304")
    return found


SWITCHED_OFF = {"batched-reads": "unbatched", "hash-prefetch": "unprefetched", "hedging": "unhedged"}
"""Key in a campaign file to the option that disables that engine feature."""


def toggled(text: str, key: str, value: str | int | bool) -> str:
    """The label of a Grid with an engine toggle set; ValueError if that Grid does not have it."""
    if key == "plain-reads":
        if value and parse_label(text).base != "grid@http":
            raise ValueError(
                f"plain-reads = true needs grid@http, not {text}: shares are read in the clear over HTTP only"
            )
        return text.replace("grid@http", "grid@http-plain", 1) if value else text
    if key == "window":
        option = f"window={value}"
    elif key == "codec":
        option = "zfec" if value == "zfec" else ""
    else:
        option = "" if value else SWITCHED_OFF[key]
    if not option or option in text.partition("#")[0].split("+")[1:]:
        return text
    head, mark, number = text.partition("#")
    label = f"{head}+{option}{mark}{number}"
    parse_label(label)
    return label


def _is_offered(option: str, offered: Sequence[str]) -> bool:
    """Whether a peer has the option; `name=*` in the list permits any value."""
    name, mark, value = option.partition("=")
    return f"{name}=*" in offered if mark and value else option in offered


def at_commit(text: str, commit: str) -> str:
    """The label of the same system at this commit."""
    head, mark, rest = text.partition("+") if "+" in text else text.partition("#")
    return f"{head}:{commit}{mark}{rest}"


def with_baselines(systems: Sequence[str], commit: str) -> tuple[str, ...]:
    """Each Grid among the systems, followed by the same at this commit; ValueError if there is none."""
    ours = [system for system in systems if parse_label(system).is_grid]
    if not ours:
        raise ValueError("there is no Grid among these systems, so that no commit can be compared with it")
    return tuple(label for system in ours for label in (system, at_commit(system, commit)))


def with_base(text: str, base: str) -> str:
    """The label of the same system with another base, as grid@http+zfec for grid@foolscap+zfec."""
    name = re.split(r"[#+:]", text, maxsplit=1)[0]
    return base + text.removeprefix(name)


def without_commit(text: str) -> str:
    """The label of the same system without its commit, which identifies the counterpart of a baseline."""
    commit = parse_label(text).commit
    return text.replace(f":{commit}", "", 1) if commit else text
