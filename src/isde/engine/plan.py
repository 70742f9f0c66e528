"""How all subsets become sums of products of two rows: each subset exactly once, in tiles that fit the cache.

A row is the product of the kernels of some columns, over the fitting rows. The sum for S = A u B is the inner product
of row A with row B, so a block of lefts x rights gives all their unions by matrix-like work. Two ways to cover:

- halves: lefts are subsets of the first half of the columns, rights of the second. Best where k is near d.
- pivot: S belongs to its middle column r, with floor((|S| - 1) / 2) members below it and the rest above. Rows stay
  short products, and r joins the side with fewer rows.

The plan follows from d and k alone, never from the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, groupby
from math import ceil

import numpy as np
from numpy.typing import NDArray

from isde.engine.kernels import LEFT, RIGHT
from isde.subsets import Subset, SubsetFamily, binomials

MOST_ROWS = 128
"""Rows of one side of a piece: two sides of chunks of some hundred float32 stay in a 512 kB cache."""

TILE_SLOTS = 1 << 14
TILE_ROWS = 384


@dataclass(frozen=True)
class Piece:
    """All unions of a left and a right set: lefts x rights, each union one subset of the family."""

    lefts: tuple[Subset, ...]
    rights: tuple[Subset, ...]

    @property
    def n_blocks(self) -> int:
        return ceil(len(self.lefts) / LEFT) * ceil(len(self.rights) / RIGHT)


@dataclass(frozen=True)
class Tile:
    """A unit of work: rows, the register blocks that multiply them, and which subset each sum belongs to."""

    groups: NDArray[np.int64]  # columns of each squared distance, padded with -1
    parent: NDArray[np.int64]  # row = row of the parent times the kernel of the group
    group: NDArray[np.int64]
    left: NDArray[np.int64]  # rows of each register block
    right: NDArray[np.int64]
    members: NDArray[np.int16]  # columns of the subset of each slot, padded with -1, (B * 8, k)
    position: NDArray[np.int64]  # its position in the family; -1 for padding

    @property
    def n_subsets(self) -> int:
        return int((self.position >= 0).sum())


def plan_pieces(family: SubsetFamily) -> list[list[Piece]]:
    """The tiles, each as a list of pieces; the cheaper of the two ways to cover the family."""
    ways = [list(_pivot_pieces(family))]
    if family.n_columns <= 2 * 12:  # 2^12 rows a half
        ways.append(list(_halves_pieces(family)))
    pieces = min(ways, key=_cost)
    tiles: list[list[Piece]] = []
    rows: set[Subset] = set()
    slots = 0
    for piece in pieces:
        rows.update(piece.lefts, piece.rights)
        slots += piece.n_blocks * LEFT * RIGHT
        if not tiles or slots > TILE_SLOTS or len(rows) > TILE_ROWS:
            tiles.append([])
            rows, slots = {*piece.lefts, *piece.rights}, piece.n_blocks * LEFT * RIGHT
        tiles[-1].append(piece)
    return tiles


def build_tile(family: SubsetFamily, pieces: list[Piece]) -> Tile:
    """Rows and register blocks of a tile; rows that several pieces need are made once."""
    parent: list[int] = []
    group: list[int] = []
    row_of: dict[Subset, int] = {}

    def row(subset: Subset) -> int:
        if subset not in row_of:
            above = row(subset[:-1]) if len(subset) > 1 else -1
            parent.append(above)
            group.append(subset[-1] if subset else -1)
            row_of[subset] = len(parent) - 1
        return row_of[subset]

    left, right, members = [], [], []
    for piece in pieces:
        for lefts in _padded(piece.lefts, LEFT):
            for rights in _padded(piece.rights, RIGHT):
                left.append([row(s or ()) for s in lefts])
                right.append([row(s or ()) for s in rights])
                members += [() if a is None or b is None else a + b for a in lefts for b in rights]
    padded = np.full((len(members), family.max_size), -1, dtype=np.int16)
    for slot, subset in enumerate(members):
        padded[slot, : len(subset)] = sorted(subset)
    columns = np.arange(family.n_columns, dtype=np.int64)[:, None]
    return Tile(
        columns,
        np.array(parent, dtype=np.int64),
        np.array(group, dtype=np.int64),
        np.array(left, dtype=np.int64),
        np.array(right, dtype=np.int64),
        padded,
        positions(family, padded),
    )


def single_tile(n_columns: int) -> Tile:
    """The tile of one subset, all its columns in one squared distance: an exponential less for each further column."""
    columns = np.arange(n_columns, dtype=np.int64)[None, :]
    members = np.full((LEFT * RIGHT, n_columns), -1, dtype=np.int16)
    members[0] = columns[0]
    position = np.full(LEFT * RIGHT, -1, dtype=np.int64)
    position[0] = 0
    kernel_and_ones = np.array([-1, -1]), np.array([0, -1])
    return Tile(columns, *kernel_and_ones, np.array([[0, 1, 1, 1]]), np.array([[1, 1]]), members, position)


def positions(family: SubsetFamily, members: NDArray[np.int16]) -> NDArray[np.int64]:
    """Position in the family of each row of sorted columns, padded with -1; -1 for an empty row."""
    sizes = (members >= 0).sum(axis=1)
    terms = binomials(family.n_columns, family.max_size)[members, np.arange(1, family.max_size + 1)]
    ranks = np.where(members >= 0, terms, 0).sum(axis=1)
    return np.where(sizes > 0, np.array(family.offsets)[sizes] + ranks, -1)


def _pivot_pieces(family: SubsetFamily) -> Iterator[Piece]:
    d, k = family.n_columns, family.max_size
    for pivot in range(d):
        lows = _subsets(range(pivot), (k - 1) // 2)
        highs = _subsets(range(pivot + 1, d), k // 2)
        below = len(lows) <= len(highs)
        bands = {}
        for size, band in groupby(lows, key=len):
            wanted = tuple(high for high in highs if len(high) - size in (0, 1) and size + 1 + len(high) <= k)
            bands[tuple(band)] = wanted
        for lows_here, highs_here in bands.items():
            lefts = tuple((*low, pivot) for low in lows_here) if below else lows_here
            rights = highs_here if below else tuple((pivot, *high) for high in highs_here)
            yield from _cut(lefts, rights)


def _halves_pieces(family: SubsetFamily) -> Iterator[Piece]:
    d, k = family.n_columns, family.max_size
    firsts, seconds = _subsets(range(d // 2), k), _subsets(range(d // 2, d), k)
    # Sizes of lefts that go with the same rights share their register blocks.
    room = [min(k - size, d - d // 2) for size in range(max(map(len, firsts)) + 1)]
    for largest, sizes in groupby(range(len(room)), key=lambda size: room[size]):
        span = list(sizes)
        lefts = tuple(s for s in firsts if len(s) in span)
        rights = tuple(s for s in seconds if len(s) <= largest)
        if span == [0]:
            rights = rights[1:]  # the empty set is no subset
        if rights:
            yield from _cut(lefts, rights)


def _cut(lefts: tuple[Subset, ...], rights: tuple[Subset, ...]) -> Iterator[Piece]:
    for i in range(0, len(lefts), MOST_ROWS):
        for j in range(0, len(rights), MOST_ROWS):
            a, b = lefts[i : i + MOST_ROWS], rights[j : j + MOST_ROWS]
            if not a or not b:
                continue
            yield min(Piece(a, b), Piece(b, a), key=lambda piece: piece.n_blocks)


def _subsets(columns: range, largest: int) -> tuple[Subset, ...]:
    """Subsets of at most `largest` columns, the empty one included, by size."""
    return tuple(s for size in range(min(largest, len(columns)) + 1) for s in combinations(columns, size))


def _cost(pieces: list[Piece]) -> int:
    """Register blocks, and rows at the price of a few inner products each."""
    return sum(piece.n_blocks * LEFT * RIGHT + 2 * (len(piece.lefts) + len(piece.rights)) for piece in pieces)


def _padded(sets: tuple[Subset, ...], width: int) -> Iterator[list[Subset | None]]:
    for start in range(0, len(sets), width):
        part: list[Subset | None] = list(sets[start : start + width])
        yield part + [None] * (width - len(part))
