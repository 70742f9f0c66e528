"""The scores of all partitions, as a histogram."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays
from isde.engine.jit import loop
from isde.errors import InputError
from isde.partitions import Partition, count_partitions
from isde.scores import SubsetScores
from isde.solvers import select_partition
from isde.subsets import SubsetFamily

MOST_COLUMNS = 24
"""A table by bit mask of 128 MB. Only blocks of one column leave few enough partitions beyond it."""

MOST_MINUTES = 60.0
MEASURED_PARTITIONS = 1_000_000
MOST_LISTED = 1_000_000


@dataclass(frozen=True, eq=False)
class Landscape(FrozenArrays):
    """The scores of all partitions with blocks of at most k columns."""

    counts: NDArray[np.int64]  # partitions in each bin; those that score -inf are in none
    edges: NDArray[np.float64]  # of the bins, from the worst score to the best
    n_partitions: int
    n_impossible: int  # of these, how many score -inf
    mean: float  # of the finite scores
    above: list[tuple[Partition, float]]  # partitions that score more than asked for, the best first, with their scores


def landscape(
    scores: SubsetScores,
    bins: int = 100,
    above: float | None = None,
    *,
    max_block_size: int | None = None,
    max_minutes: float = MOST_MINUTES,
) -> Landscape:
    """Score every partition: a histogram in constant memory, and the list of those that score more than `above`.

    Refuses, with an estimate from a short measurement, what would take more than `max_minutes`.

    >>> table = SubsetScores.from_dict({(0,): 0.8, (1,): 0.9, (2,): 0.1, (0, 1): 1.9, (0, 2): 0.5, (1, 2): 0.4})
    >>> found = landscape(table, bins=2, above=1.5)
    >>> found.n_partitions, found.counts.tolist(), [partition for partition, _ in found.above]
    (4, [2, 2], [((0, 1), (2,)), ((0,), (1,), (2,))])
    """
    if bins < 1:
        raise ValueError(f"bins={bins} must be at least 1.")
    table = (scores if max_block_size is None else scores.restrict(max_block_size)).uncharged()
    table.check_exhaustive("The landscape of all partitions")
    _check_affordable(table, max_minutes)
    worst, best = select_partition(table, sense="min").score, select_partition(table).score
    if worst == -np.inf:
        raise InputError("Every partition scores -inf: there is no landscape to show.")
    edges = np.linspace(worst, best if best > worst else worst + 1e-12, bins + 1)
    threshold = np.inf if above is None else float(above)
    counts, found = np.zeros(bins, dtype=np.int64), np.empty((0, table.n_columns), dtype=np.uint32)
    by_mask = _by_mask(table, table.n_columns)
    visited, impossible, total, n_above = _visit(by_mask, edges, threshold, counts, found)
    listed: list[tuple[Partition, float]] = []
    if n_above > MOST_LISTED:
        raise InputError(f"{n_above:,} partitions score more than {above}: raise the threshold, or leave it out.")
    if n_above:
        found = np.zeros((n_above, table.n_columns), dtype=np.uint32)
        _visit(by_mask, edges, threshold, np.zeros(bins, dtype=np.int64), found)
        listed = sorted(((_partition(row), _score(table, row)) for row in found), key=lambda item: (-item[1], item[0]))
    mean = worst + total / (visited - impossible)
    return Landscape(counts, edges, int(visited), int(impossible), float(mean), listed)


def _check_affordable(table: SubsetScores, max_minutes: float) -> None:
    d, k = table.n_columns, table.max_block_size
    count = count_partitions(d, k)
    if count <= MEASURED_PARTITIONS:
        if d > MOST_COLUMNS:
            raise InputError(f"The landscape takes at most {MOST_COLUMNS} columns, not {d}.")
        return
    few = next(n for n in range(d, 0, -1) if count_partitions(n, k) <= MEASURED_PARTITIONS)
    by_mask, edges = _by_mask(table, few), np.array([-np.inf, np.inf])
    nothing = np.empty((0, d), dtype=np.uint32)
    _visit(by_mask[:2], edges, np.inf, np.zeros(1, dtype=np.int64), nothing)  # compiles, where nothing is cached yet
    start = time.perf_counter()
    _visit(by_mask, edges, np.inf, np.zeros(1, dtype=np.int64), nothing)
    minutes = count / count_partitions(few, k) * (time.perf_counter() - start) / 60
    if minutes > max_minutes:
        raise InputError(
            f"{count:.3g} partitions of {d} columns would take about {_duration(minutes)}, more than "
            f"max_minutes={max_minutes:g}: choose a smaller max_block_size or fewer columns."
        )


def _duration(minutes: float) -> str:
    for unit, length in (("years", 525_960), ("days", 1440), ("hours", 60)):
        if minutes >= length:
            return f"{minutes / length:,.3g} {unit}"
    return f"{minutes:.3g} minutes"


def _by_mask(table: SubsetScores, n_columns: int) -> NDArray[np.float64]:
    """Scores of the subsets of the first columns, by bit mask; NaN for subsets that are too large."""
    few = SubsetFamily(n_columns, table.max_block_size)
    scores = np.full(1 << n_columns, np.nan)
    for size in range(1, few.max_size + 1):
        # In colexicographic order they are a prefix.
        here, start = few.of_size(size), table.subsets.offsets[size]
        scores[few.masks[here]] = table.scores[start : start + here.stop - here.start]
    return scores


def _partition(masks: NDArray[np.uint32]) -> Partition:
    return tuple(tuple(c for c in range(len(masks)) if mask >> c & 1) for mask in masks.tolist() if mask)


def _score(table: SubsetScores, masks: NDArray[np.uint32]) -> float:
    return fsum(table[block] for block in _partition(masks))


@loop
def _visit(
    scores: NDArray[np.float64],  # in: by bit mask; NaN: no block
    edges: NDArray[np.float64],  # in: of the bins; the first one is the least score
    threshold: float,  # in: partitions that score more are counted, and listed
    counts: NDArray[np.int64],  # out: partitions in each bin
    found: NDArray[np.uint32],  # out: blocks of those above the threshold, as many as there is room for
) -> Any:
    """Partitions visited, those at -inf, sum of (score - edges[0]) of the others, and how many pass the threshold."""
    full, bins = len(scores) - 1, len(counts)
    levels = 1
    while full >> levels:
        levels += 1
    rest, sub = np.zeros(levels + 1, np.int64), np.zeros(levels + 1, np.int64)
    spent = np.zeros(levels + 1)
    width = (edges[bins] - edges[0]) / bins
    visited, impossible, n_above = 0, 0, 0
    total, lost = 0.0, 0.0  # Neumaier's sum: 1e10 terms keep their last digits
    depth = 0
    rest[0] = full
    sub[0] = full & (full - 1)  # all columns but the lowest: the largest block that may hold it
    while depth >= 0:
        if sub[depth] < 0:
            depth -= 1
            continue
        low = rest[depth] & -rest[depth]
        block = low | sub[depth]
        # The next smaller set of the other columns; after the empty one, -1 ends the level.
        sub[depth] = (sub[depth] - 1) & (rest[depth] ^ low) if sub[depth] else -1
        if np.isnan(scores[block]):
            continue
        score = spent[depth] + scores[block]
        left = rest[depth] ^ block
        if left:
            depth += 1
            rest[depth], spent[depth] = left, score
            sub[depth] = left & (left - 1)
            continue
        visited += 1
        if score == -np.inf:
            impossible += 1
            continue
        place = min(max(int((score - edges[0]) / width), 0), bins - 1)
        if place > 0 and score < edges[place]:
            place -= 1
        elif place < bins - 1 and score >= edges[place + 1]:
            place += 1
        counts[place] += 1
        term = score - edges[0]
        new = total + term
        lost += (total - new) + term if abs(total) >= abs(term) else (term - new) + total
        total = new
        if score > threshold:
            if n_above < len(found):
                taken = full
                for level in range(depth + 1):
                    following = rest[level + 1] if level < depth else 0
                    found[n_above, level] = taken ^ following
                    taken = following
            n_above += 1
    return visited, impossible, total + lost, n_above
