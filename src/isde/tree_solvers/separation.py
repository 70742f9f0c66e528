"""Cuts that a point of the linear program passes, found by local search.

For a base A the columns u have costs c(A + u), 1 where A is empty, and the sets T that make a complete set with A have
values, the coefficient of the cut times c(A + T). A set U of columns is passed by the sum of the values of the T in U,
minus the costs of U, plus the j largest of these. Starting with every T of j + 1 columns, the column that raises this
most (or lowers it least) enters or leaves, one that has just moved rests, and the best U met is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop
from isde.subsets import Subset, SubsetFamily
from isde.tree_solvers.cuts import Cut, moebius_of_excess

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PRESENT = 1e-7
"""Of a set, that counts as part of the point."""

REST = 4
"""Steps in which a column that has moved does not move again."""

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


def passed_cuts(subsets: SubsetFamily, point: Floats, least: float) -> list[Passed]:
    """Cuts that the point (a value for each subset of the table) passes by at least so much, the deepest first."""
    support = np.flatnonzero(point > PRESENT)
    support = support[support >= subsets.n_columns]
    found: list[Passed] = []
    members = subsets.padded_members(support)
    present = Present(subsets, members, point[support])
    for base in present.bases():
        for held in range(1, subsets.max_size - len(base)):
            found.extend(present.passed(base, held, least))
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

    def passed(self, base: Subset, held: int, least: float) -> list[Passed]:
        around: NDArray[np.bool_] = np.all(self.holds[:, list(base)], axis=1)
        larger = np.flatnonzero(around & (self.sizes > len(base) + held))
        if not larger.size:
            return []
        costs = self._costs(base, around, larger)
        rests, sizes = self._without(base, larger)
        values = moebius_of_excess(self.k)[held, sizes] * self.values[larger]
        starts = np.flatnonzero(sizes == held + 1)
        if not starts.size:  # sets without their subsets: those are cuts of a larger base
            return []
        sets, amounts = np.zeros((len(starts), self.d), dtype=np.bool_), np.zeros(len(starts))
        n = _search(rests, values, costs, held, starts, self.d + 8, least, sets, amounts, *_room(self.d, *rests.shape))
        return [self._as_cut(base, held, costs, *one) for one in zip(sets[:n], amounts[:n].tolist(), strict=True)]

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


def _room(
    n_columns: int, n_sets: int, width: int
) -> tuple[Integers, Integers, Integers, Integers, Floats, NDArray[np.bool_]]:
    """Arrays that the search writes to."""
    return (
        np.zeros(n_columns + 1, dtype=np.int64),
        np.empty(n_sets * width, dtype=np.int64),
        np.empty(n_sets, dtype=np.int64),
        np.empty(n_columns, dtype=np.int64),
        np.empty(n_columns),
        np.empty((3, n_columns), dtype=np.bool_),
    )


@loop
def _search(
    members: Integers,  # in: the columns of each set, padded with -1
    values: Floats,  # in
    costs: Floats,  # in: of each column
    held: int,  # in: j
    starts: NDArray[np.intp],  # in: sets to start with
    steps: int,  # in
    least: float,  # in
    sets: NDArray[np.bool_],  # out: the columns of each set found
    amounts: Floats,  # out: by how much it is passed
    first: Integers,  # room: where each column's sets begin
    belonging: Integers,  # room: the sets of each column
    missing: Integers,  # room: how many columns of each set are outside
    resting: Integers,  # room: until which step each column rests
    gain: Floats,  # room: value of the sets that are inside but for the column, or inside and hold it
    flags: NDArray[np.bool_],  # room: inside, best, taken
) -> int:
    """The number of different sets found."""
    n_sets, width, n = members.shape[0], members.shape[1], costs.shape[0]
    inside, best_inside, taken = flags[0], flags[1], flags[2]
    for c in range(n + 1):
        first[c] = 0
    for s in range(n_sets):
        for i in range(width):
            if members[s, i] >= 0:
                first[members[s, i] + 1] += 1
    for c in range(n):
        first[c + 1] += first[c]
        resting[c] = first[c]
    for s in range(n_sets):
        for i in range(width):
            c = members[s, i]
            if c >= 0:
                belonging[resting[c]] = s
                resting[c] += 1
    found = 0
    for start in starts:
        for c in range(n):
            inside[c] = False
            gain[c] = 0.0
            resting[c] = -1
        for s in range(n_sets):
            missing[s] = 0
            for i in range(width):
                if members[s, i] >= 0:
                    missing[s] += 1
        total, size, best = 0.0, 0, -1.0
        step = -missing[start]
        while step < steps:
            moved = -1
            if step < 0:
                moved = members[start, -step - 1]
            else:
                most = -NEVER / 2
                for c in range(n):
                    if resting[c] > step or (inside[c] and size <= held + 1):
                        continue
                    change = costs[c] - gain[c] if inside[c] else gain[c] - costs[c]
                    if change > most:
                        most, moved = change, c
                if moved < 0:
                    break
                resting[moved] = step + REST
            sign = -1 if inside[moved] else 1
            inside[moved] = not inside[moved]
            size += sign
            total += sign * (gain[moved] - costs[moved])
            for place in range(first[moved], first[moved + 1]):
                s = belonging[place]
                missing[s] -= sign
                fewer = missing[s] if sign > 0 else missing[s] - 1  # of before and after
                if fewer > 1:
                    continue
                for i in range(width):
                    c = members[s, i]
                    if c >= 0 and c != moved and inside[c] == (fewer == 0):
                        gain[c] += sign * values[s]
            step += 1
            if size <= held:
                continue
            kept = 0.0
            for c in range(n):
                taken[c] = False
            for _ in range(held):
                dearest = -1
                for c in range(n):
                    if inside[c] and not taken[c] and (dearest < 0 or costs[c] > costs[dearest]):
                        dearest = c
                taken[dearest] = True
                kept += costs[dearest]
            if total + kept > best + 1e-12:
                best = total + kept
                for c in range(n):
                    best_inside[c] = inside[c]
        if best < least:
            continue
        is_new = True
        for other in range(found):
            same = True
            for c in range(n):
                if sets[other, c] != best_inside[c]:
                    same = False
                    break
            if same:
                is_new = False
                break
        if is_new:
            for c in range(n):
                sets[found, c] = best_inside[c]
            amounts[found] = best
            found += 1
    return found
