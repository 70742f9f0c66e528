"""Subsets of at most k of d columns, in one fixed order: by size, colexicographic within a size.

In that order a subset's position has a closed form (a sum of binomials), so that scores live in plain arrays,
2.4 million of them without a dictionary, and the subsets of at most k' < k columns are a prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import combinations, pairwise
from math import comb
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Subset = tuple[int, ...]


class SubsetFamily(Sequence[Subset]):
    """Every non-empty subset of at most `max_size` of `n_columns` columns.

    >>> family = SubsetFamily(n_columns=3, max_size=2)
    >>> list(family)
    [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    >>> family.index((0, 2)), family[4], len(SubsetFamily(50, 5))
    (4, (0, 2), 2369935)
    """

    def __init__(self, n_columns: int, max_size: int) -> None:
        if n_columns < 1 or max_size < 1:
            raise ValueError(f"A family needs columns and a size, got n_columns={n_columns}, max_size={max_size}.")
        self.n_columns = int(n_columns)
        self.max_size = min(int(max_size), self.n_columns)

    @property
    def complete(self) -> int:
        """The largest size of which, and of all smaller ones, every subset is here."""
        return self.max_size

    @property
    def n_missing(self) -> int:
        """How many subsets of at most `max_size` columns are not here."""
        return sum(comb(self.n_columns, size) for size in range(1, self.max_size + 1)) - len(self)

    def up_to(self, max_size: int) -> SubsetFamily:
        """The subsets of at most so many columns: a prefix of these."""
        return SubsetFamily(self.n_columns, max_size)

    def places(self, size: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of subsets of one size, by their colexicographic rank, the place among those here; -1: not here."""
        return ranks

    def find(self, members: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Position of each row of sorted columns, padded with -1; -1 for an empty row, and for one that is not here."""
        sizes = (members >= 0).sum(axis=1)
        terms = binomials(self.n_columns, members.shape[1])[members, np.arange(1, members.shape[1] + 1)]
        ranks = np.where(members >= 0, terms, 0).sum(axis=1)
        found = np.full(len(members), -1, dtype=np.int64)
        for size in np.unique(sizes[(sizes > 0) & (sizes <= self.max_size)]).tolist():
            here = np.flatnonzero(sizes == size)
            places = self.places(size, ranks[here])
            found[here] = np.where(places >= 0, self.offsets[size] + places, -1)
        return found

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """offsets[s]: position of the first subset of size s; offsets[max_size + 1] is the count."""
        offsets = [0, 0]
        for size in range(1, self.max_size + 1):
            offsets.append(offsets[-1] + self._count(size))
        return tuple(offsets)

    def _count(self, size: int) -> int:
        return comb(self.n_columns, size)

    def of_size(self, size: int) -> slice:
        """Positions of the subsets of one size."""
        return slice(self.offsets[size], self.offsets[size + 1])

    def members(self, size: int) -> NDArray[np.int16]:
        """The subsets of one size as the rows of a matrix, shape (C(d, size), size)."""
        return colex_combinations(self.n_columns, size)

    @cached_property
    def sizes(self) -> NDArray[np.int16]:
        """Size of each subset."""
        counts = np.diff(self.offsets)[1:]
        return np.repeat(np.arange(1, self.max_size + 1, dtype=np.int16), counts)

    @cached_property
    def masks(self) -> NDArray[np.uint64]:
        """Bit mask of each subset, for at most 64 columns."""
        if self.n_columns > 64:
            raise ValueError(f"Bit masks hold 64 columns, not {self.n_columns}.")
        bits = np.uint64(1) << np.arange(self.n_columns, dtype=np.uint64)
        return np.concatenate(
            [bits[self.members(size)].sum(axis=1, dtype=np.uint64) for size in range(1, self.max_size + 1)]
        )

    def padded_members(self, positions: NDArray[np.intp]) -> NDArray[np.int64]:
        """The columns of some subsets as the rows of a matrix, padded with -1 to the largest size.

        >>> SubsetFamily(3, 2).padded_members(np.array([2, 4])).tolist()
        [[2, -1], [0, 2]]
        """
        rows = np.full((len(positions), self.max_size), -1, dtype=np.int64)
        for size in range(1, self.max_size + 1):
            here = np.flatnonzero((positions >= self.offsets[size]) & (positions < self.offsets[size + 1]))
            if here.size:
                rows[here, :size] = self.members(size)[positions[here] - self.offsets[size]]
        return rows

    def sum_over_members(
        self, per_column: NDArray[np.float64], positions: NDArray[np.intp] | None = None
    ) -> NDArray[np.float64]:
        """For each subset S, or for some of them, the sum of per_column[f] over f in S."""
        if positions is not None:
            return np.append(per_column, 0.0)[self.padded_members(positions)].sum(axis=1)  # the padding is -1
        return np.concatenate([per_column[self.members(size)].sum(axis=1) for size in range(1, self.max_size + 1)])

    def sum_over_pairs(self, per_pair: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each subset, the sum over its pairs, given in the order of `members(2)`; 0 for a column alone."""
        sums = np.zeros(len(self))
        for size in range(2, self.max_size + 1):
            members = self.members(size).astype(np.intp)
            for first, second in combinations(range(size), 2):
                low, high = members[:, first], members[:, second]
                sums[self.of_size(size)] += per_pair[high * (high - 1) // 2 + low]
        return sums

    def index(self, value: Iterable[int], start: int = 0, stop: int | None = None) -> int:
        """Position of a subset (sorted columns)."""
        subset = tuple(value)
        if any(isinstance(column, str) for column in subset):
            raise ValueError(f"{subset} holds names, and a subset is the numbers of its columns, from 0 on.")
        if not self._is_sorted(subset):
            raise ValueError(f"{subset} is no sorted subset of at most {self.max_size} of {self.n_columns} columns.")
        return self.offsets[len(subset)] + rank_of(subset)

    def __contains__(self, value: object) -> bool:
        return self._is_sorted(value)

    def _is_sorted(self, value: object) -> bool:
        """Whether it is a sorted subset of at most `max_size` of the columns."""
        if not isinstance(value, tuple) or not 1 <= len(value) <= self.max_size:
            return False
        return value[0] >= 0 and value[-1] < self.n_columns and all(a < b for a, b in pairwise(value))

    def __len__(self) -> int:
        return self.offsets[-1]

    @overload
    def __getitem__(self, index: int) -> Subset: ...
    @overload
    def __getitem__(self, index: slice) -> list[Subset]: ...
    def __getitem__(self, index: int | slice) -> Subset | list[Subset]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"subset {index} of {len(self)}")
        size = next(s for s in range(1, self.max_size + 1) if position < self.offsets[s + 1])
        return self._at(size, position - self.offsets[size])

    def _at(self, size: int, place: int) -> Subset:
        return _unrank(place, size)

    def __iter__(self) -> Iterator[Subset]:
        for size in range(1, self.max_size + 1):
            yield from map(tuple, self.members(size).tolist())

    def __eq__(self, other: object) -> bool:
        if type(other) is not SubsetFamily:
            return NotImplemented
        return (self.n_columns, self.max_size) == (other.n_columns, other.max_size)

    def __reduce__(self) -> tuple[type[SubsetFamily], tuple[Any, ...]]:
        """Two numbers: what was worked out from them is not sent to others."""
        return SubsetFamily, (self.n_columns, self.max_size)

    def __hash__(self) -> int:
        return hash((self.n_columns, self.max_size))

    def __repr__(self) -> str:
        return f"SubsetFamily(n_columns={self.n_columns}, max_size={self.max_size})"


@lru_cache(maxsize=32)  # asked for many times for each split of a table
def colex_combinations(n: int, size: int) -> NDArray[np.int16]:
    """All combinations of `size` of range(n) in colexicographic order, one per row.

    Those with largest member c are the combinations of size - 1 of range(c), a prefix of the smaller table.

    >>> colex_combinations(4, 2).tolist()
    [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]
    """
    table = np.zeros((1, 0), dtype=np.int16)
    for width in range(1, size + 1):
        lasts = range(width - 1, n)
        heads = np.concatenate([table[: comb(c, width - 1)] for c in lasts])
        tails = np.repeat(np.asarray(lasts, dtype=np.int16), [comb(c, width - 1) for c in lasts])
        table = np.column_stack([heads, tails])
    table.flags.writeable = False
    return table


def binomials(n: int, size: int) -> NDArray[np.int64]:
    """table[c, i] = C(c, i): the terms of a colexicographic rank."""
    return np.array([[comb(c, i) for i in range(size + 1)] for c in range(n)], dtype=np.int64)


def rank_of(subset: Subset) -> int:
    """The place of sorted columns among all subsets of as many, in colexicographic order.

    >>> rank_of((0, 1)), rank_of((1, 3))
    (0, 4)
    """
    return sum(comb(c, i) for i, c in enumerate(subset, start=1))


def _unrank(rank: int, size: int) -> Subset:
    """The combination of `size` columns at a colexicographic rank: largest member first."""
    members: list[int] = []
    for width in range(size, 0, -1):
        column = width - 1
        while comb(column + 1, width) <= rank:
            column += 1
        rank -= comb(column, width)
        members.append(column)
    return tuple(reversed(members))
