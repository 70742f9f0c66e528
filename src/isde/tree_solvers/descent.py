"""Prices that bring a bound down step by step, where a linear program has many sets for the simplex method.

Any prices prove a bound (`witness`), so that they need not be those of a solution. A step raises the prices of cuts
that the point passes and moves the point towards sets whose weight is not paid for (primal-dual hybrid gradient,
Chambolle and Pock, with a length of step for each row and column). It goes nearly twice as far as that, and is pulled
back to where the steps began, less and less (after Halpern): on a table of 50 columns that halved the steps. All sets
take part, and that a set is complete only if its subsets are: such cuts, thousands of them, cost next to nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from isde.arrays import FrozenArrays
from isde.engine.jit import loop, part
from isde.subsets import SubsetFamily
from isde.tree_solvers.cuts import AnyCut, Cut, Sets
from isde.tree_solvers.pricing import Facets

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Short = NDArray[np.uint32]

BEYOND = 0.9
"""How much further a step goes than that of the method."""

PRICE, OF_LARGER = 0.6, 0.25
"""What moves a price as much as a whole set moves the point, in weights of an edge that is worth having; and how much
of that for each column that cliques may have beyond four: the bound of 24 columns and cliques of five went astray with
0.6 (a gap of 21 % in a minute) and not with 0.15 (13 %), that of cliques of four is alike with 0.3 and 0.6."""

NEAR, ASLEEP = 0.02, 0.001
"""Of a set that is awake, what may be lacking of its weight, in the same weights, or else what the point has of it more
than. Others wait for the next run: on 50 columns, two of three sets."""

FORGOTTEN, CHEAP = 5, 0.0003
"""A cut that after so many runs of steps has no price, or less than this, in the same weights, is left out: steps that
go beyond bring prices near to 0, never there. On 50 columns that leaves a quarter of the cuts, and a tighter bound."""


@dataclass(frozen=True)
class Prices(FrozenArrays):
    """Those of a moment. Facets are named only when asked for: there are tens of thousands."""

    cuts: list[AnyCut]
    of_cuts: Floats
    facets: Facets
    places: Integers  # of each facet that has a price, its set
    left_out: Integers  # and its column
    of_facets: Floats

    def named(self) -> tuple[list[AnyCut], Floats]:
        """Cuts, those of facets among them, and prices."""
        which = zip(self.places.tolist(), self.left_out.tolist(), strict=True)
        facets: list[Cut] = [self.facets.cut(*one) for one in which]
        return [*self.cuts, *facets], np.concatenate([self.of_cuts, self.of_facets])


class Descent:
    """A point, and prices of cuts and of facets, for the sets that are open. Sets are counted from the first pair."""

    def __init__(self, subsets: SubsetFamily, facets: Facets, weights: Floats, open_: Mask) -> None:
        self._subsets, self._facets, self._all_weights = subsets, facets, weights[subsets.n_columns :]
        self._worth = _worth(weights[subsets.of_size(2)])
        self.scale = PRICE * OF_LARGER ** max(subsets.max_size - 4, 0) * self._worth
        self.cuts: list[AnyCut] = []
        self._prices, self._idle = np.empty(0), np.empty(0, dtype=np.int64)
        self._places = np.flatnonzero(open_)
        self._values = np.zeros(len(self._places))
        self._use_sets()
        self._facet_prices = np.zeros(len(self._larger))

    def _use_sets(self) -> None:
        """All that follows from which sets there are."""
        number = np.full(len(self._all_weights), -1, dtype=np.int64)
        number[self._places] = np.arange(len(self._places))
        facets = self._facets.places[self._places]
        self._larger, self._left_out = np.nonzero(facets >= 0)
        self._smaller = number[facets[self._larger, self._left_out]]
        self._weights = self._all_weights[self._places]
        self._sets = Sets(self._subsets, self._places + self._subsets.n_columns)
        self._matrix = self._rows(self.cuts)

    def _rows(self, cuts: Sequence[AnyCut]) -> csr_array:
        rows, columns, values = self._sets.entries(cuts)
        return csr_array((values.astype(np.float64), (rows, columns)), shape=(len(cuts), len(self._places)))

    @property
    def point(self) -> Floats:
        """Of every subset of the table, single columns among them."""
        point = np.zeros(len(self._subsets))
        point[self._places + self._subsets.n_columns] = self._values
        return point

    @property
    def priced(self) -> tuple[list[AnyCut], Floats]:
        """Cuts that have a price, those of facets among them, and the prices."""
        return self.prices.named()

    @property
    def prices(self) -> Prices:
        """Those that are not 0, now."""
        some, paid = np.flatnonzero(self._prices > 0), np.flatnonzero(self._facet_prices > 0)
        cuts, places = [self.cuts[number] for number in some.tolist()], self._places[self._larger[paid]]
        return Prices(cuts, self._prices[some], self._facets, places, self._left_out[paid], self._facet_prices[paid])

    def add(self, cuts: Sequence[AnyCut], prices: Floats) -> None:
        self.cuts = [*self.cuts, *cuts]
        self._matrix = vstack([self._matrix, self._rows(cuts)], format="csr")
        self._prices = np.concatenate([self._prices, np.maximum(prices, 0.0)])
        self._idle = np.concatenate([self._idle, np.zeros(len(cuts), dtype=np.int64)])

    def passed(self, cuts: Sequence[AnyCut], least: float) -> list[AnyCut]:
        """Those cuts that are new, and that the point passes by so much; facets are all there."""
        present = set(self.cuts)
        new = [cut for cut in dict.fromkeys(cuts) if cut not in present and not self._is_facet(cut)]
        amounts = self._rows(new) @ self._values - _limits(new)
        return [cut for cut, amount in zip(new, amounts.tolist(), strict=True) if amount >= least]

    def _is_facet(self, cut: AnyCut) -> bool:
        return isinstance(cut, Cut) and bool(cut.base) and len(cut.columns) == 2 == len(cut.held) + 1

    def forget(self) -> None:
        """Leave out cuts that have had next to no price for long."""
        self._idle = np.where(self._prices > CHEAP * self._worth, 0, self._idle + 1)
        kept = np.flatnonzero(self._idle < FORGOTTEN)
        self.cuts = [self.cuts[number] for number in kept.tolist()]
        self._matrix, self._prices, self._idle = self._matrix[kept], self._prices[kept], self._idle[kept]

    def keep(self, open_: Mask) -> None:
        """Leave out all sets that are not open."""
        kept = open_[self._places]
        self._facet_prices = self._facet_prices[kept[self._larger]]
        self._places, self._values = self._places[kept], self._values[kept]
        self._use_sets()

    def left(self) -> Floats:
        """What prices leave of the weights of the sets."""
        n = len(self._places)
        given = np.bincount(self._larger, self._facet_prices, n) - np.bincount(self._smaller, self._facet_prices, n)
        return np.asarray(self._weights - self._matrix.T @ self._prices - given)

    def bound(self) -> float:
        """What the prices prove, as far as floating point can tell, of sets of two columns and more."""
        return float(self._prices @ _limits(self.cuts) + np.maximum(self.left(), 0.0).sum())

    def run(self, steps: int) -> None:
        """Steps of the sets that are awake, and of all prices but those of facets of others."""
        awake = self._awake()
        self._values[~awake] = 0.0
        places, number = np.flatnonzero(awake), np.cumsum(awake) - 1
        facets = np.flatnonzero(awake[self._larger])
        larger, smaller = number[self._larger[facets]], number[self._smaller[facets]]
        values, facet_prices = self._values[places], self._facet_prices[facets]
        matrix = self._matrix[:, places]
        sizes = abs(matrix)
        by_set = np.asarray(sizes.sum(axis=0)).ravel()
        by_set += np.bincount(larger, minlength=len(by_set)) + np.bincount(smaller, minlength=len(by_set))
        forward = 1 / np.maximum(by_set, 1.0) / self.scale
        rise = self.scale / np.maximum(np.asarray(sizes.sum(axis=1)).ravel(), 1.0)
        first = values.copy(), self._prices.copy(), facet_prices.copy()
        asleep = np.flatnonzero(~awake[self._larger])  # what these facets add stays
        weights = self._weights + np.bincount(self._smaller[asleep], self._facet_prices[asleep], len(awake))
        of_sets = weights[places], values, forward
        of_cuts = *_entries(matrix), _limits(self.cuts), self._prices, rise
        of_facets = *_short(larger, smaller), facet_prices, 0.5 * self.scale
        _run(steps, *of_sets, *of_cuts, *of_facets, *first, *np.empty((2, len(by_set))))
        # Steps beyond those of the method may leave the range by a little.
        self._values[places] = np.clip(values, 0.0, 1.0)
        np.maximum(self._prices, 0.0, out=self._prices)
        self._facet_prices[facets] = np.maximum(facet_prices, 0.0)

    def _awake(self) -> Mask:
        """Sets that the point has some of or is near to have, with their subsets."""
        awake = (self._values > ASLEEP) | (self.left() > -NEAR * self._worth)
        for _ in range(self._subsets.max_size - 2):
            awake[self._smaller[awake[self._larger]]] = True
        return awake

    def settle(self) -> None:
        """Move prices of facets, one after another, to where the bound is lowest: steps leave some for later."""
        _settle(self._larger, self._smaller, self._facet_prices, self.left())


def _entries(matrix: csr_array) -> tuple[Integers, Short, NDArray[np.float32]]:
    """The coefficients of cuts, small whole numbers, in as few bytes as will do."""
    return matrix.indptr.astype(np.int64), *_short(matrix.indices), matrix.data.astype(np.float32)


def _short(*numbers: NDArray[np.integer[Any]]) -> tuple[Short, ...]:
    """Places that a loop reads again and again: half as many bytes, and none below 0, which numba would look for."""
    return tuple(one.astype(np.uint32) for one in numbers)


def _limits(cuts: Sequence[AnyCut]) -> Floats:
    return np.array([cut.limit for cut in cuts], dtype=np.float64)


def _worth(pairs: Floats) -> float:
    """The weight of an edge that is worth having: a mean over those that gain, or any scale where none does."""
    gaining = pairs[pairs > 0.0]
    if gaining.size:
        return float(np.sort(gaining)[-max(int(np.sqrt(2 * len(pairs))), 1) :].mean())
    return float(np.abs(pairs[pairs > -np.inf]).max(initial=0.0)) or 1.0


@loop
def _settle(
    larger: Integers,  # in: the set of each facet
    smaller: Integers,  # in: its subset
    facet_prices: Floats,  # in and out
    left: Floats,  # in and out: what prices leave of the weights
) -> None:
    # Larger sets first, since their price may be passed on.
    for facet in range(len(larger) - 1, -1, -1):
        a, b = larger[facet], smaller[facet]
        part = 0.0
        if left[a] > 0.0 > left[b]:
            part = min(left[a], -left[b])
        elif left[a] < 0.0 < left[b]:
            part = -min(facet_prices[facet], -left[a], left[b])
        facet_prices[facet] += part
        left[a] -= part
        left[b] += part


@part
def _total(first: int, end: int, columns: Short, coefficients: NDArray[np.float32], values: Floats) -> Any:
    """Of a cut; four sums side by side do not wait for each other."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    place = first
    while place + 4 <= end:
        a += coefficients[place] * values[columns[place]]
        b += coefficients[place + 1] * values[columns[place + 1]]
        c += coefficients[place + 2] * values[columns[place + 2]]
        d += coefficients[place + 3] * values[columns[place + 3]]
        place += 4
    while place < end:
        a += coefficients[place] * values[columns[place]]
        place += 1
    return (a + b) + (c + d)


@part
def _pay(
    price: float,
    first: int,  # of the coefficients of a cut
    end: int,
    columns: Short,
    coefficients: NDArray[np.float32],
    left: Floats,  # in and out
) -> None:
    if price != 0.0:
        for place in range(first, end):
            left[columns[place]] -= price * coefficients[place]


@loop
def _run(
    steps: int,  # in
    weights: Floats,  # in: of the sets
    values: Floats,  # in and out: the point
    forward: Floats,  # in: how far each of its values moves
    starts: Integers,  # in: where the coefficients of each cut begin
    columns: Short,  # in: their sets
    coefficients: NDArray[np.float32],  # in
    limits: Floats,  # in
    prices: Floats,  # in and out: of the cuts
    rise: Floats,  # in: how far each of them moves
    larger: Short,  # in: the set of each facet
    smaller: Short,  # in: its subset
    facet_prices: Floats,  # in and out
    facet_rise: float,  # in
    first_values: Floats,  # in: the point at the start
    first_prices: Floats,  # in
    first_facet_prices: Floats,  # in
    left: Floats,  # room: what prices leave of the weights
    ahead: Floats,  # room: the point, as much further as it has moved
) -> None:
    for s in range(len(weights)):
        left[s] = weights[s]
    for cut in range(len(prices)):
        _pay(prices[cut], starts[cut], starts[cut + 1], columns, coefficients, left)
    for facet in range(len(larger)):
        left[larger[facet]] -= facet_prices[facet]
        left[smaller[facet]] += facet_prices[facet]
    for step in range(steps):
        back = 1.0 / (step + 2.0)  # to the start
        for s in range(len(values)):
            new = min(max(values[s] + forward[s] * left[s], 0.0), 1.0)
            ahead[s] = 2 * new - values[s]
            values[s] = (1 - back) * (new + BEYOND * (new - values[s])) + back * first_values[s]
            left[s] = weights[s]
        # What a price leaves for the next step is taken off at once, while its cut is at hand.
        for cut in range(len(prices)):
            total = _total(starts[cut], starts[cut + 1], columns, coefficients, ahead) - limits[cut]
            new = max(0.0, prices[cut] + rise[cut] * total)
            prices[cut] = (1 - back) * (new + BEYOND * (new - prices[cut])) + back * first_prices[cut]
            _pay(prices[cut], starts[cut], starts[cut + 1], columns, coefficients, left)
        for facet in range(len(larger)):
            a, b = larger[facet], smaller[facet]
            new = max(0.0, facet_prices[facet] + facet_rise * (ahead[a] - ahead[b]))
            new += BEYOND * (new - facet_prices[facet])
            facet_prices[facet] = (1 - back) * new + back * first_facet_prices[facet]
            left[a] -= facet_prices[facet]
            left[b] += facet_prices[facet]
