"""Clutters that a point of the linear program passes, found by local search over their members.

A clutter is passed by the value of its one member, the largest, minus the sum of k(S) times the value of S. A column or
pair that raises this most (or lowers it least) enters or leaves, one that has just moved rests, and the best clutter
met is kept. What a set adds depends on which of its columns and pairs are members: bits, looked up in a table. A step
changes that of the sets which hold its column or pair, and of their columns and pairs only.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop
from isde.subsets import SubsetFamily
from isde.tree_solvers.clutters import Clutter, moebius_of_holding
from isde.tree_solvers.holding import holders

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_SET = 5
"""Of more columns the table would be too large: then no clutters are looked for."""

PRESENT = 1e-6
"""Of a set, that counts as part of the point."""

STARTS, STEPS, REST = 120, 30, 5


def passed_clutters(subsets: SubsetFamily, point: Floats, least: float, seed: int) -> list[tuple[Clutter, float]]:
    """Clutters that the point (a value for each subset of the table) passes by at least so much, and by how much."""
    d, k = subsets.n_columns, subsets.max_size
    support = np.flatnonzero(point > PRESENT)
    support = support[support >= d]
    pairs = support[support < subsets.of_size(2).stop]
    if not 3 <= k <= LARGEST_SET or not pairs.size:
        return []
    members = subsets.padded_members(support).astype(np.int64)
    ends = members[: len(pairs)]
    number = np.full((d, d), -1, dtype=np.int64)
    number[ends[:, 0], ends[:, 1]] = d + np.arange(len(pairs))
    starts = _starts(members, number, seed)
    n_elements, sizes = d + len(pairs), (members >= 0).sum(axis=1)
    inside, amounts = np.zeros((len(starts), n_elements), dtype=np.bool_), np.zeros(len(starts))
    elements = _elements(members, number, k)
    first, holding, places = holders(elements, n_elements)
    room = np.empty(n_elements, dtype=np.bool_), np.empty(len(sizes), dtype=np.int64), np.empty(n_elements, np.int64)
    found_in = inside, amounts, *room, np.empty(n_elements)
    _search(first, holding, 1 << places, elements, sizes, point[support], d, *_tables(k), starts, STEPS, *found_in)
    found: dict[Clutter, float] = {}
    for chosen, amount in zip(inside[amounts >= least], amounts[amounts >= least].tolist(), strict=True):
        columns = np.flatnonzero(chosen[:d])
        some = np.flatnonzero(chosen[d:])
        # A pair that holds a member says nothing more.
        some = some[~chosen[:d][ends[some, :2]].any(axis=1)]
        own = tuple((int(a), int(b)) for a, b in ends[some, :2])
        one = (int(columns[0]),) if columns.size else own[int(np.argmax(point[pairs[some]]))]
        found[Clutter(tuple(columns.tolist()), own, one)] = amount
    return list(found.items())


def _starts(members: Integers, number: Integers, seed: int) -> Integers:
    """Of pairs alone, and of a column and a pair that stand together, some by lot: two members, or -1."""
    pairs = number[number >= 0]
    triples = members[(members >= 0).sum(axis=1) == 3][:, :3]
    orders = ((0, 1, 2), (0, 2, 1), (1, 2, 0))
    together = [np.column_stack([triples[:, c], number[triples[:, a], triples[:, b]]]) for a, b, c in orders]
    alone = np.column_stack([pairs, np.full(len(pairs), -1)])
    rng = np.random.default_rng(seed)
    kinds = [kind[(kind[:, :1] >= 0).all(axis=1)] for kind in (alone, np.concatenate(together))]
    return np.concatenate([rng.permutation(kind)[: STARTS // 2] for kind in kinds])


def _elements(members: Integers, number: Integers, k: int) -> Integers:
    """The columns and pairs of each set by their bits there, -1 where there is none.

    A set may be present where one of its pairs is not.
    """
    sizes = (members >= 0).sum(axis=1)
    elements = np.full((len(members), k * (k + 1) // 2), -1, dtype=np.int64)
    for size in range(2, k + 1):
        here = np.flatnonzero(sizes == size)
        elements[here, :size] = members[here, :size]
        for bit, (i, j) in enumerate(combinations(range(size), 2), start=size):
            elements[here, bit] = number[members[here, i], members[here, j]]
    return elements


@lru_cache(maxsize=4)
def _tables(k: int) -> tuple[Integers, Integers]:
    """k(S) for all sizes and members, one after another, and where each size begins."""
    tables = [moebius_of_holding(np.arange(1 << (size + size * (size - 1) // 2)), size) for size in range(2, k + 1)]
    begins = np.concatenate([[0, 0], np.cumsum([0, *map(len, tables)])])
    return np.concatenate(tables), begins.astype(np.int64)


@loop
def _search(
    first: Integers,  # in: where each element's sets begin; columns come first, then pairs
    holding: Integers,  # in: the sets of each element
    bits: Integers,  # in: of the element in these
    elements: Integers,  # in: of each set, by bit; -1 for a pair that is not present
    sizes: Integers,  # in: of the sets
    values: Floats,  # in: of the sets; the pairs come first
    d: int,  # in: columns
    table: Integers,  # in: k(S) by size and members
    begins: Integers,  # in: of each size in the table
    starts: Integers,  # in: two elements each, -1 for none
    steps: int,  # in
    best_inside: NDArray[np.bool_],  # out: the elements of the best clutter from each start
    amounts: Floats,  # out: by how much it is passed
    inside: NDArray[np.bool_],  # room: of each element, whether it is a member
    masks: Integers,  # room: members of each set
    resting: Integers,  # room: until which step each element rests
    changes: Floats,  # room: what the sum of k(S) times the value changes by where an element enters or leaves
) -> None:
    n_elements, n_sets, width = len(first) - 1, len(sizes), elements.shape[1]
    for s in range(len(starts)):
        for own in range(n_sets):
            masks[own] = 0
        for e in range(n_elements):
            inside[e] = False
            resting[e] = -2
            changes[e] = 0.0
            for i in range(first[e], first[e + 1]):
                changes[e] += values[holding[i]] * table[begins[sizes[holding[i]]] + bits[i]]
        n_columns, total, dearest, best = 0, 0.0, 0.0, -1.0
        for step in range(-2, steps):
            moved, most = -1, -1e300
            if step < 0:
                moved = starts[s, -1 - step]
                if moved < 0:
                    continue
            else:
                for e in range(n_elements):
                    if resting[e] > step:
                        continue
                    added, right = changes[e], dearest
                    if e < d:
                        added += -1.0 if inside[e] else 1.0
                        right = 1.0 if n_columns > 1 or not inside[e] else dearest
                    elif n_columns > 0:
                        right = 1.0
                    elif not inside[e]:
                        right = max(dearest, values[e - d])
                    if right - total - added > most:
                        most, moved = right - total - added, e
                if moved < 0:
                    break
                resting[moved] = step + REST
            total += changes[moved]
            if moved < d:
                total += -1.0 if inside[moved] else 1.0
                n_columns += -1 if inside[moved] else 1
            inside[moved] = not inside[moved]
            for i in range(first[moved], first[moved + 1]):
                own = holding[i]
                begin, before, after = begins[sizes[own]], masks[own], masks[own] ^ bits[i]
                shift = table[begin + before] - table[begin + after]
                for bit in range(width):
                    e = elements[own, bit]
                    if e >= 0:
                        one = 1 << bit
                        turn = table[begin + (after ^ one)] - table[begin + (before ^ one)]
                        changes[e] += values[own] * (turn + shift)
                masks[own] = after
            dearest = 0.0
            for e in range(d, n_elements):
                if inside[e]:
                    dearest = max(dearest, values[e - d])
            amount = (1.0 if n_columns > 0 else dearest) - total
            if amount > best + 1e-9 and step >= 0:
                best = amount
                for e in range(n_elements):
                    best_inside[s, e] = inside[e]
        amounts[s] = best
