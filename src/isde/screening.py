"""Which larger subsets are worth a score, where all of them are too many: candidates grown from pairs and triples.

A pair or a triple is a link where it gains more than half of what chance is charged for, over its best division: half,
since a false link costs some scores and a missing one a block, and chance then links about every other column. (Where
nothing is charged, a link gains more than its best division.) Links that overlap connect their columns, and a candidate
is a set of columns that links inside it connect: a chain of pairs, two XOR triples with a column in common, a triple
that a pair joins. Every part of a candidate is scored too, so that it is compared with all its divisions.

Of many columns even triples are too many. A first look (`first_look`) says what each of them promises: what its columns
seem to say that no two do, and what its pairs gain beside the best of them. The best of each column are scored.

What this cannot find is a block of four or more columns without a link: one whose pairs and triples are all about
independent, such as the parity of four columns.

Where nearly everything is linked the candidates are too many again. Of the links and of the sets that grow, the best of
each column stay, and of candidates those that promise most: what two overlapping parts of it gain together, if what
they share is all that connects them, over its best division.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays, Mask, Vector
from isde.listed_subsets import EVERY_UP_TO, ListedSubsets, combinations_at, ranks_of
from isde.scores import SubsetScores
from isde.solvers.dominance import best_divisions
from isde.subsets import SubsetFamily, colex_combinations

EXHAUSTIVE, SCREENED = "exhaustive", "screened"
"""How subsets are searched: all of them, or candidates."""

CHARGED = 0.5
"""The share of what is charged that a link has to gain."""

GROWING = 30
"""Links, and sets that grow, for each column."""

SCORED = 1000
"""Candidates of a size that are scored for each column."""

LOOKED = 100
"""Triples of a column that are scored after a first look, where it has more than `SCORED`: three times as many as may
grow. What that misses: experiments/screened.py look."""

GROWN_AT_ONCE = 1 << 12
"""Sets whose unions with links are made together."""

Rows = NDArray[np.int16]
"""Subsets of one size, sorted columns, one per row."""


@dataclass(frozen=True)
class Grown:
    """Subsets that are to be scored."""

    subsets: ListedSubsets  # candidates, and parts of them that were not scored before
    left_out: int  # candidates that are not among them, since others promise more


def every_up_to(n_columns: int, max_size: int) -> int:
    """Up to how many columns every subset is scored before candidates grow.

    >>> every_up_to(46, 5), every_up_to(47, 5), every_up_to(47, 3)
    (3, 2, 3)
    """
    few = max_size <= EVERY_UP_TO or comb(n_columns - 1, EVERY_UP_TO - 1) <= SCORED
    return min(max_size, EVERY_UP_TO if few else EVERY_UP_TO - 1)


def screen(
    table: SubsetScores,
    max_size: int,
    score: Callable[[ListedSubsets, ListedSubsets], SubsetScores],
    look: Callable[[], Vector],
) -> SubsetScores:
    """A table of candidates of up to `max_size` columns, from one of all pairs, and all triples or none.

    `score` is given what is new, and all that the table is to hold, and gives that table; `look` gives what each triple
    seems to gain beyond its pairs.
    """
    growth, left_out, complete = Growth(table.n_columns), 0, table.subsets.complete
    whole = ListedSubsets(table.n_columns, complete, [])
    for size in range(complete + 1, max_size + 1):
        grown = growth.grow(table, size) if size > EVERY_UP_TO else looked_at(table, look())
        left_out += grown.left_out
        whole = whole.joined(grown.subsets)
        more = score(grown.subsets, whole) if len(grown.subsets) else table.only(whole)
        table = replace(more, left_out=left_out)
    return table


def looked_at(scores: SubsetScores, looks: Vector) -> Grown:
    """The triples that promise most of each column, from scores of all pairs and a look at each triple."""
    d = scores.n_columns
    pairs, others = scores.subsets.members(2).astype(np.intp), colex_combinations(d - 1, 2)
    gains = np.zeros((d, d))
    gains[pairs[:, 0], pairs[:, 1]] = np.maximum(np.nan_to_num(scores.gains[scores.subsets.of_size(2)]), 0.0)
    gains += gains.T
    chosen = np.zeros(len(looks), dtype=bool)
    for column in range(d):
        x, y = (others + (others >= column)).T.astype(np.intp)
        ranks = ranks_of(np.sort(np.stack([x, y, np.full(len(x), column)], axis=1), axis=1).astype(np.int16), d)
        of_pairs = np.stack([gains[x, y], gains[x, column], gains[y, column]])
        promised = looks[ranks] + of_pairs.sum(axis=0) - of_pairs.max(axis=0)
        chosen[ranks[np.argsort(-promised, kind="stable")[:LOOKED]]] = True
    listed = ListedSubsets(d, 0, [*_nothing(EVERY_UP_TO - 1), np.flatnonzero(chosen)])
    return Grown(listed, 0)  # the others are counted as all that is not scored


class Growth:
    """Candidates of one size after the other, each from the scores of all that were before."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns
        self._connected: dict[int, Rows] = {}
        self._links: list[_Extensions] = []

    def grow(self, scores: SubsetScores, size: int) -> Grown:
        """The candidates of a size, from a table of all that is scored of smaller ones."""
        margins = _margins(scores)
        if not self._links:
            self._link(scores, margins)
        else:
            own = self._connected[size - 1]
            at = scores.subsets.find(own)
            self._connected[size - 1] = own[best_of_columns(own, margins[at], self.n_columns, GROWING)]
        every = self._unions(size)
        kept = every
        if (np.bincount(every.ravel(), minlength=1) > SCORED).any():
            kept = every[best_of_columns(every, promises(scores, every), self.n_columns, SCORED)]
        self._connected[size] = kept
        return Grown(_with_parts(scores.subsets, kept), len(every) - len(kept))

    def _link(self, scores: SubsetScores, margins: Vector) -> None:
        """Links and what they connect, of at most three columns."""
        linked = []
        for size in range(2, EVERY_UP_TO + 1):
            here = scores.subsets.of_size(size)
            places = np.flatnonzero(margins[here] > 0)
            own = scores.subsets.members(size)[places]
            linked.append(own[best_of_columns(own, margins[here][places], self.n_columns, GROWING)])
        pairs, triples = linked
        self._links = [
            _Extensions.of(pairs, 1, self.n_columns),
            _Extensions.of(triples, 2, self.n_columns),
            _Extensions.of(triples, 1, self.n_columns),
        ]
        self._connected[2] = pairs
        chains = _distinct([triples, *self._links[0].unions(pairs)], 3, self.n_columns)
        at = scores.subsets.find(chains)
        chains, at = chains[at >= 0], at[at >= 0]  # those that promised most
        self._connected[3] = chains[best_of_columns(chains, margins[at], self.n_columns, GROWING)]

    def _unions(self, size: int) -> Rows:
        """All unions of so many columns of a connected set and a link that overlaps it."""
        found = (
            union
            for links in self._links
            if size - links.n_added in self._connected
            for union in links.unions(self._connected[size - links.n_added])
        )
        return _distinct(found, size, self.n_columns)


@dataclass(frozen=True)
class _Extensions(FrozenArrays):
    """Links by a part of them: which columns each adds to a set that holds the part."""

    keys: NDArray[np.int64]  # rank of the part, ascending
    n_shared: int  # columns of a part
    added: Rows  # the other columns of the link
    n_columns: int

    @property
    def n_added(self) -> int:
        return self.added.shape[1]

    @classmethod
    def of(cls, links: Rows, n_shared: int, n_columns: int) -> _Extensions:
        """Each link by each of its parts of `n_shared` columns."""
        size = links.shape[1]
        keys, added = [], []
        for part in combinations(range(size), n_shared):
            keys.append(ranks_of(links[:, part], n_columns))
            added.append(links[:, [i for i in range(size) if i not in part]])
        order = np.argsort(np.concatenate(keys), kind="stable")
        return cls(np.concatenate(keys)[order], n_shared, np.concatenate(added)[order], n_columns)

    def unions(self, sets: Rows) -> Iterator[Rows]:
        """Every set with what any link adds that shares exactly such a part with it."""
        for start in range(0, len(sets), GROWN_AT_ONCE):
            own = sets[start : start + GROWN_AT_ONCE]
            for part in combinations(range(own.shape[1]), self.n_shared):
                key = ranks_of(own[:, part], self.n_columns)
                first, end = np.searchsorted(self.keys, key), np.searchsorted(self.keys, key, side="right")
                parent = np.repeat(np.arange(len(own)), end - first)
                within = np.arange(len(parent)) - np.repeat(np.cumsum(end - first) - (end - first), end - first)
                union = np.sort(np.hstack([own[parent], self.added[first[parent] + within]]), axis=1)
                yield union[(np.diff(union, axis=1) > 0).all(axis=1)]


def _distinct(parts: Iterator[Rows] | list[Rows], size: int, n_columns: int) -> Rows:
    """All rows of some matrices, each once, in colexicographic order."""
    ranks = np.empty(0, dtype=np.int64)
    for part in parts:
        ranks = np.union1d(ranks, ranks_of(part, n_columns))
    return combinations_at(ranks, n_columns, size)


def _margins(scores: SubsetScores) -> Vector:
    """What each subset scores more than its best division, a share of the charges taken off; nothing for columns."""
    gains = scores.gains - CHARGED * scores.charges
    gains = np.where(np.isnan(gains), -np.inf, gains)
    with np.errstate(invalid="ignore"):
        margins = gains - best_divisions(scores.subsets, gains)
    return np.where(np.isnan(margins) | (scores.subsets.sizes == 1), -np.inf, margins)


def best_of_columns(members: Rows, values: Vector, n_columns: int, most: int) -> Mask:
    """Whether each subset is among the `most` of largest value of any of its columns.

    >>> best_of_columns(np.array([[0, 1], [0, 2], [1, 2]]), np.array([3.0, 2.0, 1.0]), 3, most=1).tolist()
    [True, True, False]
    """
    order = np.argsort(-values, kind="stable")
    columns = members[order].ravel()
    by_column = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[by_column], np.arange(n_columns))
    before = np.empty(len(columns), dtype=np.int64)  # how many subsets of a larger value hold the column
    before[by_column] = np.arange(len(columns)) - starts[columns[by_column]]
    kept = np.zeros(len(members), dtype=bool)
    kept[order] = (before.reshape(members.shape) < most).any(axis=1)
    return kept


def promises(scores: SubsetScores, candidates: Rows) -> Vector:
    """What each candidate promises to gain over its best division, from scores of its parts.

    A part and a triple that shares one or two columns with it, and holds the others: gain of the one, and of the other,
    minus the gain of what they share, which is what the whole gains if nothing else connects them.
    """
    size, subsets = candidates.shape[1], scores.subsets
    gains = np.append(np.nan_to_num(scores.gains, nan=-np.inf), -np.inf)  # the last one is for what is not here, -1

    @cache
    def gain(columns: tuple[int, ...]) -> Vector:
        return gains[subsets.find(candidates[:, columns])]

    best = np.full(len(candidates), -np.inf)
    for n_shared in (2, 1):
        for triple in combinations(range(size), 3):
            for shared in combinations(triple, n_shared):
                rest = tuple(i for i in range(size) if i not in triple or i in shared)
                with np.errstate(invalid="ignore"):
                    whole = gain(rest) + gain(triple) - gain(shared)
                best = np.fmax(best, whole)
    ranks = ranks_of(candidates, scores.n_columns)
    wider = subsets if isinstance(subsets, ListedSubsets) else ListedSubsets(scores.n_columns, subsets.max_size, [])
    order = np.argsort(ranks)
    family = wider.joined(ListedSubsets(scores.n_columns, 0, [*_nothing(size - 1), ranks[order]]))
    known = np.full(len(family), -np.inf)
    known[: len(subsets)] = gains[:-1]
    divisions = np.empty(len(candidates))
    divisions[order] = best_divisions(family, known)[family.of_size(size)]
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(best - divisions, nan=-np.inf)


def _with_parts(scored: SubsetFamily, candidates: Rows) -> ListedSubsets:
    """Candidates, and those of their parts that were not scored."""
    size, n_columns = candidates.shape[1], scored.n_columns
    listed = [*_nothing(scored.complete)]
    for smaller in range(scored.complete + 1, size):
        parts = [candidates[:, columns] for columns in combinations(range(size), smaller)]
        every = _distinct(parts, smaller, n_columns)
        listed.append(ranks_of(every[scored.find(every) < 0], n_columns))
    return ListedSubsets(n_columns, 0, [*listed, ranks_of(candidates, n_columns)])


def _nothing(n: int) -> list[NDArray[np.int64]]:
    return [np.empty(0, dtype=np.int64) for _ in range(n)]


def check_search(search: str, penalty: str | None) -> None:
    """Raise for a search that does not exist, or that does not go with a penalty."""
    if search not in (EXHAUSTIVE, SCREENED):
        raise ValueError(f"search={search!r} is unknown: use {EXHAUSTIVE!r} or {SCREENED!r}.")
    if search == SCREENED and penalty is not None:
        raise ValueError(
            f"search='screened' grows candidates from scores of rows left out, and penalty={penalty!r} leaves no row "
            "out: give one of them."
        )


def in_words_of_search(scores: SubsetScores) -> str:
    """How much of all subsets a table holds, in a sentence."""
    subsets = scores.subsets
    larger = len(scores) - subsets.offsets[min(EVERY_UP_TO, subsets.max_size) + 1]
    said = f"all subsets of up to {subsets.complete} columns"
    if subsets.complete < EVERY_UP_TO:
        triples = subsets.of_size(EVERY_UP_TO)
        said += f", {triples.stop - triples.start:,} of {comb(scores.n_columns, 3):,} triples after a first look,"
    said += (
        f" and {larger:,} larger candidates were scored, "
        f"{subsets.n_missing:,} others of up to {scores.max_block_size} columns were not"
    )
    if scores.left_out:
        said += f", {scores.left_out:,} of them candidates that promised less than {SCORED:,} others of each column"
    return said
