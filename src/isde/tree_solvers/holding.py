"""Which sets hold a column: lists, one after another, that loops walk along."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def holders(members: Integers, n: int) -> tuple[Integers, Integers, Integers]:
    """Where the list of each of n columns begins, the sets that hold it, and its place there.

    Members are padded with -1. Whatever sets hold may stand for columns.

    >>> [part.tolist() for part in holders(np.array([[0, 2], [2, -1]]), 3)]
    [[0, 1, 1, 3], [0, 0, 1], [0, 1, 0]]
    """
    sets, places = np.nonzero(members >= 0)
    columns = members[sets, places]
    order = np.argsort(columns, kind="stable")
    return np.searchsorted(columns[order], np.arange(n + 1)), sets[order], places[order]
