"""How all subsets become sums of products of two rows: each subset exactly once, in tiles that fit the cache.

A row is the product of the kernels of some columns, over the fitting rows. The sum for S = A u B is the inner product
of row A with row B, so some lefts x rights give all their unions by matrix-like work. Three ways to cover:

- halves: lefts are subsets of the first half of the columns, rights of the second. Best where k is near d.
- pivot: S belongs to its middle column r, with floor((|S| - 1) / 2) members below it and the rest above. Rows stay
  short products; r joins the lefts.

- fours, for k <= 3: columns in groups of four, by how many of a subset's columns share a group. Octets of sums,
  four lefts by two rights in registers, then have next to no padding (at d = 32: 0.3 %, against 20 % for the pivot).

Rights are kept for a chunk of fitting rows and live in the L2 cache. Lefts are made four at a time, just before they
are multiplied with all their rights, and never leave the L1 cache.

The plan follows from d and k alone, never from memory or workers: its tiles are the chunks of the work. Where memory
is short a tile is worked on in parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby
from math import ceil

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays
from isde.engine.kernels import LEFT, RIGHT
from isde.subsets import Subset, SubsetFamily

MOST_ROWS = 128
"""Rows of one side of a piece: two sides of chunks of some hundred float32 stay in a 512 kB cache."""

TILE_SLOTS = 1 << 15
TILE_ROWS = 1 << 10
"""Of one tile, at most: what its kernels and rows cost is then little beside its sums, and its memory bounded."""

NO_COLUMN = np.int16(np.iinfo(np.int16).max)
"""Padding that is sorted behind all columns."""


@dataclass(frozen=True)
class Piece:
    """All unions of a left and a right set; those that are empty or too large for the family are padding."""

    lefts: tuple[Subset, ...]
    rights: tuple[Subset, ...]

    @property
    def n_octets(self) -> int:
        return ceil(len(self.lefts) / LEFT) * ceil(len(self.rights) / RIGHT)

    @property
    def n_slots(self) -> int:
        """Sums that its octets make, padding included."""
        return self.n_octets * LEFT * RIGHT

    def n_subsets(self, largest: int) -> int:
        """How many unions are subsets of at most `largest` columns."""
        lefts, rights = (Counter(map(len, side)) for side in (self.lefts, self.rights))
        return sum(lefts[a] * rights[b] for a in lefts for b in rights if 1 <= a + b <= largest)

    @property
    def cost(self) -> int:
        """In inner products: octets, and rows that must be made, at the price of five each (measured)."""
        return self.n_slots + 5 * sum(len(left) > 1 for left in self.lefts)


@dataclass(frozen=True)
class Tile(FrozenArrays):
    """A unit of work: rows, the octets that multiply them, and which subset each sum belongs to."""

    groups: NDArray[np.int64]  # columns of each squared distance, padded with -1: rows 0 to G - 1 are their kernels
    parent: NDArray[np.int64]  # row G + r is row parent[r] times row group[r]; both -1: a row of ones
    group: NDArray[np.int64]
    left_parent: NDArray[np.int64]  # the same for lefts, four at a time, (Q, 4); parent -1: row group as it is
    left_group: NDArray[np.int64]
    quad: NDArray[np.int64]  # which four lefts an octet has, ascending, (B,)
    right: NDArray[np.int64]  # the rows of its two rights, (B, 2)
    members: NDArray[np.int16]  # columns of the subset of each slot, padded with -1, (B * 8, k)
    position: NDArray[np.int64]  # its position in the family; -1 for padding

    @property
    def n_subsets(self) -> int:
        return int((self.position >= 0).sum())


@lru_cache(maxsize=8)  # the same for all splits of a table
def plan_pieces(subsets: SubsetFamily, above: int = 0) -> tuple[tuple[Piece, ...], ...]:
    """The tiles, each as its pieces; the cheapest of the ways to cover the family, or its subsets of more columns."""
    if subsets.complete < subsets.max_size:
        return into_tiles(list(_listed_pieces(subsets, above)), TILE_SLOTS)
    ways = [list(_pivot_pieces(subsets, above))]
    if subsets.n_columns <= 2 * 12:  # 2^12 rows a half
        ways.append(list(_halves_pieces(subsets) if above == 0 else _halves_pieces_above(subsets, above)))
    if subsets.max_size <= 3 and above == 0:
        ways.append(list(_fours_pieces(subsets)))
    return into_tiles(min(ways, key=lambda way: sum(piece.cost for piece in way)), TILE_SLOTS)


def into_tiles(pieces: Sequence[Piece], most_slots: int) -> tuple[tuple[Piece, ...], ...]:
    """Pieces in their order, as many in a tile as fit; at least one. Sums are the same for any `most_slots`."""
    tiles: list[list[Piece]] = []
    rows: set[Subset] = set()
    slots = 0
    for piece in pieces:
        rows.update(piece.rights)
        slots += piece.n_slots
        if not tiles or slots > most_slots or len(rows) > TILE_ROWS:
            tiles.append([])
            rows, slots = set(piece.rights), piece.n_slots
        tiles[-1].append(piece)
    return tuple(map(tuple, tiles))


@lru_cache(maxsize=4)  # the same for all splits of a table
def build_tile(subsets: SubsetFamily, pieces: tuple[Piece, ...]) -> Tile:
    """Rows and octets of a tile; rows that several pieces need are made once."""
    parent: list[int] = []
    group: list[int] = []
    row_of: dict[Subset, int] = {}

    def row(subset: Subset) -> int:
        if len(subset) == 1:
            return subset[0]
        if subset not in row_of:
            above = row(subset[:-1]) if subset else -1
            parent.append(above)
            group.append(subset[-1] if subset else -1)
            row_of[subset] = subsets.n_columns + len(parent) - 1
        return row_of[subset]

    left_parent, left_group, quad, right, members = [], [], [], [], []
    for piece in pieces:
        fours, rights = list(_padded(piece.lefts, LEFT)), list(_padded(piece.rights, RIGHT))
        for lefts in fours:
            left_parent.append([row(s[:-1]) if s and len(s) > 1 else -1 for s in lefts])
            left_group.append([s[-1] if s else row(()) for s in lefts])
        own = np.array([[row(s or ()) for s in pair] for pair in rights], dtype=np.int64).reshape(-1, RIGHT)
        quad.append(np.repeat(np.arange(len(left_parent) - len(fours), len(left_parent)), len(rights)))
        right.append(np.tile(own, (len(fours), 1)))
        members.append(_unions(fours, rights, subsets.max_size))
    padded = np.concatenate(members)
    columns = np.arange(subsets.n_columns, dtype=np.int64)[:, None]
    return Tile(
        columns,
        np.array(parent, dtype=np.int64),
        np.array(group, dtype=np.int64),
        np.array(left_parent, dtype=np.int64),
        np.array(left_group, dtype=np.int64),
        np.concatenate(quad),
        np.concatenate(right),
        padded,
        subsets.find(padded),
    )


def _unions(
    fours: Sequence[Sequence[Subset | None]], pairs: Sequence[Sequence[Subset | None]], largest: int
) -> NDArray[np.int16]:
    """The columns of each left with each right, octet by octet, sorted and padded with -1.

    Nothing but padding where one of them is missing, and where they are more than `largest`.
    """
    (lefts, no_left), (rights, no_right) = _as_rows(fours), _as_rows(pairs)
    shape = len(fours), len(pairs), LEFT, RIGHT
    parts = [
        np.broadcast_to(lefts.reshape(len(fours), 1, LEFT, 1, -1), (*shape, lefts.shape[1])),
        np.broadcast_to(rights.reshape(1, len(pairs), 1, RIGHT, -1), (*shape, rights.shape[1])),
        np.full((*shape, largest), NO_COLUMN),
    ]
    unions = np.sort(np.concatenate(parts, axis=-1), axis=-1)
    missing = no_left.reshape(len(fours), 1, LEFT, 1) | no_right.reshape(1, len(pairs), 1, RIGHT)
    unions[missing | ((unions != NO_COLUMN).sum(axis=-1) > largest)] = NO_COLUMN
    unions = unions[..., :largest].reshape(-1, largest)
    return np.where(unions == NO_COLUMN, np.int16(-1), unions)


def _as_rows(groups: Sequence[Sequence[Subset | None]]) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
    """Sets as the rows of a matrix, padded, and which of them are missing."""
    sets = [s for group in groups for s in group]
    rows = np.full((len(sets), max(len(s or ()) for s in sets)), NO_COLUMN)
    for i, s in enumerate(sets):
        rows[i, : len(s or ())] = s or ()
    return rows, np.array([s is None for s in sets])


def blocks_tile(blocks: Sequence[Sequence[int]]) -> Tile:
    """The tile of some subsets, each in one squared distance: an exponential less for each further column.

    Position i is blocks[i], the kernel of a left times a row of ones.
    """
    n_quads = ceil(len(blocks) / LEFT)
    columns = np.full((len(blocks), max(map(len, blocks))), -1, dtype=np.int64)
    for i, block in enumerate(blocks):
        columns[i, : len(block)] = block
    lefts = np.minimum(np.arange(n_quads * LEFT), len(blocks) - 1)
    position = np.full((n_quads * LEFT, RIGHT), -1, dtype=np.int64)
    position[: len(blocks), 0] = np.arange(len(blocks))
    members = np.where(position[:, :, None] >= 0, columns[lefts][:, None], -1)
    ones = np.full(1, -1, dtype=np.int64)  # a made row, after the kernels
    return Tile(
        columns,
        ones,
        ones,
        np.full((n_quads, LEFT), -1, dtype=np.int64),
        lefts.reshape(n_quads, LEFT),
        np.arange(n_quads),
        np.full((n_quads, RIGHT), len(blocks), dtype=np.int64),
        members.reshape(n_quads * LEFT * RIGHT, -1).astype(np.int16),
        position.ravel(),
    )


def _pivot_pieces(subsets: SubsetFamily, above: int) -> Iterator[Piece]:
    d, k = subsets.n_columns, subsets.max_size
    for pivot in range(d):
        lows = _subsets(range(pivot), (k - 1) // 2)
        highs = _subsets(range(pivot + 1, d), k // 2)
        for size, band in groupby(lows, key=len):
            wanted = tuple(h for h in highs if len(h) - size in (0, 1) and above < size + 1 + len(h) <= k)
            yield from _cut(tuple(band), wanted, (pivot,))


def _halves_pieces(subsets: SubsetFamily) -> Iterator[Piece]:
    d, k = subsets.n_columns, subsets.max_size
    firsts, seconds = _subsets(range(d // 2), k), _subsets(range(d // 2, d), k)
    # Sizes of lefts that go with the same rights share their octets.
    room = [min(k - size, d - d // 2) for size in range(max(map(len, firsts)) + 1)]
    for largest, sizes in groupby(range(len(room)), key=lambda size: room[size]):
        span = list(sizes)
        lefts = tuple(s for s in firsts if len(s) in span)
        rights = tuple(s for s in seconds if len(s) <= largest)
        yield from _cut(lefts, rights, ())


def _halves_pieces_above(subsets: SubsetFamily, above: int) -> Iterator[Piece]:
    d, k = subsets.n_columns, subsets.max_size
    firsts, seconds = _subsets(range(d // 2), k), _subsets(range(d // 2, d), k)
    for size in range(max(map(len, firsts)) + 1):
        lefts = tuple(s for s in firsts if len(s) == size)
        rights = tuple(s for s in seconds if above < size + len(s) <= k)
        yield from _cut(lefts, rights, ())


def _fours_pieces(subsets: SubsetFamily) -> Iterator[Piece]:
    d, k = subsets.n_columns, subsets.max_size
    fours = [range(start, min(start + LEFT, d)) for start in range(0, d, LEFT)]
    for four in fours:
        below, above = range(four.start), range(four.stop, d)
        yield Piece(_subsets(four[:2], 2), _subsets(four[2:], 2))  # all columns in this four
        if k >= 2:  # one here, one above
            yield from _cut(_singles(four), _singles(above), ())
        if k >= 3:  # two here, one elsewhere; one here, one below, one above
            yield from _cut(_singles((*below, *above)), tuple(combinations(four, 2)), ())
            outer, others = (below, above) if len(below) <= len(above) else (above, below)
            yield from _cut(tuple((c, r) for c in outer for r in four), _singles(others), (), turn=False)


def _listed_pieces(subsets: SubsetFamily, above: int) -> Iterator[Piece]:
    """Subsets of a list, their last columns as rights: four lefts at a time with all the rights of any of them.

    Lefts of a piece end with the same column, so that every union comes once. Those that are not listed are padding,
    which costs memory alone: no more of an octet is summed than is wanted.
    """
    for size in range(above + 1, subsets.max_size + 1):
        cut, rights_of = ceil(size / 2), dict[Subset, list[Subset]]()
        for subset in map(tuple, subsets.members(size).tolist()):
            rights_of.setdefault(subset[:cut], []).append(subset[cut:])
        for _, group in groupby(sorted(rights_of, key=lambda left: (left[-1], left)), key=lambda left: left[-1]):
            lefts = tuple(group)
            for four in (lefts[start : start + LEFT] for start in range(0, len(lefts), LEFT)):
                rights = sorted({right for left in four for right in rights_of[left]})
                yield from (Piece(four, part) for part in _equal_parts(tuple(rights)))


def _equal_parts(sets: tuple[Subset, ...]) -> list[tuple[Subset, ...]]:
    """Parts of at most MOST_ROWS sets, as equal as whole octets allow."""
    parts = ceil(len(sets) / MOST_ROWS)
    width = LEFT * ceil(len(sets) / (LEFT * parts)) if parts else 1
    return [sets[start : start + width] for start in range(0, len(sets), width)]


def _singles(columns: Iterable[int]) -> tuple[Subset, ...]:
    return tuple((c,) for c in columns)


def _cut(some: tuple[Subset, ...], others: tuple[Subset, ...], pivot: Subset, *, turn: bool = True) -> Iterator[Piece]:
    """All unions of one of `some`, one of `others` and the pivot; lefts are the side that makes it cheaper."""
    for a in _equal_parts(some):
        for b in _equal_parts(others):
            ways = [Piece(tuple((*pivot, *left) for left in lefts), rights) for lefts, rights in ((a, b), (b, a))]
            yield min(ways, key=lambda piece: piece.cost) if turn else ways[0]


def _subsets(columns: Sequence[int], largest: int) -> tuple[Subset, ...]:
    """Subsets of at most `largest` columns, the empty one included, by size."""
    return tuple(s for size in range(min(largest, len(columns)) + 1) for s in combinations(columns, size))


def _padded(sets: tuple[Subset, ...], width: int) -> Iterator[list[Subset | None]]:
    for start in range(0, len(sets), width):
        part: list[Subset | None] = list(sets[start : start + width])
        yield part + [None] * (width - len(part))
