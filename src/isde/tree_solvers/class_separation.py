"""Classes that a point of the linear program passes, found by local search.

The cut is passed by j, minus the number of columns in classes, minus the sum of k(S) times the value of S. From j + 1
columns that stand together, each a class of its own, the column whose move to another class, to one of its own or out
of all of them raises this most (or lowers it least) moves, one that has just moved rests, and the best is kept.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop
from isde.subsets import SubsetFamily
from isde.tree_solvers.classes import Classes, moebius_of_rank
from isde.tree_solvers.holding import holders

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_SET = 5
"""Of more columns the table would be too large: then no classes are looked for."""

PRESENT = 1e-6
"""Of a set, that counts as part of the point."""

STARTS, STEPS, REST = 30, 24, 4


def passed_classes(subsets: SubsetFamily, point: Floats, least: float, seed: int) -> list[tuple[Classes, float]]:
    """Classes that the point (a value for each subset of the table) passes by at least so much, and by how much."""
    d, k = subsets.n_columns, subsets.max_size
    if not 3 <= k <= LARGEST_SET:
        return []
    support = np.flatnonzero(point > PRESENT)
    support = support[support >= d]
    members = subsets.padded_members(support)
    sizes = (members >= 0).sum(axis=1)
    first, holding, _ = holders(members, d)
    found: dict[Classes, float] = {}
    for rank in range(2, k):
        together = members[sizes == rank + 1]
        starts = np.random.default_rng(seed).permutation(together)[:STARTS]
        labels, amounts = np.full((len(starts), d), -1, dtype=np.int64), np.zeros(len(starts))
        room = np.empty((3, d), dtype=np.int64), np.empty(len(members), dtype=np.int64)
        of_sets = members, sizes, point[support]
        _search(first, holding, *of_sets, rank, *_tables(k, rank), starts, STEPS, labels, amounts, *room)
        for own, amount in zip(labels[amounts >= least], amounts[amounts >= least].tolist(), strict=True):
            classes = sorted(tuple(np.flatnonzero(own == label).tolist()) for label in np.unique(own[own >= 0]))
            found[Classes(tuple(classes), rank)] = amount
    return list(found.items())


@lru_cache(maxsize=8)
def _tables(k: int, rank: int) -> tuple[Integers, Integers]:
    """k(S) for all sizes and masks, one after another, and where each size begins."""
    tables = [moebius_of_rank(size, min(rank, size)) for size in range(2, k + 1)]
    return np.concatenate(tables), np.concatenate([[0, 0], np.cumsum([0, *map(len, tables)])]).astype(np.int64)


@loop
def _search(
    first: Integers,  # in: where each column's sets begin
    holding: Integers,  # in: the sets of each column
    members: Integers,  # in: of the sets, padded with -1
    sizes: Integers,  # in: of the sets
    values: Floats,  # in: of the sets
    rank: int,  # in: j
    table: Integers,  # in: k(S) by size and pairs that share a class
    begins: Integers,  # in: of each size in the table
    starts: Integers,  # in: sets of j + 1 columns
    steps: int,  # in
    best_labels: Integers,  # out: the class of each column, -1 for none, from each start
    amounts: Floats,  # out: by how much it is passed
    room: Integers,  # room
    inside: Integers,  # room: sets that are in classes, but perhaps for one column
) -> None:
    d = len(first) - 1
    label, count, resting = room[0], room[1], room[2]  # of columns; of classes; of columns
    for s in range(len(starts)):
        for c in range(d):
            label[c] = -1
            count[c] = 0
            resting[c] = -1
        for i in range(rank + 1):
            label[starts[s, i]] = i
            count[i] = 1
        n_classes, total, best = rank + 1, 0.0, -1.0
        for own in range(len(sizes)):
            mask, bit = 0, 0
            for i in range(sizes[own]):
                if label[members[own, i]] < 0:
                    mask = -1
            for i in range(sizes[own]):
                for j in range(i + 1, sizes[own]):
                    if mask >= 0 and label[members[own, i]] == label[members[own, j]]:
                        mask |= 1 << bit
                    bit += 1
            if mask >= 0:
                total += values[own] * table[begins[sizes[own]] + mask]
        total += rank + 1
        for step in range(steps):
            moved, target, most, change = -1, -1, -1e300, 0.0
            for c in range(d):
                if resting[c] > step:
                    continue
                old, new_class_tried, n_inside = label[c], False, 0
                for place in range(first[c], first[c + 1]):
                    own, is_inside = holding[place], True
                    for i in range(sizes[own]):
                        if members[own, i] != c and label[members[own, i]] < 0:
                            is_inside = False
                            break
                    if is_inside:
                        inside[n_inside] = own
                        n_inside += 1
                for new in range(-1, d):
                    if new == old:
                        continue
                    if new >= 0 and count[new] == 0:
                        if new_class_tried or (old >= 0 and count[old] == 1):
                            continue
                        new_class_tried = True
                    left = n_classes
                    if old >= 0 and count[old] == 1:
                        left -= 1
                    if new >= 0 and count[new] == 0:
                        left += 1
                    if left < rank:
                        continue
                    added = 0.0
                    if new < 0:
                        added = -1.0
                    elif old < 0:
                        added = 1.0
                    for place in range(n_inside):
                        own = inside[place]
                        before, after, bit = 0, 0, 0
                        if old < 0:
                            before = -1
                        if new < 0:
                            after = -1
                        for i in range(sizes[own]):
                            a = members[own, i]
                            for j in range(i + 1, sizes[own]):
                                b = members[own, j]
                                if before >= 0 and label[a] == label[b]:
                                    before |= 1 << bit
                                if after >= 0 and (new if a == c else label[a]) == (new if b == c else label[b]):
                                    after |= 1 << bit
                                bit += 1
                        if before >= 0:
                            added -= values[own] * table[begins[sizes[own]] + before]
                        if after >= 0:
                            added += values[own] * table[begins[sizes[own]] + after]
                    if rank - total - added > most:
                        moved, target, most, change = c, new, rank - total - added, added
            if moved < 0:
                break
            if label[moved] >= 0:
                count[label[moved]] -= 1
                if count[label[moved]] == 0:
                    n_classes -= 1
            if target >= 0:
                if count[target] == 0:
                    n_classes += 1
                count[target] += 1
            label[moved] = target
            resting[moved] = step + REST
            total += change
            if rank - total > best + 1e-9:
                best = rank - total
                for c in range(d):
                    best_labels[s, c] = label[c]
        amounts[s] = best
