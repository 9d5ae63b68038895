"""The campaigns by name: what is measured, with which factors, how often. Pure.

Durations are of two cores that nobody else uses. `tahoe@http` is left out where it is many times slower than
`tahoe@foolscap` and so nobody's best.
"""

from __future__ import annotations

from attrs import evolve

from perf.campaigns.campaign import KIB, MB, Campaign, Encoding, Load, whole_files
from perf.campaigns.labels import BASES

THREE_OF_SIX = Encoding(needed=3, happy=6, total=6)
THREE_OF_TEN = Encoding()
SIXTY = Encoding(needed=60, total=120)
BOTH = ("grid@foolscap", "grid@http")
SIDE_BY_SIDE = (*BOTH, "tahoe@foolscap", "tahoe@http")
WITH_THE_BEST = (*BOTH, "tahoe@foolscap")

_PUT_GET = Campaign(
    name="put-get",
    purpose="CHK put and get of 1, 10, 100 MB at 3-of-10, warm clients",
    duration="5 min",
    systems=SIDE_BY_SIDE,
    loads=whole_files(1 * MB, 10 * MB, 100 * MB),
    runs=3,
    repetitions=2,
)

_RANGES = Campaign(
    name="ranges",
    purpose="1 B, 64 KiB, 1 MB and 10 MB of 100 MB, and one random byte of a file never read before",
    duration="4 min",
    systems=SIDE_BY_SIDE,
    loads=(
        *(Load(scenario="range", size=100 * MB, length=length) for length in (1, 64 * KIB, 1 * MB, 10 * MB)),
        Load(scenario="alacrity", size=100 * MB, length=1),
    ),
    runs=3,
    repetitions=2,
    warmups=0,
    primer=Load(size=KIB),
)

_SMALL_FILES = Campaign(
    name="small-files",
    purpose="200 files of 1 KiB 16 at a time, 100 files of 1 MB 4 at a time",
    duration="4 min",
    systems=WITH_THE_BEST,
    loads=(Load(size=KIB, count=200, concurrency=16), Load(size=1 * MB, count=100, concurrency=4)),
    runs=3,
    repetitions=2,
    warmups=0,
    primer=Load(size=KIB, count=32, concurrency=16),
)

_K_SWEEP = Campaign(
    name="k-sweep",
    purpose="CHK put and get of 100 MB at 3-of-6, 3-of-10 and 60-of-120",
    duration="4 min",
    systems=WITH_THE_BEST,
    loads=whole_files(100 * MB),
    encodings=(THREE_OF_SIX, THREE_OF_TEN, SIXTY),
    runs=3,
    repetitions=1,
    warmups=0,
    primer=Load(size=KIB),
)

_MEMORY = Campaign(
    name="memory",
    purpose="the client's and the servers' peak memory while 1 GB is put and got",
    duration="3 min",
    systems=BOTH,
    loads=whole_files(1000 * MB),
    runs=3,
    repetitions=1,
    warmups=0,
    primer=Load(size=KIB),
)

_MUTABLE = Campaign(
    name="mutable",
    purpose="MDMF put and get of 10 and 100 MB, ranges of it, 1 KiB changed inside 1 and 100 MB",
    duration="4 min",
    systems=WITH_THE_BEST,
    loads=(
        *whole_files(10 * MB, 100 * MB, format="mdmf"),
        *(
            Load(scenario="range", format="mdmf", size=100 * MB, length=length)
            for length in (1, 64 * KIB, 1 * MB, 10 * MB)
        ),
        *(Load(scenario="overwrite", format="mdmf", size=size, length=KIB) for size in (1 * MB, 100 * MB)),
    ),
    runs=3,
    repetitions=2,
    warmups=0,
    primer=Load(size=KIB, format="mdmf"),
)

_DIRECTORIES = Campaign(
    name="directories",
    purpose="10 new directories, 100 children linked one by one and at once, 100 and 1,000 listed",
    duration="3 min",
    systems=WITH_THE_BEST,
    loads=(
        Load(scenario="mkdir", count=10),
        Load(scenario="add-each", count=100),
        Load(scenario="add-batch", count=100),
        Load(scenario="list", count=100),
        Load(scenario="list", count=1000),
    ),
    runs=3,
    repetitions=2,
    warmups=0,
    primer=Load(scenario="mkdir", count=2),
)

_OTHERS = (
    Campaign(
        name="put-get-cli",
        purpose="CHK put and get of 1 KiB, 1, 10, 100 MB from the command line, from nothing running to the last byte",
        duration="6 min",
        systems=("grid", "tahoe"),
        clients=("cli",),
        loads=whole_files(KIB, 1 * MB, 10 * MB, 100 * MB),
        repetitions=2,
    ),
    evolve(
        _PUT_GET,
        name="transports",
        purpose="CHK put and get of 100 MB over every transport",
        duration="10 min",
        systems=BASES,
        runs=5,
    ),
    Campaign(
        name="k-http",
        purpose="CHK put and get of 100 MB at 60-of-120 beside 1.20's default transport, where that takes a minute",
        duration="5 min",
        systems=(*BOTH, "tahoe@http"),
        loads=whole_files(100 * MB),
        encodings=(SIXTY,),
        runs=3,
        repetitions=1,
        warmups=0,
        primer=Load(size=KIB),
    ),
    Campaign(
        name="k-curve",
        purpose="CHK put and get of 100 MB at 1-of-10, 3-of-10, 10-of-20, 30-of-60 and 60-of-120",
        duration="12 min",
        systems=WITH_THE_BEST,
        loads=whole_files(100 * MB),
        encodings=tuple(
            Encoding(needed=needed, total=total) for needed, total in ((1, 10), (3, 10), (10, 20), (30, 60), (60, 120))
        ),
        runs=3,
        repetitions=1,
    ),
    Campaign(
        name="segments",
        purpose="CHK put and get of 100 MB with segments of 128 KiB, 1 MiB and 4 MiB",
        duration="8 min",
        systems=WITH_THE_BEST,
        loads=whole_files(100 * MB),
        encodings=tuple(Encoding(segment_size=kib * KIB) for kib in (128, 1024, 4096)),
        runs=3,
        repetitions=1,
    ),
    Campaign(
        name="codec",
        purpose="what the erasure code costs: ISA-L and zfec, CHK put and get of 100 MB at 3-of-10 and 60-of-120",
        duration="5 min",
        systems=("grid@foolscap", "grid@foolscap+zfec"),
        loads=whole_files(100 * MB),
        encodings=(THREE_OF_TEN, SIXTY),
        runs=3,
        repetitions=2,
    ),
    Campaign(
        name="durability",
        purpose="what it costs that answers mean durable: CHK puts, small files, new directories, with and without",
        duration="5 min",
        systems=("grid@foolscap", "grid@foolscap+undurable", "tahoe@foolscap"),
        loads=(
            *whole_files(100 * MB),
            Load(size=KIB, count=200, concurrency=16),
            Load(scenario="mkdir", count=10),
        ),
        runs=3,
        repetitions=2,
    ),
    evolve(
        _MEMORY,
        name="memory-10gb",
        purpose="the same for 10 GB, a file of holes behind a random beginning, at 3-of-4; needs 40 GB of disk",
        duration="9 min",
        loads=(Load(size=10_000 * MB, sparse=True),),
        encodings=(Encoding(needed=3, happy=4, total=4),),
        runs=1,
    ),
    Campaign(
        name="gateway",
        purpose="CHK put and get of 1 and 100 MB through web gateways, beside the library",
        duration="6 min",
        systems=WITH_THE_BEST,
        clients=("warm", "gateway"),
        loads=whole_files(1 * MB, 100 * MB),
        runs=3,
        repetitions=2,
    ),
    Campaign(
        name="gateway-10gb",
        purpose="a gateway's peak memory for 10 GB up and down, as memory-10gb; needs 40 GB of disk",
        duration="8 min",
        systems=("grid@foolscap",),
        clients=("gateway",),
        loads=(Load(size=10_000 * MB, sparse=True),),
        encodings=(Encoding(needed=3, happy=4, total=4),),
        runs=1,
        repetitions=1,
        warmups=0,
        primer=Load(size=KIB),
    ),
    Campaign(
        name="idle",
        purpose="processor time of clients and servers in 60 s with nothing to do, all systems in the same minute",
        duration="4 min",
        systems=BOTH,
        loads=(Load(scenario="idle", seconds=60.0),),
        runs=3,
        repetitions=1,
        warmups=0,
    ),
    Campaign(
        name="mutable-k",
        purpose="MDMF put and get of 100 MB at 60-of-120",
        duration="5 min",
        systems=WITH_THE_BEST,
        loads=whole_files(100 * MB, format="mdmf"),
        encodings=(SIXTY,),
        runs=3,
        repetitions=1,
        warmups=0,
        primer=Load(size=KIB, format="mdmf"),
    ),
    Campaign(
        name="aa",
        purpose="the instrument itself: two grids that are equal must not differ",
        duration="4 min",
        systems=("grid@foolscap", "grid@foolscap#2"),
        loads=whole_files(1 * MB, 30 * MB),
        runs=8,
        repetitions=3,
    ),
    Campaign(
        name="smoke",
        purpose="that the harness and both clients work; its numbers mean nothing",
        duration="under 30 s",
        systems=("grid",),
        clients=("warm", "cli"),
        loads=(
            *whole_files(1000, 1 * MB),
            *whole_files(1 * MB, format="mdmf"),
            Load(scenario="overwrite", format="mdmf", size=1 * MB, length=KIB),
            Load(scenario="range", size=1 * MB, length=KIB),
            Load(scenario="add-batch", count=10),
            Load(scenario="list", count=10),
        ),
        encodings=(Encoding(needed=2, happy=3, total=4),),
        runs=1,
        repetitions=1,
        warmups=0,
        servers=4,
    ),
)

CAMPAIGNS = {
    one.name: one for one in (_PUT_GET, _RANGES, _SMALL_FILES, _K_SWEEP, _MEMORY, _MUTABLE, _DIRECTORIES, *_OTHERS)
}
