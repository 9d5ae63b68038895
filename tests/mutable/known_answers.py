"""Known answers of the specification: share 2 of a 1-of-3 file of the published key. [spec mutable 21]"""

from __future__ import annotations

from attrs import frozen

PLAINTEXT = b"mutable file, version three\n"
SALT = bytes(range(0x40, 0x50))
SHARE_NUMBER = 2
SEQNUM = 3

CHAIN_TAIL = "00069ed59076b6bee6b75864630c3c20cff6934efe03a60a7fd28b69542fb13a68a3"


@frozen(kw_only=True)
class KnownShare:
    """One share as the specification gives it."""

    version: int
    size: int
    sha256: str
    prefix: str
    chain: str
    tree: str
    data: str
    signature: str
    offsets: tuple[int, ...]


SDMF = KnownShare(
    version=0,
    size=2003,
    sha256="1002df7bf172b5934927c5b99095e7cc4539d430f940389730c5bfd3cbbf4fb2",
    prefix=(
        "000000000000000003d4bb61eb315547cbbbc6dd61c26c7375ebed2dc1753c6c89b19451933ca8d66d404142434445464748494a4b"
        "4c4d4e4f0103000000000000001c000000000000001c"
    ),
    chain="00015c30ba4368387bd79ac8af0d414480cbee24e65b5b78f434f4a7045270ccd1f7" + CHAIN_TAIL,
    tree="97fabb9b52858f1e6f950f2c154f7e9ae885ad7891a8ad819f6ad7372444c3d0",
    data="97e2b96d575433fb72a304c3c476661bad9cbc235eaa1dc33f70c8e0",
    signature=(
        "22fb089e8ccef2aca642978214f03f6e798a0e184a30f64d1dd16fb73fe70b851581aabbb9afea61ada1ed162dc92c093a34b65304"
        "138eaeb1e2838024e5eb36e135c91552e7f78fb6bc6ab52322767b05639da2add1efe123985763f5ff8d2b4677280e8c529fddc47a"
        "2c0db84f49d7b4ebb27536c90aeed00c1db1d309842d7c499b5a11a0095bebb0bde0926a21a2b4618432648d4332e494c4c32de337"
        "e06ab0d7988ae76b84ab2beed3d76058d98f9b7eab84dbc3b793725523972882f0757d08bd8ee1b3a5667a97b94463dbeca31e2ac1"
        "192f2e63de095ca6f3bfcc0d6abc9cf9618cc3762f45e5098de7b862cc5a1c1f1589975e2549a915a559bda5"
    ),
    offsets=(401, 657, 725, 757, 785, 2003),
)

MDMF = KnownShare(
    version=1,
    size=2243,
    sha256="60c24044e7e32796e80463c0a97bc840c669e3f084cbf0e870d325078724cd75",
    prefix=(
        "010000000000000003ca5d8d84e3b7609613ecfa4754504e854ac993f132fdacaa8dfd7708cab4e648010300000000000200000000"
        "00000000001c"
    ),
    chain="0001666d740466f9e5ba4007b4615454fc87f7e94e0501bd6ae6a291c4ef76ed5ece" + CHAIN_TAIL,
    tree="ef361e5bf3b97049e8a160d6381a93dfc0a7bbbfde97a5a2f37c1bb069ea06a3",
    data="404142434445464748494a4b4c4d4e4f97e2b96d575433fb72a304c3c476661bad9cbc235eaa1dc33f70c8e0",
    signature=(
        "a410d3b49f4cf992e0f55acb4ae2957da0d09386a51290acd5b77ad94f1a0436a50534d651d10a934b8c618e81ab27982551950087"
        "a1bedf05c2d8c2a15bc308b243b824e3d94b44a63919182bc0228c393a5a76a0352a58dc6d5a819234c0f92e083cc67c5093429e41"
        "4964ec2d79f73131380c9958b4fefea1ef8960722e4b8066959e8df9e8e4daba4d9a3fa011b0da1afb70099f7a62b215955b4a6460"
        "fc271e143ca2dba0c213019fec2d76f330c4cb35fceadecde0a3a88d0febc96bed02a1102ba2a7669b0f55e510d90e98b6e50bbef6"
        "8a3fef0c5be5f87d5ad923812d0f02d2662ff16beeb135f8afd4a8fd41b1038123caf1d1a81006f6bf6a2e3d"
    ),
    offsets=(123, 1341, 1409, 1665, 1959, 2167, 2211, 2243),
)
