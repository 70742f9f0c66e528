"""Inverse Cholesky factors of covariances, in twice the digits of float64.

Where columns nearly determine each other, what is left of a variance once others are given is small, and float64 keeps
few of its digits: ten of sixteen at a correlation of 0.9999995. Here a number is a pair, the nearest float64 and the
rest; sums and products of pairs are Dekker's (Numerische Mathematik 18, 1971).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]

HALF = 134217729.0
"""2^27 + 1: splits a float64 into two halves, whose products are exact."""


def whitening(covariances: Floats) -> Floats:
    """The matrices A, lower triangles, with A C A' = 1, for positive definite C of shape (..., s, s).

    Only the lower half of C is read. By elimination: the steps that turn C into an upper triangle turn the unit matrix
    beside it into the inverse of the factor.
    """
    s = covariances.shape[-1]
    # In units of powers of two, which change no digit, variances are near 1, and no product leaves float64.
    unit = np.exp2(-np.round(np.log2(np.sqrt(np.diagonal(covariances, axis1=-2, axis2=-1)))))
    lower = np.tril(covariances * unit[..., :, None] * unit[..., None, :])
    near_one = lower + np.swapaxes(np.tril(lower, -1), -1, -2)
    beside = np.concatenate([near_one, np.broadcast_to(np.eye(s), near_one.shape)], axis=-1)
    rows: Pair = beside, np.zeros_like(beside)
    for c in range(s - 1):
        pivot, below = _part(rows, c, c), _part(rows, slice(c + 1, None), c)
        shares = _over(below, (pivot[0][..., None], pivot[1][..., None]))
        away = _times((shares[0][..., None], shares[1][..., None]), _part(rows, slice(c, c + 1), slice(None)))
        left = _minus(_part(rows, slice(c + 1, None), slice(None)), away)
        for whole, new in zip(rows, left, strict=True):
            whole[..., c + 1 :, :] = new
    pivots = np.diagonal(rows[0], axis1=-2, axis2=-1)
    factors: Floats = rows[0][..., s:] / np.sqrt(pivots)[..., None] * unit[..., None, :]
    return factors


def _part(pair: Pair, row: int | slice, column: int | slice) -> Pair:
    return pair[0][..., row, column], pair[1][..., row, column]


def _sum(a: Floats, b: Floats) -> Pair:
    """a + b without an error."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _product(a: Floats, b: Floats) -> Pair:
    """a b without an error."""
    total = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return total, ((a1 * b1 - total) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Floats) -> Pair:
    large = HALF * a
    high = large - (large - a)
    return high, a - high


def _times(a: Pair, b: Pair) -> Pair:
    total, rest = _product(a[0], b[0])
    return _sum(total, rest + (a[0] * b[1] + a[1] * b[0]))


def _minus(a: Pair, b: Pair) -> Pair:
    total, rest = _sum(a[0], -b[0])
    return _sum(total, rest + (a[1] - b[1]))


def _over(a: Pair, b: Pair) -> Pair:
    first = a[0] / b[0]
    left = _minus(a, _times((first, np.zeros_like(first)), b))
    return _sum(first, left[0] / b[0])
