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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from isde.subsets import Subset, SubsetFamily
from isde.tree_solvers import classes, clutters
from isde.tree_solvers.classes import Classes
from isde.tree_solvers.clutters import Clutter

Entries = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]

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
        members = subsets.padded_members(positions)
        self._members, filled = members.astype(np.int64), members >= 0
        self.sizes = filled.sum(axis=1, dtype=np.int8)
        # Products of float32 matrices are fast, and exact for counts.
        self._holds = np.zeros((subsets.n_columns, len(positions)), dtype=np.float32)
        self._holds[members[filled], np.nonzero(filled)[0]] = 1

    def entries(self, cuts: Sequence[AnyCut]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """The coefficients that are not 0, all terms on the left side: number of the cut, of the set, and its value.

        By cuts.
        """
        parts = [(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64))]
        for kind, entries in ((Cut, self._of_cuts), (Clutter, self._of_clutters), (Classes, self._of_classes)):
            numbers = np.array([number for number, cut in enumerate(cuts) if isinstance(cut, kind)], dtype=np.intp)
            for start in range(0, len(numbers), CUTS_AT_ONCE):
                some = numbers[start : start + CUTS_AT_ONCE]
                for rows, columns, values in entries([cuts[number] for number in some.tolist()]):
                    parts.append((some[rows], columns, values))
        rows, columns, values = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return rows[order], columns[order], values[order]

    def _of_cuts(self, cuts: Sequence[Cut]) -> Iterator[Entries]:
        in_base, in_columns, in_held = (
            (_rows(self.n_columns, part) @ self._holds).astype(np.int8)
            for part in ([c.base for c in cuts], [c.columns for c in cuts], [c.held for c in cuts])
        )
        n_base = np.array([len(cut.base) for cut in cuts], dtype=np.int8)
        n_held = np.array([min(len(cut.held), self.max_size) for cut in cuts], dtype=np.int8)
        rows, columns = np.nonzero((in_base == n_base[:, None]) & (in_base + in_columns == self.sizes))
        inside = in_columns[rows, columns]
        taken = (n_base[rows] > 0) & (inside == 1) & (in_held[rows, columns] == 0)
        values = moebius_of_excess(self.max_size)[n_held[rows], inside] - taken
        some = values != 0
        yield rows[some], columns[some], values[some]

    def _of_clutters(self, cuts: Sequence[Clutter]) -> Iterator[Entries]:
        for places, members in self._by_size():
            rows, columns, values = clutters.coefficients_of(cuts, members, self.n_columns)
            yield rows, places[columns], values

    def _of_classes(self, cuts: Sequence[Classes]) -> Iterator[Entries]:
        for places, members in self._by_size():
            rows, columns, values = classes.coefficients_of(cuts, members, self.n_columns)
            yield rows, places[columns], values

    def _by_size(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int64]]]:
        for size in range(2, self.max_size + 1):
            places = np.flatnonzero(self.sizes == size)
            yield places, self._members[places, :size]

    def coefficients(self, cuts: Sequence[AnyCut]) -> NDArray[np.int64]:
        """The same as a matrix, a row for each cut."""
        matrix = np.zeros((len(cuts), len(self.positions)), dtype=np.int64)
        rows, columns, values = self.entries(cuts)
        matrix[rows, columns] = values
        return matrix


def _rows(n_columns: int, parts: Sequence[Subset]) -> NDArray[np.float32]:
    rows = np.zeros((len(parts), n_columns), dtype=np.float32)
    for row, part in zip(rows, parts, strict=True):
        row[list(part)] = 1
    return rows


def moebius_of_excess(max_size: int) -> NDArray[np.int64]:
    """table[j, t]: the Moebius weight of max(|T| - j, 0) for |T| = t."""
    table = np.zeros((max_size + 1, max_size + 1), dtype=np.int64)
    for j in range(1, max_size + 1):
        for t in range(j + 1, max_size + 1):
            table[j, t] = (-1) ** (t - j - 1) * comb(t - 2, j - 1)
    return table
