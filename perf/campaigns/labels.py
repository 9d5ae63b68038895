"""The names of systems under test: whose grid, over which transport, with which codec and durability. Pure.

`grid@http+zfec#2`: Grid over HTTP, coded by zfec, the second of its kind. What follows a `+` departs from the default,
what follows a `#` only tells equals apart.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

Codec = Literal["isal", "zfec"]
Durability = Literal["full", "none"]

BASES = ("grid@foolscap", "grid@http", "grid@http-plain", "tahoe@foolscap", "tahoe@http")
ALIASES = {"grid": "grid@foolscap", "tahoe": "tahoe@foolscap"}
OPTIONS = ("zfec", "undurable")


@frozen(kw_only=True)
class Label:
    """A label taken apart. base: one of BASES. codec, durability: as records have them; 1.20 has one of each only."""

    base: str
    codec: Codec
    durability: Durability

    @property
    def is_grid(self) -> bool:
        """Whether it is a Grid of ours."""
        return self.base.startswith("grid@")

    @property
    def is_default(self) -> bool:
        """Whether nothing departs from what users get."""
        return not self.is_grid or (self.codec == "isal" and self.durability == "full" and self.base != BASES[2])


def parse_label(text: str) -> Label:
    """ValueError if there is no such system."""
    name, *options = text.partition("#")[0].split("+")
    base = ALIASES.get(name, name)
    if base not in BASES:
        raise ValueError(f"no system {name!r}; there are {', '.join([*ALIASES, *BASES])}")
    if wrong := [option for option in options if option not in OPTIONS]:
        raise ValueError(f"no option {wrong[0]!r} of a system; there are {', '.join(OPTIONS)}")
    if base.startswith("tahoe@"):
        if options:
            raise ValueError(f"{text}: Tahoe-LAFS codes with zfec and never waits for a disk")
        return Label(base=base, codec="zfec", durability="none")
    return Label(
        base=base,
        codec="zfec" if "zfec" in options else "isal",
        durability="none" if "undurable" in options else "full",
    )
