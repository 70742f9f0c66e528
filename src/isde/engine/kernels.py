"""The compiled loops: sums of product kernels in float32, exact log-sum-exp in float64. Arrays in, arrays out.

All compiled functions share this file: numba's disk cache does not notice edits in an imported one.

Scaled values. A kernel value v in [0, 1] is held as v * 2^57, and as zero where that is below 2^-62. The product of two
such values lies between 2^-124 and 2^114 or is zero: never a denormal number (50 to 200 times slower on many
processors) and never an overflow, over a range of 2^-119 to 1 for each factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

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
"""Sixteen trusted sums are multiplied in float64 before one logarithm: each lies between 2^15 (one centre, one column)
and 2^134 (a million centres), rescaled between 2^-61 and 2^58."""

DISTANCES_KEPT = 1 << 13
"""Squared distances to this many centres are kept between the search for the nearest and the sum: 64 kB."""

LEFT, RIGHT = 4, 2
"""Rows of a register block: 4 x 2 float32 vectors of sums. Measured against 4x3, 2x4, 6x2, 4x4 and 1x8 on AVX2: 0.77 to
0.99 of the large-matrix sgemm rate at all shapes in use; 4x4 spills (0.6)."""

# Sums may be reordered for vectors; no NaN and no infinity gets in, since data are checked before.
fast = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"}, error_model="numpy")
# Here the order of operations matters.
exact = njit(cache=True, nogil=True, fastmath={"contract", "nsz", "nnan"}, error_model="numpy")


@fast
def _scaled_kernel(D: Any, rate: Any, E: Any) -> None:  # in: D, rate; out: E
    """E[j] = 2^57 exp2(-rate D[j]), flushed; a polynomial, since numba has no vector exp2."""
    for j in range(len(D)):
        x = max(-rate * D[j], F32(-120.0))  # beyond: flushed anyway
        whole = np.floor(x + F32(0.5))
        t = x - whole  # in [-1/2, 1/2]
        p = F32(1.5353362e-4)
        p = p * t + F32(1.3398874e-3)
        p = p * t + F32(9.6184373e-3)
        p = p * t + F32(5.5503324e-2)
        p = p * t + F32(2.4022648e-1)
        p = p * t + F32(6.9314718e-1)
        p = p * t + F32(1.0)
        v = p * np.int32((np.int32(whole) + np.int32(SCALE_BITS + 127)) << np.int32(23)).view(np.float32)
        E[j] = v if v >= FLUSH else F32(0.0)


@fast
def _squared_distances(query: Any, centres: Any, columns: Any, D: Any) -> None:  # in: ..., columns end at -1; out: D
    """D = ((query[columns, None] - centres[columns]) ** 2).sum(0) as float32; differences are taken in float64."""
    for w in range(len(columns)):
        if columns[w] >= 0:
            x, column = query[columns[w]], centres[columns[w]]
            if w == 0:
                for j in range(len(D)):
                    difference = F32(x - column[j])
                    D[j] = difference * difference
            else:
                for j in range(len(D)):
                    difference = F32(x - column[j])
                    D[j] += difference * difference


@fast
def _multiply_rows(a: Any, b: Any, out: Any) -> None:  # in: a, b; out
    """out = a b / 2^57, flushed: the scaled product of two scaled rows."""
    for j in range(len(out)):
        p = a[j] * b[j]
        out[j] = p * RESCALE if p >= PRODUCT_FLUSH else F32(0.0)


@fast
def _add_chunk(
    parent: Any, group: Any, needed: Any,  # in: rows to be made, and which of them are needed
    left_parent: Any, left_group: Any, quad: Any, right: Any, active: Any,  # in: register blocks
    rows: Any,  # in: kernels of the G groups over a chunk of fitting rows; scratch: made rows, then four lefts
    sums: Any,  # in, out: (B, 8)
) -> None:  # fmt: skip
    """sums[b] += (lefts @ rights.T).ravel() over the chunk, for the active register blocks b."""
    scratch = len(rows) - LEFT
    n_groups = scratch - len(parent)
    for r in range(len(parent)):
        if needed[r]:
            if parent[r] >= 0:
                _multiply_rows(rows[parent[r]], rows[group[r]], rows[n_groups + r])
            else:
                for j in range(rows.shape[1]):
                    rows[n_groups + r, j] = UNIT
    made = -1
    left = np.zeros(LEFT, np.int64)
    for b in range(len(quad)):
        if not active[b]:
            continue
        if quad[b] != made:
            made = quad[b]
            for i in range(LEFT):
                left[i] = left_group[made, i]
                if left_parent[made, i] >= 0:
                    left[i] = scratch + i
                    _multiply_rows(rows[left_parent[made, i]], rows[left_group[made, i]], rows[scratch + i])
        a0, a1, a2, a3 = rows[left[0]], rows[left[1]], rows[left[2]], rows[left[3]]
        b0, b1 = rows[right[b, 0]], rows[right[b, 1]]
        s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = F32(0.0)
        for j in range(rows.shape[1]):
            x, y = b0[j], b1[j]
            s00 += a0[j] * x
            s01 += a0[j] * y
            s10 += a1[j] * x
            s11 += a1[j] * y
            s20 += a2[j] * x
            s21 += a2[j] * y
            s30 += a3[j] * x
            s31 += a3[j] * y
        sums[b, 0] += s00
        sums[b, 1] += s01
        sums[b, 2] += s10
        sums[b, 3] += s11
        sums[b, 4] += s20
        sums[b, 5] += s21
        sums[b, 6] += s30
        sums[b, 7] += s31


@fast
def _mark_needed(
    parent: Any, group: Any, left_parent: Any, left_group: Any, quad: Any, right: Any, active: Any,  # in
    needed: Any,  # out: whether an active register block depends on each row, kernels first
) -> None:  # fmt: skip
    """needed[rows of active register blocks] = True, and the rows that these are made of."""
    n_groups = len(needed) - len(parent)
    for b in range(len(quad)):
        if active[b]:
            for i in range(RIGHT):
                needed[right[b, i]] = True
            for i in range(LEFT):
                needed[left_group[quad[b], i]] = True
                if left_parent[quad[b], i] >= 0:
                    needed[left_parent[quad[b], i]] = True
    for r in range(len(parent) - 1, -1, -1):  # parents stand before their children
        if needed[n_groups + r] and parent[r] >= 0:
            needed[parent[r]] = needed[group[r]] = True


@exact
def _aligned(n: int, width: int) -> Any:
    """np.empty((n, width), np.float32) at the start of a cache line: no vector of it straddles two."""
    buffer = np.empty(n * width + 16, np.float32)
    start = (-buffer.ctypes.data % 64) // 4
    return buffer[start : start + n * width].reshape(n, width)


@fast
def sum_products(
    queries: Any,  # in: rows, (n, d) float64
    centres: Any,  # in: fitting rows as columns, (d, L) float64
    groups: Any,  # in: columns of each squared distance, padded with -1, (G, width)
    parent: Any,  # in: rows to be made, see plan.Tile
    group: Any,
    left_parent: Any,  # in: lefts
    left_group: Any,
    quad: Any,  # in: register blocks
    right: Any,
    rates: Any,  # in: log2(e) / (2 h^2) for each bandwidth, float32
    active: Any,  # in: which register blocks to compute for which bandwidth, (H, B)
    chunk: int,  # in: fitting rows at a time, so that all rows stay in the L2 cache
    trusted: float,  # in: scaled sums below this are not trusted
    logs: Any,  # out: sum over queries of log2 of the trusted sums, (H, B, 8) float64
    doubtful: Any,  # out: number of queries whose sum is not trusted, (H, B, 8)
    listed: Any,  # out: the first few of those queries, (H, B, 8, capacity)
) -> None:
    """logs[h, b, :] = sum_i log2(products of rows summed over centres): all subsets of a tile, all bandwidths."""
    n, L = len(queries), centres.shape[1]
    n_groups, n_blocks, n_rates, slots = len(groups), len(quad), len(rates), LEFT * RIGHT
    D = np.empty((n_groups, L), np.float32)
    # Chunks have one width, the last one filled up with zeros: a loop of whole vectors has no slow remainder.
    n_rows = n_groups + len(parent)
    rows = _aligned(n_rows + LEFT, chunk)
    sums = np.empty((n_blocks, slots), np.float64)
    products = np.ones((n_rates, n_blocks, slots), np.float64)
    needed, ever = np.zeros((n_rates, n_rows), np.bool_), np.zeros(n_groups, np.bool_)
    for h in range(n_rates):
        _mark_needed(parent, group, left_parent, left_group, quad, right, active[h], needed[h])
        for g in range(n_groups):
            ever[g] |= needed[h, g]
    for i in range(n):
        for g in range(n_groups):
            if ever[g]:
                _squared_distances(queries[i], centres, groups[g], D[g])
        for h in range(n_rates):
            for b in range(n_blocks):
                for slot in range(slots):
                    sums[b, slot] = 0.0
            for start in range(0, L, chunk):
                width = min(chunk, L - start)
                for g in range(n_groups):
                    if needed[h, g]:
                        _scaled_kernel(D[g, start : start + width], rates[h], rows[g, :width])
                        for j in range(width, chunk):
                            rows[g, j] = F32(0.0)
                made = needed[h, n_groups:]
                _add_chunk(parent, group, made, left_parent, left_group, quad, right, active[h], rows, sums)
            take_logs = (i + 1) % LOGS_AT_ONCE == 0 or i + 1 == n
            for b in range(n_blocks):
                if active[h, b]:
                    for slot in range(slots):
                        if sums[b, slot] >= trusted:
                            products[h, b, slot] *= sums[b, slot] * SUM_RESCALE
                        else:
                            if doubtful[h, b, slot] < listed.shape[3]:
                                listed[h, b, slot, doubtful[h, b, slot]] = i
                            doubtful[h, b, slot] += 1
                        if take_logs:
                            logs[h, b, slot] += np.log2(products[h, b, slot])
                            products[h, b, slot] = 1.0
    for h in range(n_rates):
        for b in range(n_blocks):
            if active[h, b]:
                for slot in range(slots):
                    logs[h, b, slot] -= (n - doubtful[h, b, slot]) * (2.0 * SCALE_BITS - SUM_BITS)


@exact
def _exp_negative(x: Any, n: int) -> None:  # in, out: x
    """x[:n] = np.exp2(-x[:n]) for x >= 0, to the last bits; below 2^-1021 it is 0 beside a sum of at least 1.

    Adding 1.5 * 2^52 rounds to a whole number and leaves it in the low bits of the sum, from where a shift moves it
    into an exponent: no conversion to integers, which AVX2 has no vector instruction for. Not compiled with `fast`:
    there the addition would be optimised away.
    """
    for j in range(n):
        y = max(-x[j], -1021.0)
        shifted = y + 6755399441055744.0
        t = (y - (shifted - 6755399441055744.0)) * 0.6931471805599453
        p = 1.0 / 6227020800.0
        p = p * t + 1.0 / 479001600.0
        p = p * t + 1.0 / 39916800.0
        p = p * t + 1.0 / 3628800.0
        p = p * t + 1.0 / 362880.0
        p = p * t + 1.0 / 40320.0
        p = p * t + 1.0 / 5040.0
        p = p * t + 1.0 / 720.0
        p = p * t + 1.0 / 120.0
        p = p * t + 1.0 / 24.0
        p = p * t + 1.0 / 6.0
        p = p * t + 0.5
        p = p * t + 1.0
        p = p * t + 1.0
        exponent = (np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52)
        x[j] = p * np.int64(exponent).view(np.float64)


@fast
def _distances(query: Any, centres: Any, columns: Any, start: int, n: int, out: Any) -> Any:  # in: ...; out: (n,)
    """out[:n] = ((query[columns, None] - centres[columns, start : start + n]) ** 2).sum(0); columns end at -1.

    Returns the least.
    """
    for i in range(len(columns)):
        if columns[i] >= 0:
            x, column = query[columns[i]], centres[columns[i]]
            if i == 0:
                for j in range(n):
                    difference = x - column[start + j]
                    out[j] = difference * difference
            else:
                for j in range(n):
                    difference = x - column[start + j]
                    out[j] += difference * difference
    least = out[0]
    for j in range(n):
        least = min(least, out[j])
    return least


@fast
def _sum(x: Any, n: int) -> Any:
    """x[:n].sum()"""
    total = 0.0
    for j in range(n):
        total += x[j]
    return total


@exact
def _log_sum_exp(query: Any, centres: Any, columns: Any, rate: float, buffer: Any) -> Any:
    """logsumexp(-rate * squared distances): the nearest centre is taken out, so that no sum underflows."""
    L, size = centres.shape[1], len(buffer)
    least = np.inf
    for start in range(0, L, size):
        least = min(least, _distances(query, centres, columns, start, min(size, L - start), buffer))
    total = 0.0
    for start in range(0, L, size):
        n = min(size, L - start)
        if size < L:
            _distances(query, centres, columns, start, n, buffer)
        for j in range(n):
            buffer[j] = rate * 1.4426950408889634 * (buffer[j] - least)
        _exp_negative(buffer, n)
        total += _sum(buffer, n)
    return np.log(total) - rate * least


@exact
def log_kernel_sums(
    queries: Any,  # in: (n, d) float64
    centres: Any,  # in: fitting rows as columns, (d, L) float64
    columns: Any,  # in: columns of the subset of each event, padded with -1, (E or 1, k): one row serves all
    row: Any,  # in: query of each event, (E,)
    rate: Any,  # in: 1 / (2 h^2) of each event, (E or 1,)
    out: Any,  # out: (E,)
) -> None:
    """out[e] = log sum_j exp(-rate[e] |queries[row[e], columns[e]] - centres[columns[e], j]|^2), in float64."""
    buffer = np.empty(min(centres.shape[1], DISTANCES_KEPT))
    for e in range(len(row)):
        own = columns[e if len(columns) > 1 else 0]
        out[e] = _log_sum_exp(queries[row[e]], centres, own, rate[e if len(rate) > 1 else 0], buffer)
