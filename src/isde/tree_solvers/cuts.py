"""Inequalities that every tree of cliques keeps: what the bound is proved by.

Write c(S) = 1 where the columns of S are complete (stand together in a clique) and 0 elsewhere. A cut has a base A, a
set U of other columns and j >= 1 of these that are held, H. It says

    sum over T in U, |T| > j, of (-1)^(|T| - j - 1) C(|T| - 2, j - 1) c(A + T)  <=  sum over u in U - H of c(A + u).

Proof. If A is not complete, both sides are 0 (for an empty A the right side counts |U| - j columns). Otherwise let V be
the columns u of U with A + u complete. The graph on V is chordal: its columns can be visited such that those visited
before which a column is joined to form a clique. The coefficients are the Moebius weights of max(|T| - j, 0), so that
the left side is the sum over all v in V of max(p + 1 - j, 0) - max(p - j, 0), where p counts the earlier neighbours of
v: it counts the columns with at least j of them, which the first j columns have not. So it is at most
max(|V| - j, 0), and the right side, |V - H|, is not less.

With j = 1 and no base this is "edges minus triangles plus ... at most |U| - 1" (cluster), with one column as base and
cliques of three the triangles at that column form a forest on its neighbours (link), with j = 2 "triangles at most
|U| - 2" (tree), and with |U| = 2 a set is complete only if its subsets are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from isde.subsets import Subset, SubsetFamily
from isde.tree_solvers import classes, clutters
from isde.tree_solvers.classes import Classes
from isde.tree_solvers.clutters import Clutter
from isde.tree_solvers.coefficients import within

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

CUTS_AT_ONCE = 128
"""Coefficients are computed for, to bound the memory."""


@dataclass(frozen=True)
class Cut:
    """One inequality; all three are sorted."""

    base: Subset  # A
    columns: Subset  # U, none of them in the base
    held: Subset  # H, some of the columns, at least one

    def __post_init__(self) -> None:
        apart = not set(self.base) & set(self.columns)
        if not (self.held and set(self.held) <= set(self.columns) and apart):
            raise ValueError(f"{self} is no cut: some of its columns are held, and its base is apart from them.")

    @property
    def limit(self) -> int:
        """What the left side minus the terms of the right one that are no constants is at most."""
        return 0 if self.base else len(self.columns) - len(self.held)


AnyCut = Cut | Clutter | Classes


class Sets:
    """The sets of columns that are variables, as a matrix of members, and the coefficients that cuts give them."""

    def __init__(self, subsets: SubsetFamily, positions: NDArray[np.intp]) -> None:
        self.positions, self.n_columns, self.max_size = positions, subsets.n_columns, subsets.max_size
        self._members = np.ascontiguousarray(subsets.padded_members(positions), dtype=np.int64)
        self.sizes = (self._members >= 0).sum(axis=1)

    def entries(self, cuts: Sequence[AnyCut]) -> Entries:
        """The coefficients that are not 0, all terms on the left side: number of the cut, of the set, and its value.

        By cuts.
        """
        nothing = np.empty(0, dtype=np.int64)
        parts = [(nothing, nothing, nothing)]
        for kind, entries in ((Cut, self._of_cuts), (Clutter, self._of_clutters), (Classes, self._of_classes)):
            numbers = np.array([number for number, cut in enumerate(cuts) if isinstance(cut, kind)], dtype=np.int64)
            for start in range(0, len(numbers), CUTS_AT_ONCE):
                some = numbers[start : start + CUTS_AT_ONCE]
                rows, columns, values = entries([cuts[number] for number in some.tolist()])
                parts.append((some[rows], columns, values))
        rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], columns[order], values[order]

    def _of_cuts(self, cuts: Sequence[Cut]) -> Entries:
        bases, columns, helds = (
            _rows(self.n_columns, part)
            for part in ([c.base for c in cuts], [c.columns for c in cuts], [c.held for c in cuts])
        )
        rows, places = within(bases | columns, bases, self._members)
        n_base = np.array([len(cut.base) for cut in cuts])[rows]
        n_held = np.array([min(len(cut.held), self.max_size) for cut in cuts])[rows]
        inside = self.sizes[places] - n_base
        values = moebius_of_excess(self.max_size)[n_held, inside]
        single = np.flatnonzero((n_base > 0) & (inside == 1))
        members, own = self._members[places[single]], rows[single, None]
        # Padding is read as the last column, and not counted.
        is_held = (helds[own, members] & (members >= 0)).any(axis=1)
        values[single] -= ~is_held
        some = values != 0
        return rows[some], places[some], values[some]

    def _of_clutters(self, cuts: Sequence[Clutter]) -> Entries:
        return clutters.coefficients_of(cuts, self._members, self.sizes, self.n_columns)

    def _of_classes(self, cuts: Sequence[Classes]) -> Entries:
        return classes.coefficients_of(cuts, self._members, self.sizes, self.n_columns)

    def coefficients(self, cuts: Sequence[AnyCut]) -> NDArray[np.int64]:
        """The same as a matrix, a row for each cut."""
        matrix = np.zeros((len(cuts), len(self.positions)), dtype=np.int64)
        rows, columns, values = self.entries(cuts)
        matrix[rows, columns] = values
        return matrix


def _rows(n_columns: int, parts: Sequence[Subset]) -> NDArray[np.bool_]:
    rows = np.zeros((len(parts), n_columns), dtype=np.bool_)
    for row, part in zip(rows, parts, strict=True):
        row[list(part)] = True
    return rows


def moebius_of_excess(max_size: int) -> NDArray[np.int64]:
    """table[j, t]: the Moebius weight of max(|T| - j, 0) for |T| = t."""
    table = np.zeros((max_size + 1, max_size + 1), dtype=np.int64)
    for j in range(1, max_size + 1):
        for t in range(j + 1, max_size + 1):
            table[j, t] = (-1) ** (t - j - 1) * comb(t - 2, j - 1)
    return table
