"""Cuts that a point of the linear program passes, found by annealing.

For a base A the columns u have costs c(A + u), 1 where A is empty, and the sets T that make a complete set with A have
values, the coefficient of the cut times c(A + T). A set U of columns is passed by the sum of the values of the T in U,
minus the costs of U, plus the j largest of these. From all columns that have a cost, one by lot enters or leaves, and
what lowers the sum is done as long as it is warm: sets that pass by much are large, and from a few columns that stand
together no climb leads there (on a point that kept all that such climbs found, sets of 25 columns passed by 0.7). Sets
that are left for worse are peaks; of these the deepest are kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop, part
from isde.subsets import Subset, SubsetFamily
from isde.tree_solvers.cuts import Cut, moebius_of_excess
from isde.tree_solvers.holding import holders

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PRESENT = 1e-7
"""Of a set, that counts as part of the point."""

PEAKS = 6
"""Of a base and a number of columns that are held: what more of them say is nearly the same, and costs time."""

WALKS, STEPS_PER_COLUMN = 2, 60
HOT, COLD = 0.4, 0.008
"""At the start and at the end of a walk: what a whole set is worth is 1."""

SAME = 1e-9
"""Amounts this close are those of one set, but for columns that change nothing."""

NEVER = 1e9
"""The cost of a column that must not enter."""


@dataclass(frozen=True)
class Passed:
    """A cut, and by how much a point passes it."""

    cut: Cut
    amount: float

    @property
    def depth(self) -> float:
        """By which cuts are compared: about the number of sets that have a coefficient, a root of it for its length."""
        return self.amount / len(self.cut.columns) ** 1.5


def passed_cuts(subsets: SubsetFamily, point: Floats, least: float, seed: int) -> list[Passed]:
    """Cuts that the point (a value for each subset of the table) passes by at least so much, the deepest first."""
    support = np.flatnonzero(point > PRESENT)
    support = support[support >= subsets.n_columns]
    present = Present(subsets, subsets.padded_members(support), point[support])
    rng, found = np.random.default_rng(seed), list[Passed]()
    for base in present.bases():
        for held in range(1, subsets.max_size - len(base)):
            found.extend(present.passed(base, held, least, rng))
    return sorted(found, key=lambda passed: (-passed.depth, passed.cut.base, passed.cut.columns))


class Present:
    """The sets that a point holds in part."""

    def __init__(self, subsets: SubsetFamily, members: Integers, values: Floats) -> None:
        self.d, self.k, self.members, self.values = subsets.n_columns, subsets.max_size, members, values
        self.sizes = (members >= 0).sum(axis=1)
        self.holds = np.zeros((len(members), self.d), dtype=np.bool_)
        self.holds[np.nonzero(members >= 0)[0], members[members >= 0]] = True

    def bases(self) -> list[Subset]:
        """Sets of at most k - 2 columns that something present holds with two more."""
        bases: list[Subset] = [(), *((c,) for c in range(self.d) if self.k > 2)]
        smaller = (self.sizes > 1) & (self.sizes <= self.k - 2)
        return bases + [tuple(row[row >= 0].tolist()) for row in self.members[smaller]]

    def passed(self, base: Subset, held: int, least: float, rng: np.random.Generator) -> list[Passed]:
        around: NDArray[np.bool_] = np.all(self.holds[:, list(base)], axis=1)
        larger = np.flatnonzero(around & (self.sizes > len(base) + held))
        costs = self._costs(base, around, larger)
        columns = np.flatnonzero(costs < NEVER)
        if not larger.size or len(columns) <= held:
            return []
        rests, sizes = self._without(base, larger)
        values = moebius_of_excess(self.k)[held, sizes] * self.values[larger]
        peaks, amounts, lengths = np.zeros((PEAKS, self.d), dtype=np.bool_), np.zeros(PEAKS), np.ones(PEAKS, np.int64)
        room = np.empty((2, self.d), dtype=np.bool_), np.empty(len(larger), dtype=np.int64), np.empty(self.d)
        first, holding, _ = holders(rests, self.d)
        sets, steps = (first, holding, rests, values), STEPS_PER_COLUMN * len(columns)
        for _ in range(WALKS):
            tried = columns[rng.integers(len(columns), size=steps)]
            worse = np.geomspace(HOT, COLD, steps) * np.log(1.0 - rng.random(steps))
            _walk(*sets, costs, columns, held, tried, worse, least, peaks, amounts, lengths, *room)
        found = zip(peaks[amounts > 0], amounts[amounts > 0].tolist(), strict=True)
        return [self._as_cut(base, held, costs, *one) for one in found]

    def _costs(self, base: Subset, around: NDArray[np.bool_], larger: NDArray[np.intp]) -> Floats:
        if not base:
            return np.ones(self.d)
        costs = np.where(self.holds[larger].any(axis=0), 0.0, NEVER)
        one_more = np.flatnonzero(around & (self.sizes == len(base) + 1))
        rests, _ = self._without(base, one_more)
        costs[rests[:, 0]] = self.values[one_more]
        costs[list(base)] = NEVER
        return costs

    def _without(self, base: Subset, which: NDArray[np.intp]) -> tuple[Integers, Integers]:
        """The members of some sets that are not in the base, padded with -1, and how many."""
        holds = self.holds[which].copy()
        holds[:, list(base)] = False
        sizes = holds.sum(axis=1)
        rests = np.full((len(which), self.k), -1, dtype=np.int64)
        rests[np.arange(self.k)[None, :] < sizes[:, None]] = np.nonzero(holds)[1]
        return rests, sizes

    def _as_cut(self, base: Subset, held: int, costs: Floats, inside: NDArray[np.bool_], amount: float) -> Passed:
        columns = np.flatnonzero(inside)
        dearest = columns[np.argsort(-costs[columns], kind="stable")[:held]]
        return Passed(Cut(base, tuple(columns.tolist()), tuple(sorted(dearest.tolist()))), amount)


@part
def _kept(costs: Floats, inside: NDArray[np.bool_], held: int, taken: NDArray[np.bool_]) -> float:
    """The costs of the dearest columns inside, as many as are held."""
    total = 0.0
    for c in range(len(costs)):
        taken[c] = False
    for _ in range(held):
        dearest = -1
        for c in range(len(costs)):
            if inside[c] and not taken[c] and (dearest < 0 or costs[c] > costs[dearest]):
                dearest = c
        taken[dearest] = True
        total += costs[dearest]
    return total


@part
def _place(amount: float, size: int, amounts: Floats, sizes: Integers) -> int:
    """Where a peak is written: over one that is the same, or else the shallowest; -1 where it is no deeper."""
    depth, lowest, place = amount / size**1.5, 1e300, -1
    for other in range(len(amounts)):
        own = amounts[other] / sizes[other] ** 1.5
        if abs(amounts[other] - amount) < SAME:
            return other if depth > own else -1
        if own < lowest:
            lowest, place = own, other
    return place if depth > lowest else -1


@loop
def _walk(
    first: Integers,  # in: where each column's sets begin
    holding: Integers,  # in: the sets of each column
    members: Integers,  # in: the columns of each set, padded with -1
    values: Floats,  # in: of the sets
    costs: Floats,  # in: of each column
    columns: NDArray[np.intp],  # in: those that may enter; all are inside at the start
    held: int,  # in: j
    tried: Integers,  # in: the column of each step
    worse: Floats,  # in: what the sum may change by there, below 0
    least: float,  # in: of a peak
    peaks: NDArray[np.bool_],  # in and out: the columns of the deepest
    amounts: Floats,  # in and out: by how much each is passed; 0: none
    sizes: Integers,  # in and out: of each, its columns
    flags: NDArray[np.bool_],  # room: of each column, inside, taken
    missing: Integers,  # room: how many columns of each set are outside
    gain: Floats,  # room: value of the sets that are inside but for the column, or inside and hold it
) -> None:
    n_sets, width = members.shape
    inside, taken = flags[0], flags[1]
    for c in range(len(costs)):
        inside[c] = False
        gain[c] = 0.0
    total, size = 0.0, len(columns)
    for c in columns:
        inside[c] = True
        total -= costs[c]
    for s in range(n_sets):
        missing[s] = 0
        for i in range(width):
            if members[s, i] >= 0:
                gain[members[s, i]] += values[s]
        total += values[s]
    for step in range(len(tried) + 1):
        moved, change = -1, -1.0  # after the last step a peak may be left, too
        if step < len(tried):
            moved = tried[step]
            change = costs[moved] - gain[moved] if inside[moved] else gain[moved] - costs[moved]
            if change < worse[step] or (inside[moved] and size <= held + 1):
                continue
        if change < 0.0:
            amount = total + _kept(costs, inside, held, taken)
            place = _place(amount, size, amounts, sizes) if amount >= least else -1
            if place >= 0:
                amounts[place], sizes[place] = amount, size
                for c in range(len(costs)):
                    peaks[place, c] = inside[c]
        if moved < 0:
            return
        sign = -1 if inside[moved] else 1
        inside[moved] = not inside[moved]
        size += sign
        total += change
        for place in range(first[moved], first[moved + 1]):
            s = holding[place]
            missing[s] -= sign
            fewer = missing[s] if sign > 0 else missing[s] - 1  # of before and after
            if fewer > 1:
                continue
            for i in range(width):
                c = members[s, i]
                if c >= 0 and c != moved and inside[c] == (fewer == 0):
                    gain[c] += sign * values[s]
