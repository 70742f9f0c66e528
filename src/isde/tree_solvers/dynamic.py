"""Exact recursion over (clique, rest): the best tree, for any size of cliques.

For disjoint sets of columns, X of at most k columns and U of any number,

    hung(X, U)  = max over c in X of under(X - c, U): U hangs as one part on a proper subset of the clique X
    best(X, U)  = max over V in U that hold its lowest column of hung(X, V) + best(X, U - V): as several parts
    grown(X, U) = max over c in U of whole(X + c, U - c): X with at least one column of U is a clique, the rest hangs
    whole(X, U) = max of s(X) + best(X, U) and grown(X, U): X, or something that holds it, is a clique
    under(X, U) = max of grown(X, U) - s(X) and under(X - c, U) over c in X: U hangs as one part on a subset of X

and the answer is grown({}, all). Cliques hang on proper subsets only, so that each is maximal and the terms of the
sum are those of the tree. Each table has a row for each X with a place for each U, counted among the columns that are
not in X: 2^(d - |X|) numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop, part, plain
from isde.subsets import Subset
from isde.tree_solvers.problem import FORBIDDEN, TreeProblem, TreeTask
from isde.tree_solvers.solver import Found

MOST_BYTES = 1 << 30
"""That its tables may take."""

MOST_STEPS = 2e10
"""Of the recursion: 40 s."""

FEW_STEPS = 3**8
"""That Python takes in the time in which a recursion compiled before is loaded."""

NOTHING = FORBIDDEN // 2
"""What weighs less needs something forbidden: two sums of weights that are not weigh more."""


def refusal(task: TreeTask) -> str | None:
    if _bytes(task) > MOST_BYTES:
        return f"would need {_bytes(task) / 1e9:,.1f} GB for {_words(task)}"
    return None if steps(task) <= MOST_STEPS else f"would take {steps(task):.1g} steps for {_words(task)}"


def steps(task: TreeTask) -> float:
    """Every V of every (X, U); and ten times as much for each (X, U) itself, whose numbers lie far apart."""
    d = task.n_columns
    return sum(comb(d, x) * (3.0 ** (d - x) / 2 + 10 * 2.0 ** (d - x)) for x in range(1, task.max_block_size + 1))


def best(problem: TreeProblem) -> Found:
    """The heaviest tree, one with the fewest edges among equals."""
    tables = _Tables(problem)
    # Nothing is compiled for few columns.
    is_small = steps(problem.task) <= FEW_STEPS and not _fill.signatures
    tables.fill(plain(_fill) if is_small else _fill)
    cliques = tables.cliques()
    if cliques is None:
        return Found(None, 0.0)
    return Found(tuple(sorted({edge for clique in cliques for edge in combinations(clique, 2)})), problem.rounding)


class _Tables:
    """The tables of the recursion as flat arrays: rows of small X first, those of X with k columns last."""

    def __init__(self, problem: TreeProblem) -> None:
        self.d, self.k = problem.subsets.n_columns, problem.subsets.max_size
        masks = self.masks = np.concatenate([[0], problem.subsets.masks.astype(np.int64)])
        sizes = np.concatenate([[0], problem.subsets.sizes.astype(np.int64)])
        starts = np.concatenate([[0], np.cumsum(1 << (self.d - sizes))])
        self.weight = np.zeros(1 << self.d, dtype=np.int64)
        self.weight[masks[1:]] = problem.weights
        self.row = np.full(1 << self.d, -1, dtype=np.int64)  # where that of X starts; -1 for more than k columns
        self.row[masks] = starts[:-1]
        below = int(starts[np.flatnonzero(sizes == self.k)[0]])
        self.hung, self.best = np.zeros((2, int(starts[-1])), dtype=np.int64)
        self.whole, self.under = np.zeros((2, below), dtype=np.int64)  # for X of fewer than k columns

    def fill(self, fill: Callable[..., None]) -> None:
        near, places = np.zeros((2, 2 * self.d), dtype=np.int64)
        tables = (self.hung, self.best, self.whole, self.under)
        fill(self.d, self.k, self.masks, self.weight, self.row, near, places, *tables)

    def cliques(self) -> list[Subset] | None:
        """Those of the heaviest tree, found by going back through the tables; None where all trees are forbidden."""
        everything = (1 << self.d) - 1
        if self.under[everything] < NOTHING:
            return None
        found, open_parts = [], [(0, everything)]  # parts under X that cover U
        while open_parts:
            clique, rest = self._clique_of(*self._separator_of(*open_parts.pop()))
            found.append(_columns(clique))
            while rest:
                part = self._part_of(clique, rest)
                open_parts.append((clique, part))
                rest ^= part
        return found

    def _separator_of(self, X: int, U: int) -> tuple[int, int]:
        """What the best part that covers U hangs on: a subset of X, a proper one where X is a clique."""
        while X:
            smaller = [X ^ 1 << c for c in _columns(X)]
            X = max(smaller, key=lambda Y: self.under[self._place(Y, U)])
            if self.under[self._place(X, U)] == self._grown(X, U) - self.weight[X]:
                break
        return X, U

    def _clique_of(self, X: int, U: int) -> tuple[int, int]:
        """The clique that holds X and some of U, and the columns left."""
        while True:
            _, c = max((self._whole(X | 1 << c, U ^ 1 << c), -c) for c in _columns(U))
            X, U = X | 1 << -c, U ^ 1 << -c
            if self._whole(X, U) == self.weight[X] + self.best[self._place(X, U)]:
                return X, U

    def _part_of(self, X: int, U: int) -> int:
        """The part of U that holds its lowest column and hangs on X by itself."""
        at, u = int(self.row[X]), self._squeeze(U, X)
        parts = np.arange(u + 1)
        parts = parts[(parts & ~u == 0) & (parts & u & -u != 0)]
        heaviest = parts[np.argmax(self.hung[at + parts] + self.best[at + (u ^ parts)])]
        columns = [c for c in range(self.d) if not X >> c & 1]
        return sum(1 << c for place, c in enumerate(columns) if heaviest >> place & 1)

    def _grown(self, X: int, U: int) -> int:
        return max(self._whole(X | 1 << c, U ^ 1 << c) for c in _columns(U))

    def _whole(self, X: int, U: int) -> int:
        at = self._place(X, U)
        return int(self.whole[at] if X.bit_count() < self.k else self.weight[X] + self.best[at])

    def _place(self, X: int, U: int) -> int:
        return int(self.row[X]) + self._squeeze(U, X)

    def _squeeze(self, U: int, X: int) -> int:
        """U counted among the columns that are not in X."""
        columns = [c for c in range(self.d) if not X >> c & 1]
        return sum(1 << place for place, c in enumerate(columns) if U >> c & 1)


def _columns(mask: int) -> Subset:
    return tuple(c for c in range(mask.bit_length()) if mask >> c & 1)


def _bytes(task: TreeTask) -> int:
    places = [comb(task.n_columns, x) << (task.n_columns - x) for x in range(task.max_block_size + 1)]
    return 16 * sum(places) + 16 * sum(places[:-1])


def _words(task: TreeTask) -> str:
    return f"{task.n_columns} columns in cliques of at most {task.max_block_size}"


@part
def _without(u: int, place: int) -> Any:
    """Bits of u with the one at `place` taken out."""
    return ((u >> (place + 1)) << place) | (u & ((1 << place) - 1))


@part
def _with_zero(u: int, place: int) -> Any:
    """Bits of u with a zero put in at `place`."""
    return ((u >> place) << (place + 1)) | (u & ((1 << place) - 1))


@loop
def _fill(
    d: int,
    k: int,
    masks: NDArray[np.int64],  # in: every X, small ones first
    weight: NDArray[np.int64],  # in: by mask
    row: NDArray[np.int64],  # in: by mask
    near: NDArray[np.int64],  # scratch: rows of X with one column more, then of X with one less
    places: NDArray[np.int64],  # scratch: where the column left out stands, counted among those not in X
    hung: NDArray[np.int64],  # out
    best: NDArray[np.int64],  # out
    whole: NDArray[np.int64],  # out
    under: NDArray[np.int64],  # out
) -> None:
    # By the size of U, and for all U of one X at once: its row, of which `best` reads all, stays near the processor.
    for n_covered in range(d + 1):
        for X in masks:
            start, free, size = row[X], 0, 0
            for c in range(d):
                if X >> c & 1:
                    near[d + size], places[size] = row[X ^ 1 << c], free
                    size += 1
                else:
                    near[free] = row[X | 1 << c]
                    free += 1
            if n_covered > free:
                continue
            u = (1 << n_covered) - 1
            while u < 1 << free:
                grown = FORBIDDEN
                if size < k:
                    place = 0
                    for c in range(d):
                        if X >> c & 1 == 0:
                            if u >> place & 1:
                                there = near[place] + _without(u, place)
                                value = whole[there] if size + 1 < k else weight[X | 1 << c] + best[there]
                                grown = max(grown, value)
                            place += 1
                hangs = FORBIDDEN
                if size > 0:
                    for i in range(size):
                        hangs = max(hangs, under[near[d + i] + _with_zero(u, places[i])])
                    hung[start + u] = hangs
                    if u > 0:
                        low = u & -u
                        rest = u ^ low
                        heaviest = FORBIDDEN
                        sub = rest
                        while True:
                            heaviest = max(heaviest, hung[start + (sub | low)] + best[start + (rest ^ sub)])
                            if sub == 0:
                                break
                            sub = (sub - 1) & rest
                        best[start + u] = heaviest if heaviest > NOTHING else FORBIDDEN
                if size < k:
                    alone = weight[X] + best[start + u] if size > 0 else FORBIDDEN
                    both = max(grown, alone)
                    whole[start + u] = both if both > NOTHING else FORBIDDEN
                    taken_off = grown - weight[X] if weight[X] > NOTHING else FORBIDDEN
                    both = max(taken_off, hangs)
                    under[start + u] = both if both > NOTHING else FORBIDDEN
                if u == 0:
                    break
                # The next larger number with as many bits.
                low = u & -u
                ripple = u + low
                u = ripple | (((u ^ ripple) >> 2) // low)
