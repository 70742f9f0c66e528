"""Sets whose weight is paid for by their subsets.

A set is complete only if its subsets are (a cut for each of them). Where prices leave something of the weight of a set,
and take more than its weight from a subset one column smaller, the price of such a cut moves the one to the other. The
bound becomes lower by it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop
from isde.subsets import SubsetFamily
from isde.tree_solvers.cuts import Cut
from isde.tree_solvers.moebius import positions_within

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Facets:
    """The subsets of each set that are one column smaller. Sets are counted from the first pair."""

    def __init__(self, subsets: SubsetFamily) -> None:
        d = subsets.n_columns
        self._subsets, self._members = subsets, subsets.padded_members(np.arange(d, len(subsets)))
        self.places = np.full((len(subsets) - d, subsets.max_size), -1, dtype=np.int64)
        for size in range(3, subsets.max_size + 1):
            here = subsets.of_size(size)
            for left_out in range(size):
                kept = tuple(place for place in range(size) if place != left_out)
                self.places[here.start - d : here.stop - d, left_out] = positions_within(subsets, size, kept) - d

    def pay(self, left: Integers, outside: Mask) -> tuple[list[Cut], Integers, Integers]:
        """Cuts and prices that pay for some sets, and what is lacking for each of the others.

        `left` is what other prices leave of the weights; it becomes what all prices leave.
        """
        # Larger sets first, since their price may be passed on, and of one size those that ask for least.
        asking = np.flatnonzero(outside & (left > 0) & (self.places[:, 0] >= 0))
        sizes = self._subsets.sizes[asking + self._subsets.n_columns]
        asking = asking[np.lexsort((left[asking], -sizes))]
        lacking, paid = np.zeros(len(left), dtype=np.int64), np.zeros(self.places.shape, dtype=np.int64)
        _pay(asking, self.places, left, lacking, paid)
        which, left_out = np.nonzero(paid)
        cuts = [self.cut(*one) for one in zip(which.tolist(), left_out.tolist(), strict=True)]
        return cuts, paid[which, left_out], lacking

    def cut(self, place: int, left_out: int) -> Cut:
        """A set is complete only if it is without one of its columns."""
        members = [column for column in self._members[place].tolist() if column >= 0]
        held = members[left_out]
        *base, other = (column for column in members if column != held)
        return Cut(tuple(base), (min(other, held), max(other, held)), (held,))


@loop
def _pay(
    asking: NDArray[np.intp],  # in: sets that ask, in this order
    facets: Integers,  # in
    left: Integers,  # in, out
    lacking: Integers,  # out: what a set asks for that its subsets cannot pay; then they pay nothing
    paid: Integers,  # out: by each of its subsets
) -> None:
    for place in asking:
        asked = left[place]
        for i in range(facets.shape[1]):
            if facets[place, i] >= 0 and asked > 0 and left[facets[place, i]] < 0:
                part = min(asked, -left[facets[place, i]])
                paid[place, i] = part
                asked -= part
        lacking[place] = asked
        for i in range(facets.shape[1]):
            if asked > 0:
                paid[place, i] = 0
            elif paid[place, i] > 0:
                left[facets[place, i]] += paid[place, i]
                left[place] -= paid[place, i]
