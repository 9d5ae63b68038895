"""State shared by all requests of an S3 door, and one request as its operations see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from grid.caps import DirectoryCap
from grid.directory.gathering import Children, Directories
from grid.engine.grid import Remembered
from grid.gateway.http.body import Body
from grid.gateway.shared.services import Services
from grid.ports import Clock
from grid.runtime import Tasks
from grid.s3.accounts import Account, is_bucket_name
from grid.s3.authentication import Claim
from grid.s3.bucket import Bucket, find_at
from grid.s3.faults import S3Fault, invalid_argument
from grid.s3.lifetimes import BucketLink, Lifetimes
from grid.s3.listing import Lister
from grid.s3.names import beside_of, path_of
from grid.s3.object_info import StoredObject
from grid.s3.packing import ObjectPacks
from grid.s3.signature import RequestHead
from grid.values import define, field

FindAccount = Callable[[str], Account | None]

Place = tuple[Bucket, Sequence[Children]]
"""A bucket, and the children of its directories on a path, from the top on. Of the place of a new object: of those above its own."""


@define(eq=False)
class Door:
    """One door. domain: the host name whose subdomains are buckets; "" for none. find_account: by access key.

    find_public: the account of requests that are not signed, or None. packs_objects: small objects that come together are
    stored in packs.
    """

    services: Services
    find_account: FindAccount = field(repr=False)
    domain: str = ""
    find_public: Callable[[], Account | None] = field(default=lambda: None, repr=False)
    packs_objects: bool = False
    directories: Directories = field(init=False)
    packs: ObjectPacks | None = field(init=False, default=None)
    lister: Lister = field(init=False)
    lifetimes: Lifetimes = field(factory=Lifetimes)
    remembered: Remembered = field(factory=Remembered, repr=False)

    def __attrs_post_init__(self) -> None:
        self.directories = Directories(self.services.store, beside_of)
        if self.packs_objects:
            self.packs = ObjectPacks(self.services, self.directories)
        self.lister = Lister(self.directories, self.services.store.runtime)

    def close(self) -> None:
        """Give up what is under way."""
        if self.packs is not None:
            self.packs.close()
        self.directories.close()

    @property
    def clock(self) -> Clock:
        """The clock of the node."""
        return self.services.store.runtime.clock

    def now(self) -> float:
        """Unix time."""
        return self.clock.unix_time()

    def is_public(self, root: DirectoryCap) -> bool:
        """Whether everybody can read the bucket with this directory."""
        public = self.find_public()
        return public is not None and root.read_cap() in public.buckets.values()

    async def bucket(self, account: Account, name: str) -> Bucket:
        """A bucket of an account; NoSuchBucket."""
        return (await self._reach(account, name, None))[0]

    async def place(self, account: Account, name: str, key: str) -> Place:
        """Where an object of this key goes; NoSuchBucket."""
        directories = path_of(key).directories
        return await self._reach(account, name, directories[:-1] if directories else None)

    async def find(self, account: Account, name: str, key: str) -> tuple[Bucket, StoredObject | None]:
        """A bucket, and the object of this key in it, if any; NoSuchBucket."""
        path = path_of(key)
        bucket, levels = await self._reach(account, name, path.directories)
        return bucket, find_at(levels, path)

    async def _reach(self, account: Account, name: str, names: Sequence[str] | None) -> Place:
        """A bucket, and the children of its directories on a path; of none if there are no names, not even an empty path."""
        cap, home = account.buckets.get(name), account.home
        if cap is not None:
            levels = [] if names is None else await self.directories.read_path(cap, names)
            return Bucket(name, cap, self.directories, self.clock), levels
        if home is None or not is_bucket_name(name):
            raise S3Fault("NoSuchBucket")
        top, *levels = await self.directories.read_path(home, () if names is None else (name, *names))
        return self._linked(home, name, top), levels

    def recall(self, account: Account, name: str, key: str) -> StoredObject | None:
        """What `find` will probably find, if that is remembered. Asks nobody."""
        bucket, path = self.recall_bucket(account, name), path_of(key)
        return None if bucket is None else find_at(self.directories.recall_path(bucket.root, path.directories), path)

    def recall_bucket(self, account: Account, name: str) -> Bucket | None:
        """What `bucket` will probably return, if that is remembered. Asks nobody."""
        cap, home = account.buckets.get(name), account.home
        if cap is not None:
            return Bucket(name, cap, self.directories, self.clock)
        if home is not None and is_bucket_name(name):
            for children in self.directories.recall_path(home, ()):
                with suppress(S3Fault):
                    return self._linked(home, name, children)
        return None

    def _linked(self, home: DirectoryCap, name: str, children: Children) -> Bucket:
        """The bucket of this name in a directory of buckets; NoSuchBucket."""
        child = children.get(name)
        if child is None or not isinstance(root := child.target, DirectoryCap):
            raise S3Fault("NoSuchBucket")
        link = BucketLink(name, root, home, self.directories, self.lifetimes.of(root))
        return Bucket(name, root, self.directories, self.clock, link)


@define(kw_only=True, eq=False)
class Call:
    """An authenticated request. key: "" if it concerns a bucket. bucket_name: "" if it concerns none.

    signing_key: for the chunks of its body. tasks: what it has begun early; canceled when the request is over.
    """

    door: Door
    head: RequestHead = field(repr=False)
    account: Account
    claim: Claim
    signing_key: bytes = field(repr=False)
    bucket_name: str
    key: str
    body: Body = field(repr=False)
    request_id: str = ""
    is_secure: bool = False
    tasks: Tasks = field(factory=Tasks, repr=False)

    @property
    def location(self) -> str:
        """The address of the object, as the client writes it."""
        return f"{'https' if self.is_secure else 'http'}://{self.header('host')}{self.head.path}"

    def header(self, name: str) -> str | None:
        """The value of a header, as `RequestHead.header` returns it."""
        return self.head.header(name)

    def listed(self, name: str) -> list[str]:
        """The values of a header that is one of LISTS."""
        values = (self.header(name) or "").split(",")
        return [value.strip() for value in values if value.strip()]

    def parameter(self, name: str) -> str | None:
        """The first value of a parameter."""
        return self.head.parameter(name)

    async def bucket(self) -> Bucket:
        """The bucket; NoSuchBucket."""
        return await self.door.bucket(self.account, self.bucket_name)

    async def place(self) -> Place:
        """Where the object goes; NoSuchBucket."""
        return await self.door.place(self.account, self.bucket_name, self.key)

    async def find(self) -> tuple[Bucket, StoredObject]:
        """The bucket and the object; NoSuchBucket, NoSuchKey."""
        bucket, found = await self.door.find(self.account, self.bucket_name, self.key)
        if found is None:
            raise S3Fault("NoSuchKey")
        return bucket, found

    def number(self, name: str, usual: int, most: int, least: int = 0) -> int:
        """A whole-number parameter of at most `most`; InvalidArgument."""
        text = self.parameter(name)
        if text is None or text == "":
            return usual
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 11):
            raise invalid_argument(name, text, f"Provided {text} not an integer or within integer range")
        if int(text) < least:
            raise invalid_argument(name, text, f"Argument {text} must be an integer between {least} and 2147483647")
        return min(int(text), most)
