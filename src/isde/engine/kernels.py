"""The compiled loops: sums of product kernels in float32, exact log-sum-exp in float64. Arrays in, arrays out.

All compiled functions share this file: numba's disk cache does not notice edits in an imported one.

Scaled values. A kernel value v in [0, 1] is held as v * 2^57, and as zero where that is below 2^-62. The product of two
such values lies between 2^-124 and 2^114 or is zero: never a denormal number (50 to 200 times slower on many
processors) and never an overflow, over a range of 2^-119 to 1 for each factor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import fast_inline, fast_loop, fast_part, larger, same_bits, smaller

F32 = np.float32
SCALE_BITS = 57
FLUSH = F32(2.0**-62)
UNIT = F32(2.0**SCALE_BITS)
RESCALE = F32(2.0**-SCALE_BITS)
PRODUCT_FLUSH = F32(2.0**-5)  # FLUSH / RESCALE

TRUST = 1e6
"""A sum is trusted where it is this many times larger than all that flushing can have taken from it."""

LOGS_AT_ONCE = 16
SUM_BITS = 76
SUM_RESCALE = 2.0**-SUM_BITS
PRODUCT_BITS = 2.0 * SCALE_BITS - SUM_BITS
"""Sixteen trusted sums are multiplied in float64 before one logarithm: each lies between 2^15 (one centre, one column)
and 2^134 (a million centres), rescaled between 2^-61 and 2^58."""

DISTANCES_KEPT = 1 << 13
"""Squared distances to this many centres are kept between the search for the nearest and the sum: 64 kB."""

PART = 512
"""Of these, so many at a time: in the L1 cache from column to column."""

ROWS_TOGETHER = 64
"""Of which Gaussians are summed at once: a thousand of them stay in the L2 cache."""

LEAST_LOG = -1e300
"""Log2 of a density: squares that leave float64 count as this, so that every sum is a number."""

SHIFT32, SHIFT64 = F32(1.5 * 2**23 + 127 + SCALE_BITS), 1.5 * 2**52 + 1023
"""Added to a whole number n, these leave n and the bias of an exponent in the low bits of the sum, from where a shift
makes 2^n of it: no conversion to integers, which is slow or, for float64 on AVX2, not there at all."""

LEFT, RIGHT = 4, 2
"""Rows of an octet: 4 x 2 float32 vectors of sums. Measured against 4x3, 2x4, 6x2, 4x4 and 1x8 on AVX2: 0.77 to
0.99 of the large-matrix sgemm rate at all shapes in use; 4x4 spills (0.6)."""


class Recipe(NamedTuple):
    """Which rows a tile makes, and which of them it multiplies: see `plan.Tile`."""

    groups: Any  # columns of each squared distance, padded with -1, (G, width)
    parent: Any  # of the rows to be made, (R,)
    group: Any
    left_parent: Any  # of the lefts, (Q, 4)
    left_group: Any
    quad: Any  # lefts of each octet, (B,)
    right: Any  # its rights, (B, 2)


class Asked(NamedTuple):
    """Which sums, for which bandwidths; by bandwidth, then octet."""

    rates: Any  # log2(e) / (2 h^2) for each bandwidth, float32
    shrinks: Any  # what the centres are multiplied with for each bandwidth
    needed: Any  # which kernels and made rows a bandwidth needs, (H, G + R)
    left_needed: Any  # which lefts it needs, (H, Q, 4)
    first: Any  # bandwidth h has the entries first[h] to first[h + 1], (H + 1,)
    octet: Any  # octet of each entry, (A,)
    wanted: Any  # which of its sums, (A, 8)
    whole: Any  # wanted.all(axis=1)


class Scratch(NamedTuple):
    """What is written on the way."""

    distances: Any  # squared, (G, L) float32
    rows: Any  # kernels, made rows, four lefts, over a chunk of fitting rows, (G + R + 4, chunk) float32
    left: Any  # rows of the four lefts at hand, (4,)
    sums: Any  # (A, 8) float64, zeros at the start
    products: Any  # (A, 8) float64, ones at the start


class Found(NamedTuple):
    """What is known of each sum; zeros at the start."""

    logs: Any  # sum over queries of log2 of the trusted sums, (A, 8) float64
    doubtful: Any  # number of queries whose sum is not trusted, (A, 8)
    listed: Any  # the first few of those queries, (A, 8, capacity)


@fast_inline
def _scaled_kernel(D: Any, rate: Any, E: Any) -> None:  # in: D, rate; out: E
    """E[j] = 2^57 exp2(-rate D[j]), flushed, and 0 beyond D; a polynomial, since numba has no vector exp2.

    Even and odd powers are summed apart (Estrin): chains of dependent operations, not their number, are the limit.
    """
    for j in range(len(D), len(E)):
        E[j] = F32(0.0)
    for j in range(len(D)):
        x = larger(-rate * D[j], F32(-120.0))  # beyond: flushed anyway
        whole = np.floor(x + F32(0.5))
        t = x - whole  # in [-1/2, 1/2]
        t2 = t * t
        low = F32(1.0) + F32(6.9314721e-1) * t + t2 * (F32(2.4022651e-1) + F32(5.5503272e-2) * t)
        high = F32(9.6180567e-3) + F32(1.3400428e-3) * t + t2 * F32(1.5461444e-4)
        power = same_bits(np.int32(same_bits(F32(whole + SHIFT32), np.int32) << np.int32(23)), np.float32)
        v = (low + t2 * t2 * high) * power
        E[j] = v if v >= FLUSH else F32(0.0)


@fast_inline
def _squared_distances(query: Any, centres: Any, shrink: float, columns: Any, D: Any) -> None:  # in: ...; out: D
    """D = ((query[columns, None] - shrink * centres[columns]) ** 2).sum(0) as float32; columns end at -1.

    Differences are taken in float64.
    """
    for j in range(len(D)):
        D[j] = F32(0.0)
    for w in range(len(columns)):
        if columns[w] >= 0:
            x, column = query[columns[w]], centres[columns[w]]
            for j in range(len(D)):
                difference = F32(x - shrink * column[j])
                D[j] += difference * difference


@fast_part
def _multiply_rows(rows: Any, left: int, right: int, target: int) -> None:  # in, out: rows
    """rows[target] = rows[left] rows[right] / 2^57, flushed: the scaled product of two scaled rows."""
    a, b, out = rows[left], rows[right], rows[target]
    for j in range(len(out)):
        p = a[j] * b[j]
        out[j] = p * RESCALE if p >= PRODUCT_FLUSH else F32(0.0)


@fast_inline
def _multiply_octet(rows: Any, left: Any, right: Any, sums: Any) -> None:  # in: ...; in, out: sums
    """sums += (rows[left] @ rows[right].T).ravel()"""
    a0, a1, a2, a3, b0, b1 = rows[left[0]], rows[left[1]], rows[left[2]], rows[left[3]], rows[right[0]], rows[right[1]]
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = F32(0.0)
    for j in range(len(b0)):
        x, y = b0[j], b1[j]
        s0 += a0[j] * x
        s1 += a0[j] * y
        s2 += a1[j] * x
        s3 += a1[j] * y
        s4 += a2[j] * x
        s5 += a2[j] * y
        s6 += a3[j] * x
        s7 += a3[j] * y
    sums[0] += s0
    sums[1] += s1
    sums[2] += s2
    sums[3] += s3
    sums[4] += s4
    sums[5] += s5
    sums[6] += s6
    sums[7] += s7


@fast_inline
def _dot(a: Any, b: Any) -> Any:
    """a @ b"""
    total = F32(0.0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@fast_loop
def sum_products(
    queries: Any,  # in: rows, (n, d) float64
    centres: Any,  # in: fitting rows as columns, (d, L) float64
    recipe: Recipe,  # in
    asked: Asked,  # in
    trusted: float,  # in: scaled sums below this are not trusted
    scratch: Scratch,  # scratch
    found: Found,  # out
) -> None:
    """logs[a] = sum_i log2(products of rows summed over centres): all subsets of a tile, all bandwidths."""
    groups, parent, group, left_parent, left_group, quad, right = recipe
    rates, shrinks, needed, left_needed, first, octet, wanted, whole = asked
    D, rows, left, sums, products = scratch
    logs, doubtful, listed = found
    (n, _), (_, L), (_, chunk), (_, eight, capacity) = queries.shape, centres.shape, rows.shape, listed.shape
    n_groups, lefts, slots = len(groups), len(rows) - LEFT, LEFT * RIGHT
    for i in range(n):
        take_logs = (i + 1) % LOGS_AT_ONCE == 0 or i + 1 == n
        for h in range(len(rates)):
            if h == 0 or shrinks[h] != shrinks[h - 1]:
                for g in range(n_groups):
                    _squared_distances(queries[i], centres, shrinks[h], groups[g], D[g])
            # Chunks have one width, the last one filled up with zeros: a loop of whole vectors has no slow remainder.
            for start in range(0, L, chunk):
                width = smaller(chunk, L - start)
                for g in range(n_groups):
                    if needed[h, g]:
                        _scaled_kernel(D[g, start : start + width], rates[h], rows[g])
                for r in range(len(parent)):
                    if needed[h, n_groups + r]:
                        if parent[r] >= 0:
                            _multiply_rows(rows, parent[r], group[r], n_groups + r)
                        else:
                            for j in range(chunk):
                                rows[n_groups + r, j] = UNIT
                made = -1
                for a in range(first[h], first[h + 1]):
                    b = octet[a]
                    if quad[b] != made:
                        made = quad[b]
                        for x in range(len(left)):
                            left[x] = left_group[made, x]
                            if left_parent[made, x] >= 0:
                                left[x] = lefts + x
                                if left_needed[h, made, x]:
                                    _multiply_rows(rows, left_parent[made, x], left_group[made, x], lefts + x)
                    if whole[a]:
                        _multiply_octet(rows, left, right[b], sums[a])
                    else:
                        for slot in range(eight):
                            if wanted[a, slot]:
                                sums[a, slot] += _dot(rows[left[slot // RIGHT]], rows[right[b, slot % RIGHT]])
            for a in range(first[h], first[h + 1]):
                least = np.inf
                for slot in range(slots):
                    least = smaller(least, sums[a, slot])
                if least >= trusted:
                    for slot in range(slots):
                        products[a, slot] *= sums[a, slot] * SUM_RESCALE
                        sums[a, slot] = 0.0
                else:
                    for slot in range(eight):
                        if sums[a, slot] >= trusted:
                            products[a, slot] *= sums[a, slot] * SUM_RESCALE
                        elif wanted[a, slot]:
                            if doubtful[a, slot] < capacity:
                                listed[a, slot, doubtful[a, slot]] = i
                            doubtful[a, slot] += 1
                        sums[a, slot] = 0.0
                if take_logs:
                    for slot in range(slots):
                        logs[a, slot] += np.log2(products[a, slot])
                        products[a, slot] = 1.0


@fast_inline
def _distances(query: Any, centres: Any, columns: Any, start: int, out: Any, near: Any) -> Any:  # in: ...; out; scratch
    """out[:] = ((query[columns, None] - centres[columns, start : start + len(out)]) ** 2).sum(0); columns end at -1.

    Returns the least, found in parts by an array of least values: numba does not make a vector loop of a plain minimum.
    """
    for j in range(len(near)):
        near[j] = np.inf
    for part in range(0, len(out), len(near)):
        D = out[part : part + len(near)]
        for i in range(len(columns)):
            if columns[i] >= 0:
                x, column = query[columns[i]], centres[columns[i], start + part : start + part + len(D)]
                if i == 0:
                    for j in range(len(D)):
                        difference = x - column[j]
                        D[j] = difference * difference
                else:
                    for j in range(len(D)):
                        difference = x - column[j]
                        D[j] += difference * difference
        for j in range(len(D)):
            near[j] = smaller(near[j], D[j])
    least = near[0]
    for j in range(len(near)):
        least = smaller(least, near[j])
    return least


@fast_inline
def _sum_exp2(x: Any, least: float, rate: float) -> Any:  # in: x, ...
    """np.exp2(rate * (least - x)).sum() for x >= least, to the last bits.

    Terms below 2^-1021 become that instead of 0: the sum is at least 1.
    """
    total = 0.0
    for j in range(len(x)):
        total += _exp2(larger(rate * (least - x[j]), -1021.0))
    return total


@fast_inline
def _exp2(y: float) -> Any:
    """2^y for -1021 <= y <= 0.

    The polynomial is that of Chebyshev's nodes (error 4e-18), its powers summed in groups (Estrin) since dependent
    operations wait for each other.
    """
    whole = np.floor(y + 0.5)
    t = y - whole
    t2 = t * t
    t4 = t2 * t2
    p0 = 1.0 + 0.6931471805599453 * t + t2 * (0.24022650695910158 + 0.055504108664821625 * t)
    p4 = 0.009618129107587256 + 0.001333355814640647 * t + t2 * (0.00015403530463724353 + 1.5252733841556773e-05 * t)
    p8 = 1.3215432535912375e-06 + 1.0178057087733941e-07 * t
    p8 += t2 * (7.074194297288521e-09 + 4.4558179083360645e-10 * t)
    power = same_bits(np.int64(same_bits(np.float64(whole + SHIFT64), np.int64) << np.int64(52)), np.float64)
    return (p0 + t4 * (p4 + t4 * p8)) * power


@fast_inline
def _add_four_sums(x: Any, least: float, rate: float, totals: Any) -> None:  # in: x, ...; in, out: totals
    """Add the sums of v = exp2(rate * (least - x)) and of v^4, v^16, v^64, the kernels of halved bandwidths.

    Each power is left out where it would be denormal: the nearest centre makes every sum at least 1.
    """
    a = b = c = d = 0.0
    for j in range(len(x)):
        y = larger(rate * (least - x[j]), -1021.0)
        v = _exp2(y)
        a += v
        v = v if y > -255.0 else 0.0
        v *= v
        v *= v
        b += v
        v = v if y > -63.0 else 0.0
        v *= v
        v *= v
        c += v
        v = v if y > -15.0 else 0.0
        v *= v
        v *= v
        d += v
    totals[0] += a
    totals[1] += b
    totals[2] += c
    totals[3] += d


@fast_loop
def log_kernel_sums_of_ladder(
    queries: Any,  # in: (n, s) float64
    centres: Any,  # in: fitting rows as columns, (s, L) float64
    rate: float,  # in: 1 / (2 h^2) of the widest bandwidth, of which each next one is half
    out: Any,  # out: bandwidths by queries, a multiple of four bandwidths
    every: Any,  # in: the columns
    totals: Any,  # scratch: (bandwidths,)
    buffer: Any,  # scratch: (min(L, DISTANCES_KEPT),)
    near: Any,  # scratch: (PART,)
) -> None:
    """out[b, i] = log sum_j exp(-4^b rate |queries[i] - centres[:, j]|^2): `log_kernel_sums`, distances shared."""
    (_, L), size = centres.shape, DISTANCES_KEPT
    for i in range(len(queries)):
        least = np.inf
        for b in range(len(totals)):
            totals[b] = 0.0
        for summed in range(2):
            for start in range(0, L, size):
                D = buffer[: L - start]
                if not summed or size < L:
                    least = smaller(least, _distances(queries[i], centres, every, start, D, near))
                if summed:
                    for b in range(0, len(out), 4):
                        _add_four_sums(D, least, rate * 4.0**b * 1.4426950408889634, totals[b : b + 4])
        for b in range(len(out)):
            out[b, i] = np.log(totals[b]) - rate * 4.0**b * least


@fast_loop
def log_kernel_sums(
    queries: Any,  # in: (n, d) float64
    centres: Any,  # in: fitting rows as columns, (d, L) float64
    columns: Any,  # in: columns of the subset of each event, padded with -1, (E or 1, k): one row serves all
    row: Any,  # in: query of each event, (E,)
    rate: Any,  # in: 1 / (2 h^2) of each event, (E or 1,)
    out: Any,  # out: (E,)
    buffer: Any,  # scratch: (min(L, DISTANCES_KEPT),)
    near: Any,  # scratch: (PART,)
) -> None:
    """out[e] = log sum_j exp(-rate[e] |queries[row[e], columns[e]] - centres[columns[e], j]|^2), in float64.

    The nearest centre is taken out of the sum, which then is at least 1.
    """
    (_, L), size = centres.shape, DISTANCES_KEPT
    for e in range(len(row)):
        query, own, factor = queries[row[e]], columns[e % len(columns)], rate[e % len(rate)]
        least, total = np.inf, 0.0
        for summed in range(2):  # the nearest first; distances are had again where not all were kept
            for start in range(0, L, size):
                D = buffer[: L - start]
                if not summed or size < L:
                    least = smaller(least, _distances(query, centres, own, start, D, near))
                if summed:
                    total += _sum_exp2(D, least, factor * 1.4426950408889634)
        out[e] = np.log(total) - factor * least


@fast_loop
def log_gaussian_sums(
    rows: Any,  # in: as columns, (s, n) float64
    means: Any,  # in: (k, s)
    factors: Any,  # in: lower triangles that whiten, scaled for powers of two, (k, s, s)
    levels: Any,  # in: log2 of each weighted density at its mean, (k,)
    out: Any,  # out: (n,)
    logs: Any,  # scratch: log2 of each weighted density, and one row more, (k + 1, ROWS_TOGETHER)
    top: Any,  # scratch: (ROWS_TOGETHER,)
    total: Any,  # scratch: (ROWS_TOGETHER,)
) -> None:
    """out[i] = log sum_g 2^(levels[g] - |factors[g] (rows[:, i] - means[g])|^2), in float64.

    The largest term is taken out of the sum, which then is at least 1.
    """
    s, n = rows.shape
    for start in range(0, n, ROWS_TOGETHER):
        width = min(ROWS_TOGETHER, n - start)
        for i in range(width):
            top[i] = LEAST_LOG
            total[i] = 0.0
        for g in range(len(levels)):
            log2 = logs[g, :width]
            for i in range(width):
                log2[i] = levels[g]
            for r in range(s):
                whitened = logs[len(levels), :width]
                for i in range(width):
                    whitened[i] = 0.0
                for c in range(r + 1):
                    factor, mean, column = factors[g, r, c], means[g, c], rows[c, start : start + width]
                    for i in range(width):
                        whitened[i] += factor * (column[i] - mean)
                for i in range(width):
                    log2[i] -= whitened[i] * whitened[i]
            for i in range(width):
                top[i] = max(top[i], log2[i])
        for g in range(len(levels)):
            log2 = logs[g, :width]
            for i in range(width):
                total[i] += _exp2(max(log2[i] - top[i], -1021.0))
        for i in range(width):
            out[start + i] = np.log(total[i]) + top[i] * 0.6931471805599453


def kept_distances(n_centres: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What `log_kernel_sums` writes to on its way."""
    return np.empty(min(n_centres, DISTANCES_KEPT)), np.empty(PART)
