"""More inequalities that every tree of cliques keeps: by columns and pairs, some of which stand together.

Write c(S) = 1 where the columns of S are complete, and take some members, columns u in U and pairs e in F. It says

    sum over sets S of k(S) c(S)  >=  c(one of the members),

where k(S) = sum over R in S of (-1)^(|S| - |R|) [R holds a member], the Moebius weights of "holds a member".

Proof. For any function of sets, the sum of its Moebius weights over the complete sets of a tree is its sum over cliques
minus that over separators. Of "holds a member" that is the number of cliques that hold one minus the number of
separators that do. A separator that holds a member stands between two cliques that do: these form a forest, whose nodes
minus edges count its trees, at least one where a member is complete.

With one column as the only member and triangles this is y(F) >= sum over e of z(u + e) + ..., with columns alone it is
the cluster of `cuts`. Studeny and Cussens (2017) call them clutter inequalities, and have longer members, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isde.subsets import Subset
from isde.tree_solvers.coefficients import held

Integers = NDArray[np.int64]
Entries = tuple[Integers, Integers, Integers]


@dataclass(frozen=True)
class Clutter:
    """One inequality."""

    columns: Subset  # U, sorted
    pairs: tuple[Subset, ...]  # F, each sorted
    one: Subset  # the member on the right side

    def __post_init__(self) -> None:
        ordered = all(a < b for a, b in self.pairs) and len(set(self.pairs)) == len(self.pairs)
        distinct = len(set(self.columns)) == len(self.columns)
        ordered = ordered and min([*self.columns, *(a for a, _ in self.pairs)], default=0) >= 0
        member = self.one in self.pairs or (len(self.one) == 1 and self.one[0] in self.columns)
        if not (ordered and distinct and member):
            raise ValueError(f"{self} is no clutter: columns and pairs, each once, and one of these.")

    @property
    def limit(self) -> int:
        """All terms but constants on the left side, which is not to be larger than this."""
        return len(self.columns) - (len(self.one) == 1)


def moebius_of_holding(masks: Integers, size: int) -> Integers:
    """k(S) of sets of a size by their members: bit i for column i, then bits for pairs, in the order of combinations.

    The sum over R that hold a member is minus that over R that hold none, since all signs add up to 0.
    """
    found = np.zeros_like(masks)
    for n in range(size + 1):
        for chosen in combinations(range(size), n):
            found += (-1) ** (size + 1 - n) * ((masks & bits_within(size, chosen)) == 0)
    return found


def bits_within(size: int, chosen: Sequence[int]) -> int:
    """The bits of all columns and pairs at some places of a set."""
    pairs = enumerate(combinations(range(size), 2), start=size)
    return sum(1 << i for i in chosen) + sum(1 << bit for bit, (i, j) in pairs if i in chosen and j in chosen)


def coefficients_of(clutters: Sequence[Clutter], members: Integers, sizes: Integers, n_columns: int) -> Entries:
    """The coefficients that are not 0, all terms on the left side: clutter, set, value. Members are padded with -1."""
    columns = np.zeros((len(clutters), n_columns), dtype=np.bool_)
    pairs = np.zeros((len(clutters), n_columns, n_columns), dtype=np.bool_)
    ones = np.full((len(clutters), 2), -1, dtype=np.int64)
    for number, clutter in enumerate(clutters):
        columns[number, list(clutter.columns)] = True
        if clutter.pairs:
            pairs[(number, *np.transpose(clutter.pairs))] = True
        if len(clutter.one) == 2:
            ones[number] = clutter.one
    rows, places, masks = held(columns, pairs, members)
    values, own = np.zeros(len(rows), dtype=np.int64), sizes[places]
    for size in range(2, members.shape[1] + 1):
        values[own == size] = -moebius_of_holding(masks[own == size], size)
    values += (own == 2) & (members[places, :2] == ones[rows]).all(axis=1)
    some = values != 0
    return rows[some], places[some], values[some]
