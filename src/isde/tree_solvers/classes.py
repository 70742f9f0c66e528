"""Inequalities that every tree of cliques keeps: columns in classes, of which a tree sees at least some.

Write c(S) = 1 where the columns of S are complete, and r(S) for the number of classes that S has columns of, but at
most j. With k(S) = sum over R in S of (-1)^(|S| - |R|) r(R), the Moebius weights of r, it says

    sum over sets S of k(S) c(S)  >=  j        where there are at least j classes.

Proof. The left side is the sum of r over cliques minus that over separators. r is a rank (of a matroid): it has
r(A + C) <= r(A) + r(C) - r(what A and C share). Cliques that are joined one after another, each with what it shares
with those before as its separator, have at least the rank of all columns, j.

Classes of one column are the clusters and trees of `cuts` without a base. With triangles and j = 2: those that three
classes share, plus edges within classes, minus triangles within classes, are at most the number of columns minus 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isde.subsets import Subset
from isde.tree_solvers.coefficients import within

Integers = NDArray[np.int64]
Entries = tuple[Integers, Integers, Integers]


@dataclass(frozen=True)
class Classes:
    """One inequality."""

    classes: tuple[Subset, ...]  # apart from each other, none empty
    rank: int  # j

    def __post_init__(self) -> None:
        columns = [column for one in self.classes for column in one]
        apart = len(set(columns)) == len(columns) and min(columns, default=0) >= 0
        if not (all(self.classes) and apart and 1 <= self.rank <= len(self.classes)):
            raise ValueError(f"{self} are no classes: columns in one class each, and no more rank than classes.")

    @property
    def limit(self) -> int:
        """All terms but constants on the left side, which is not to be larger than this."""
        return sum(map(len, self.classes)) - self.rank


@lru_cache(maxsize=64)
def moebius_of_rank(size: int, rank: int) -> Integers:
    """k(S) of sets of a size by the pairs of their columns that share a class: bits, in the order of combinations."""
    pairs = list(combinations(range(size), 2))
    table = np.zeros(1 << len(pairs), dtype=np.int64)
    for mask in range(len(table)):
        first = [min([i, *(a for bit, (a, b) in enumerate(pairs) if b == i and mask >> bit & 1)]) for i in range(size)]
        for n in range(1, size + 1):
            for chosen in combinations(range(size), n):
                table[mask] += (-1) ** (size - n) * min(len({first[i] for i in chosen}), rank)
    return table


def coefficients_of(cuts: Sequence[Classes], members: Integers, sizes: Integers, n_columns: int) -> Entries:
    """The coefficients that are not 0, all terms on the left side: cut, set and value. Members are padded with -1."""
    labels = np.full((len(cuts), n_columns), -1, dtype=np.int64)
    for number, cut in enumerate(cuts):
        for label, columns in enumerate(cut.classes):
            labels[number, list(columns)] = label
    rows, places = within(labels >= 0, np.zeros(labels.shape, dtype=np.bool_), members)
    values, own, ranks = np.zeros(len(rows), dtype=np.int64), sizes[places], np.array([cut.rank for cut in cuts])[rows]
    for size in range(2, members.shape[1] + 1):
        here = np.flatnonzero(own == size)
        classes = labels[rows[here, None], members[places[here], :size]]
        masks = np.zeros(len(here), dtype=np.int64)
        for bit, (i, j) in enumerate(combinations(range(size), 2)):
            masks |= (classes[:, i] == classes[:, j]).astype(np.int64) << bit
        for rank in np.unique(ranks[here]).tolist():
            some = ranks[here] == rank
            values[here[some]] = -moebius_of_rank(size, min(rank, size))[masks[some]]
    some = values != 0
    return rows[some], places[some], values[some]
