"""How a new file is stored, from a request's `format=` and `mutable=`. Pure. [spec webapi 1.3]"""

from __future__ import annotations

from typing import Literal

from grid.mutable.share.geometry import FormatName

FileFormat = Literal["chk", "sdmf", "mdmf"]
"""The formats of files; all but the first are mutable."""


def choose_format(format: FileFormat | None, mutable: bool | None) -> FileFormat:
    """The format named; without one, whether it is to be mutable decides, which means SDMF always."""
    if format is not None:
        return format
    return "sdmf" if mutable else "chk"


def mutable_format(format: FileFormat) -> FormatName | None:
    """The format as the engine of mutable files knows it; None if the file is immutable."""
    return None if format == "chk" else format
