"""Settings of a storage server: how much disk it may use, how durable an answer is, and when leases expire. Pure."""

from __future__ import annotations

from typing import Literal

from attrs import field, validators

from grid.errors import ConfigError
from grid.values import frozen

Durability = Literal["full", "none"]
ExpiryMode = Literal["age", "cutoff-date"]


@frozen(kw_only=True)
class ExpirySettings:
    """When leases expire. override_s: seconds that replace a lease's own duration; cutoff: Unix time.

    Nothing is removed unless `enabled`, and shares of a disabled kind never expire. ConfigError if the mode
    needs a cutoff and there is none. [spec storage-server 10.2]
    """

    enabled: bool = False
    mode: ExpiryMode = field(default="age", validator=validators.in_(("age", "cutoff-date")))
    override_s: int | None = field(default=None, validator=validators.optional(validators.ge(0)))
    cutoff: int | None = None
    immutable: bool = True
    mutable: bool = True

    def __attrs_post_init__(self) -> None:
        if self.mode == "cutoff-date" and self.cutoff is None:
            raise ConfigError("leases that expire by a cutoff date need one: set expire.cutoff_date")


@frozen(kw_only=True)
class StorageSettings:
    """Limits and durability of a server. reserved_space: bytes of the disk that it leaves free.

    durability `full`: an answer means that the change survives a loss of power; `none`: that it survives the
    end of the process. open_files: about how many share files may be open at once.
    """

    reserved_space: int = field(default=0, validator=validators.ge(0))
    readonly: bool = False
    durability: Durability = field(default="full", validator=validators.in_(("full", "none")))
    expire: ExpirySettings = ExpirySettings()
    open_files: int = field(default=2**16, validator=validators.ge(2))
