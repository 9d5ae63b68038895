"""How a storage server is set up: what it may use of its disk, how durable an answer is, when leases end. Pure."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen, validators

from grid.errors import ConfigError

Durability = Literal["full", "none"]
ExpiryMode = Literal["age", "cutoff-date"]


@frozen(kw_only=True)
class ExpirySettings:
    """When leases end. override_s: seconds that replace a lease's own duration; cutoff: Unix time.

    Nothing is removed unless `enabled`; a kind that is switched off never expires. ConfigError if the mode
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
    """What a server may do. reserved_space: bytes of the disk it leaves alone.

    durability `full`: an answer means that the change survives a loss of power; `none`: that it survives the
    end of the process. open_files: how many share files it may have open at once, about.
    """

    reserved_space: int = field(default=0, validator=validators.ge(0))
    readonly: bool = False
    durability: Durability = field(default="full", validator=validators.in_(("full", "none")))
    expire: ExpirySettings = ExpirySettings()
    open_files: int = field(default=2**16, validator=validators.ge(2))
