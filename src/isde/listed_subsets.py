"""Subsets by list: where there are too many to score, those that are, in the order in which all would stand.

Up to some size every subset is here, of larger ones those that were listed. A position is no longer a closed form, but
a search among sorted ranks: everything else holds as for a family of all subsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import blake2b
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.subsets import Subset, SubsetFamily, binomials, rank_of

EVERY_UP_TO = 3
"""Columns of the subsets that are all scored, wherever larger ones are listed: pairs alone would miss XOR triples."""

LARGEST_RANK = 1 << 62


class ListedSubsets(SubsetFamily):
    """Every subset of at most `complete` columns, and of each larger size those with the ranks listed.

    `complete=0` is a list and nothing else.

    >>> family = ListedSubsets.of(4, [(0, 1, 3)], complete=2)
    >>> len(family), family[10], family.index((0, 1, 3)), (0, 1, 2) in family, family.n_missing
    (11, (0, 1, 3), 10, False, 3)
    """

    def __init__(self, n_columns: int, complete: int, listed: Sequence[NDArray[np.int64]]) -> None:
        super().__init__(n_columns, complete + len(listed))
        if self.max_size != complete + len(listed) or complete < 0:
            raise ValueError(f"There are no subsets of {complete + len(listed)} of {n_columns} columns to list.")
        self._complete = complete
        self._ranks = tuple(np.array(ranks, dtype=np.int64) for ranks in listed)
        for size, ranks in enumerate(self._ranks, start=complete + 1):
            most = comb(self.n_columns, size)
            if ranks.ndim != 1 or most >= LARGEST_RANK or (np.diff(ranks) <= 0).any():
                raise ValueError(f"The ranks of the subsets of {size} columns must ascend, and fit into 64 bits.")
            if ranks.size and not (ranks[0] >= 0 and ranks[-1] < most):
                raise ValueError(f"There is no subset of {size} columns with rank {ranks[-1]}.")
            ranks.flags.writeable = False

    @classmethod
    def of(cls, n_columns: int, subsets: Iterable[Subset], complete: int = 0) -> ListedSubsets:
        """All of at most `complete` columns, and these."""
        larger = [subset for subset in subsets if len(subset) > complete]
        sizes = range(complete + 1, max(map(len, larger), default=complete) + 1)
        ranks = [{rank_of(subset) for subset in larger if len(subset) == size} for size in sizes]
        return cls(n_columns, complete, [np.array(sorted(own), dtype=np.int64) for own in ranks])

    @property
    def complete(self) -> int:
        return self._complete

    @cached_property
    def key(self) -> str:
        """Follows from the subsets alone."""
        digest = blake2b(repr((self.n_columns, self.complete, self.max_size)).encode(), digest_size=8)
        for ranks in self._ranks:
            digest.update(np.array(len(ranks), dtype="<i8").tobytes() + ranks.astype("<i8").tobytes())
        return digest.hexdigest()

    def ranks(self, size: int) -> NDArray[np.int64]:
        """The ranks that are listed of a size beyond `complete`, ascending."""
        return self._ranks[size - self.complete - 1]

    def up_to(self, max_size: int) -> SubsetFamily:
        if max_size <= self.complete:
            return SubsetFamily(self.n_columns, max_size)
        return ListedSubsets(self.n_columns, self.complete, self._ranks[: max_size - self.complete])

    def joined(self, other: ListedSubsets) -> ListedSubsets:
        """These and those of another list."""
        sizes = range(self.complete + 1, max(self.max_size, other.max_size) + 1)
        ranks = [
            np.unique(np.concatenate([own.ranks(size) for own in (self, other) if own.complete < size <= own.max_size]))
            for size in sizes
        ]
        return ListedSubsets(self.n_columns, self.complete, ranks)

    def members(self, size: int) -> NDArray[np.int16]:
        return super().members(size) if size <= self.complete else self._members[size]

    @cached_property
    def _members(self) -> dict[int, NDArray[np.int16]]:
        sizes = range(self.complete + 1, self.max_size + 1)
        return {size: combinations_at(self.ranks(size), self.n_columns, size) for size in sizes}

    def places(self, size: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        if size <= self.complete:
            return ranks
        own = self.ranks(size)
        places = np.minimum(np.searchsorted(own, ranks), max(len(own) - 1, 0))
        return np.where(own[places] == ranks, places, -1) if own.size else np.full(np.shape(ranks), -1)

    def index(self, value: Iterable[int], start: int = 0, stop: int | None = None) -> int:
        subset = tuple(value)
        named = any(isinstance(column, str) for column in subset)
        if len(subset) <= self.complete or named or not self._is_sorted(subset):
            return super().index(subset)
        place = int(self.places(len(subset), np.array([rank_of(subset)]))[0])
        if place < 0:
            raise ValueError(f"{subset} was not scored: it is none of the {len(self):,} subsets listed.")
        return self.offsets[len(subset)] + place

    def __contains__(self, value: object) -> bool:
        if not self._is_sorted(value) or not isinstance(value, tuple):
            return False
        small = len(value) <= self.complete
        return small or bool(self.places(len(value), np.array([rank_of(value)]))[0] >= 0)

    def _count(self, size: int) -> int:
        return super()._count(size) if size <= self.complete else len(self.ranks(size))

    def _at(self, size: int, place: int) -> Subset:
        return super()._at(size, place if size <= self.complete else int(self.ranks(size)[place]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ListedSubsets):
            return NotImplemented
        return self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[type[SubsetFamily], tuple[Any, ...]]:
        return ListedSubsets, (self.n_columns, self.complete, self._ranks)

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(ranks):,} of {s}" for s, ranks in enumerate(self._ranks, start=self.complete + 1))
        return f"ListedSubsets(n_columns={self.n_columns}, complete={self.complete}, {counts} columns)"


def combinations_at(ranks: NDArray[np.int64], n_columns: int, size: int) -> NDArray[np.int16]:
    """The subsets of one size with these colexicographic ranks, one per row: largest member first.

    >>> combinations_at(np.array([0, 4]), 4, 2).tolist()
    [[0, 1], [1, 3]]
    """
    choose, left = binomials(n_columns, size), np.array(ranks, dtype=np.int64)
    members = np.empty((len(left), size), dtype=np.int16)
    for width in range(size, 0, -1):
        members[:, width - 1] = np.searchsorted(choose[:, width], left, side="right") - 1
        left -= choose[members[:, width - 1], width]
    return members


def ranks_of(members: NDArray[np.int16], n_columns: int) -> NDArray[np.int64]:
    """The colexicographic rank of each row of sorted columns among all subsets of as many.

    >>> ranks_of(np.array([[0, 1], [1, 3]]), 4).tolist()
    [0, 4]
    """
    size = members.shape[1]
    ranks: NDArray[np.int64] = binomials(n_columns, size)[members, np.arange(1, size + 1)].sum(axis=1)
    return ranks
