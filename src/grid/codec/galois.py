"""Coefficients of the erasure code: Lagrange interpolation over GF(2^8). [spec immutable 6]

Pure arithmetic on share numbers; it never touches the bytes of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

_POLYNOMIAL = 0x11D
_ORDER = 255


def _make_powers() -> tuple[bytes, bytes]:
    powers = bytearray(2 * _ORDER)
    logs = bytearray(256)
    value = 1
    for exponent in range(_ORDER):
        powers[exponent] = powers[exponent + _ORDER] = value
        logs[value] = exponent
        value <<= 1
        if value & 0x100:
            value ^= _POLYNOMIAL
    return bytes(powers), bytes(logs)


_POWERS, _LOGS = _make_powers()
_POINTS = b"\x00" + _POWERS[:_ORDER]
"""The point of each share number: 0, then the powers of 2."""


def recovery_rows(have: Sequence[int], wanted: Sequence[int]) -> list[bytes]:
    """For each wanted block, the coefficients that compute it from the blocks at hand: one byte for each, in their order.

    have: k different share numbers; wanted: share numbers. Encoding wants parity blocks from the primary ones.
    Cost: len(have) * (len(have) + 2 * len(wanted)) steps of about 0.1 us.
    """
    points = [_POINTS[number] for number in have]
    # The weights 1 / product over m != j of (p(j) + p(m)), as logarithms.
    weights = [-sum(_LOGS[point ^ other] for other in points if other != point) % _ORDER for point in points]
    rows = []
    for number in wanted:
        target = _POINTS[number]
        if target in points:
            rows.append(bytes(point == target for point in points))
            continue
        distances = [_LOGS[target ^ point] for point in points]
        whole = sum(distances) % _ORDER
        rows.append(
            bytes(
                _POWERS[(whole + weight - distance) % _ORDER]
                for weight, distance in zip(weights, distances, strict=True)
            )
        )
    return rows
