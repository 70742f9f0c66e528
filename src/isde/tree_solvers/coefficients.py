"""Sets that a cut may have a coefficient for: most have none, and are passed over by compiled loops.

A cut speaks of sets within its columns (`within`), or of sets each of whose columns is a member or part of one
(`held`). What it says of these is for `cuts`, `clutters` and `classes` to compute.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

NOWHERE = np.empty(0, dtype=np.int64)
"""Room for no place: sets are counted before they are listed."""


def within(inside: Mask, needed: Mask, members: Integers) -> tuple[Integers, Integers]:
    """Cuts and sets, by cut: all columns of the set are inside the cut, and it has all that the cut needs.

    `inside` and `needed` have a row for each cut and a column for each column; `members` are padded with -1.
    """
    counted = needed.sum(axis=1)
    n = _within(inside, needed, counted, members, NOWHERE, NOWHERE)
    rows, places = np.empty((2, n), dtype=np.int64)
    _within(inside, needed, counted, members, rows, places)
    return rows, places


def held(columns: Mask, pairs: Mask, members: Integers) -> tuple[Integers, Integers, Integers]:
    """Clutters and sets, by clutter, and the members that the set holds, as bits: columns first, then pairs.

    A column of a set that is no member, nor part of a pair there, makes the Moebius weight 0: with or without it, the
    rest holds a member or not. Such sets are left out.
    """
    n = _held(columns, pairs, members, NOWHERE, NOWHERE, NOWHERE)
    rows, places, masks = np.empty((3, n), dtype=np.int64)
    _held(columns, pairs, members, rows, places, masks)
    return rows, places, masks


@loop
def _within(
    inside: Mask,  # in
    needed: Mask,  # in
    counted: Integers,  # in: how many columns each cut needs
    members: Integers,  # in
    rows: Integers,  # out, as far as there is room
    places: Integers,  # out
) -> int:
    """How many there are."""
    found = 0
    for cut in range(len(inside)):
        for s in range(len(members)):
            missing = counted[cut]
            for i in range(members.shape[1]):
                c = members[s, i]
                if c < 0:
                    break
                if not inside[cut, c]:
                    missing = -1
                    break
                if needed[cut, c]:
                    missing -= 1
            if missing == 0:
                if found < len(rows):
                    rows[found] = cut
                    places[found] = s
                found += 1
    return found


@loop
def _held(
    columns: Mask,  # in: a row for each clutter
    pairs: Mask,  # in: a matrix for each clutter, of pairs in both orders
    members: Integers,  # in
    rows: Integers,  # out, as far as there is room
    places: Integers,  # out
    masks: Integers,  # out
) -> int:
    """How many there are."""
    found, width = 0, members.shape[1]
    for clutter in range(len(columns)):
        for s in range(len(members)):
            size, mask, parts = 0, 0, 0
            while size < width and members[s, size] >= 0:
                if columns[clutter, members[s, size]]:
                    mask |= 1 << size
                size += 1
            parts, bit = mask, size
            for i in range(size):
                for j in range(i + 1, size):
                    if pairs[clutter, members[s, i], members[s, j]]:
                        mask |= 1 << bit
                        parts |= (1 << i) | (1 << j)
                    bit += 1
            if parts == (1 << size) - 1:
                if found < len(rows):
                    rows[found] = clutter
                    places[found] = s
                    masks[found] = mask
                found += 1
    return found
