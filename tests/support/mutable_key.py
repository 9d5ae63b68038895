"""The published test key of the specification, as numbers: never use it. [spec mutable 21]"""

from __future__ import annotations

from functools import cache
from math import lcm

from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateNumbers,
    RSAPublicNumbers,
    rsa_crt_dmp1,
    rsa_crt_dmq1,
    rsa_crt_iqmp,
)
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from grid.crypto.rsa import PrivateKey, parse_private_key

E = 65537
P = int(
    "f08d6aeab55ced9c2bc0ed872dccef4f941361c33045ffdd4ebec6d632e4f689c22f0fcd46891d19091069cc14ba29cc0562"
    "7c33d762e4974df714e6404f06aa27e4d29457ab58fd29a3e51a3b05d56951673724bfcdc78fb31424fe159b0b7a4a3b6de1"
    "922e60a5e5d4f47f0783ed476b1a934ca3c1133ca2dcef9c9ae9f2f1",
    16,
)
Q = int(
    "ee83d54cc85ee4be93270544df3db109da774f4326acff85fd4783e40083b9178cc0aac03fef8fc3b242f4f561dcf63d7484"
    "e431c3e2d0faa4faf02f2cb0efa1fa0aacf8e61cdd1c9570d1dc204f53d17249c551cd6c34585b14d3d1d4651655ac875067"
    "1946a79ac6e5c941c85a49d22a9fe6ba645722cc3fd640c947a247cf",
    16,
)


@cache
def known_key() -> PrivateKey:
    """The key, whose bytes are those of the specification."""
    return key_of(P, Q)


def key_of(p: int, q: int) -> PrivateKey:
    """The key of two primes."""
    d = pow(E, -1, lcm(p - 1, q - 1))
    numbers = RSAPrivateNumbers(
        p=p,
        q=q,
        d=d,
        dmp1=rsa_crt_dmp1(d, p),
        dmq1=rsa_crt_dmq1(d, q),
        iqmp=rsa_crt_iqmp(p, q),
        public_numbers=RSAPublicNumbers(E, p * q),
    )
    key = numbers.private_key(unsafe_skip_rsa_key_validation=True)
    return parse_private_key(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()))
