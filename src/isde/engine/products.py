"""All subsets of a tile at once: the bandwidth by cross-validation, then the score on the held-out rows.

Equal to `direct`, subset by subset. Two things make the difference: sums over fitting rows are inner products of rows
shared by many subsets (`plan`, `kernels`), and most bandwidths are proved away before they are evaluated.

The proof. F(t) = sum_i log sum_j exp(-t D_ij), t = 1 / (2 h^2), is convex and decreasing, and F(0) is known. Between
two evaluated bandwidths F lies below its chord; beyond the smallest one evaluated, below its last value. A bandwidth
whose score, with that bound for F, stays below a score already reached cannot be the best.

Far rows. A float32 sum too small to be trusted enters F as an upper bound only. It may exclude a bandwidth, never
select one: where such a bandwidth still contends, its doubtful rows are summed again in float64
(`exact_sums`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays, IntVector, Matrix
from isde.engine import kernels
from isde.engine.grid import BandwidthGrid
from isde.engine.plan import Tile
from isde.run.work import Report, Run
from isde.splits import Folds

FIRST_ROUND_SHARE, SEARCH_SHARE = 0.3, 0.8
"""Of a tile's time, on real data: the coarse grid, and all of the search for bandwidths. For progress bars only."""

QUERIES_AT_ONCE = 256
"""Rows of one task: a plan of tasks that depends on the data only, so that sums are the same for any workers."""

CHUNK = 800
"""Fitting rows at a time: the rights of a piece (at most 128) stay in a 512 kB cache. The same for all tiles, so that
a sum does not depend on the tile it is in."""

DENSE = 3
"""Of the eight sums of an octet, so many cost as much one by one as all eight together."""

SLOTS_AT_ONCE = 1 << 12
"""Slots whose bounds are computed together: temporary arrays of some megabytes, however large the tile."""

EVENTS_AT_ONCE = 256
SMALL_WORK = 1 << 24
"""Multiply-adds below which a pool of workers costs more than it saves."""
LISTED = 8
"""Doubtful rows listed for each task, bandwidth and subset; where there are more, all rows are summed again."""

ROUND_STEPS = 6, 3, 1
"""Every sixth bandwidth first; of every third, and then of all, those that may still be the best. A bandwidth has its
turn in one round only, so that its kernels are made at most once, for all subsets together."""

GROWTH_STEPS = 3
"""Bandwidths beyond the grid evaluated together, though each is allowed only when the one before it is the best."""

LOG2_E = math.log2(math.e)


@dataclass(frozen=True)
class RowSet(FrozenArrays):
    """Rows to be scored, cut into tasks, with the fitting rows that each task sees."""

    queries: Matrix
    query_fold: NDArray[np.int64]
    centres: Matrix
    centre_fold: NDArray[np.int64]
    keeps_normal: bool = False  # the kernels around the centres, see `grid`

    @classmethod
    def of_folds(cls, X: Matrix, folds: Folds, keeps_normal: bool = False) -> RowSet:
        """Each row is scored by the rows of the other folds."""
        fold = np.empty(len(X), dtype=np.int64)
        for number, (_, held_out) in enumerate(folds):
            fold[held_out] = number
        return cls(X, fold, X, fold, keeps_normal)

    def of_queries(self, which: NDArray[Any]) -> RowSet:
        """The same for some of the queries."""
        return replace(self, queries=self.queries[which], query_fold=self.query_fold[which])

    @classmethod
    def of_samples(cls, X_fit: Matrix, X_score: Matrix, keeps_normal: bool = False) -> RowSet:
        """Each row of X_score is scored by all rows of X_fit."""
        return cls(X_score, np.zeros(len(X_score), np.int64), X_fit, np.full(len(X_fit), -1, np.int64), keeps_normal)

    def shrinks(self, bandwidths: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the centres are multiplied with: 1, or sqrt(1 - h^2) for kernels that keep the normal."""
        return np.sqrt(1 - bandwidths**2) if self.keeps_normal else np.ones_like(bandwidths)

    def is_independence(self, bandwidths: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Where the kernel is the standard normal wherever its centre is."""
        return self.keeps_normal & (bandwidths == 1)

    @cached_property
    def tasks(self) -> list[tuple[NDArray[np.intp], int]]:
        """(queries, fold) of each task."""
        tasks = []
        for fold in np.unique(self.query_fold):
            rows = np.flatnonzero(self.query_fold == fold)
            parts = -(-len(rows) // QUERIES_AT_ONCE)
            tasks += [(part, int(fold)) for part in np.array_split(rows, parts)]
        return tasks

    @cached_property
    def centres_of_fold(self) -> dict[int, Matrix]:
        """The fitting rows seen by a fold, as contiguous columns."""
        folds = np.unique(self.query_fold).tolist()
        return {fold: np.ascontiguousarray(self.centres[self.centre_fold != fold].T) for fold in folds}

    @cached_property
    def log_counts(self) -> float:
        """sum_i log(number of fitting rows that row i sees) = F(0)."""
        return float(sum(len(rows) * np.log(self.centres_of_fold[fold].shape[1]) for rows, fold in self.tasks))


@dataclass(frozen=True)
class Work(FrozenArrays):
    """Which sums of a tile to compute: entries of one bandwidth and one octet, by bandwidth, then octet."""

    bandwidths: NDArray[np.float64]
    h: NDArray[np.intp]  # which bandwidth each entry has, (A,)
    octet: NDArray[np.intp]  # which octet, (A,)
    wanted: NDArray[np.bool_]  # which of its sums, (A, 8)
    needed: NDArray[np.bool_]  # which rows each bandwidth needs, kernels first
    left_needed: NDArray[np.bool_]  # which lefts, (H, Q, 4)

    @classmethod
    def of(cls, tile: Tile, bandwidths: NDArray[np.float64], slots: NDArray[np.bool_]) -> Work:
        """All that is wanted, (bandwidths, slots); an octet of which much is wanted is computed whole."""
        eights = slots.reshape(len(slots), len(tile.quad), kernels.LEFT * kernels.RIGHT)
        h, octet = map(np.ascontiguousarray, np.nonzero(eights.any(axis=2)))  # one layout for compiled code
        wanted = eights[h, octet]
        wanted[wanted.sum(axis=1) >= DENSE] = True
        sides = wanted.reshape(len(wanted), kernels.LEFT, kernels.RIGHT)
        left_needed = np.zeros((len(bandwidths), len(tile.left_parent), kernels.LEFT), dtype=bool)
        needed = np.zeros((len(bandwidths), len(tile.groups) + len(tile.parent)), dtype=bool)
        for side in range(kernels.LEFT):
            used = sides[:, side].any(axis=1)
            left_needed[h[used], tile.quad[octet[used]], side] = True
        for side in range(kernels.RIGHT):
            used = sides[:, :, side].any(axis=1)
            needed[h[used], tile.right[octet[used], side]] = True
        i, four, side_of = np.nonzero(left_needed)
        parent = tile.left_parent[four, side_of]
        needed[i, tile.left_group[four, side_of]] = True
        needed[i[parent >= 0], parent[parent >= 0]] = True
        for r in range(len(tile.parent) - 1, -1, -1):  # parents stand before their children
            if tile.parent[r] >= 0:
                own = needed[:, len(tile.groups) + r]
                needed[:, tile.parent[r]] |= own
                needed[:, tile.group[r]] |= own
        return cls(bandwidths, h, octet, wanted, needed, left_needed)


@dataclass
class Sums:
    """What is known of F for the entries of some `Work`, each array (A, 8)."""

    log_sums: Matrix  # over the trusted rows, nats
    upper: Matrix  # with the doubtful rows at their upper bound
    doubtful: NDArray[np.int64]  # how many rows are not trusted
    overflow: NDArray[np.bool_]  # more doubtful rows than were listed
    events: list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]  # (entry, of eight, row) of listed ones


def evaluate(tile: Tile, rows: RowSet, work: Work, run: Run) -> Sums:
    """The sums wanted, over all rows."""
    tasks = [(tile, rows, number, work) for number in range(len(rows.tasks))]
    small = work.wanted.size * len(rows.queries) * len(rows.centres) < SMALL_WORK
    results = (_evaluate_task(*task) for task in tasks) if small else run(_evaluate_task, tasks)
    shape = work.wanted.shape
    total = Sums(np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape, bool), [])
    for (queries, fold), (logs, doubtful, events) in zip(rows.tasks, results, strict=True):
        bound = np.log(_least_trusted(tile, rows.centres_of_fold[fold].shape[1])) - 2 * kernels.SCALE_BITS * np.log(2)
        total.log_sums += logs
        total.upper += logs + doubtful * bound
        total.doubtful += doubtful
        total.overflow |= doubtful > LISTED
        total.events.append((events[0], events[1], queries[events[2]]))
    return total


def _evaluate_task(
    tile: Tile, rows: RowSet, number: int, work: Work
) -> tuple[Matrix, NDArray[np.int32], tuple[NDArray[Any], ...]]:
    queries, fold = rows.tasks[number]
    centres = rows.centres_of_fold[fold]
    n_groups, n_rows, L = len(tile.groups), len(tile.groups) + len(tile.parent), centres.shape[1]
    shape = work.wanted.shape
    logs, doubtful, listed = np.zeros(shape), np.zeros(shape, np.int32), np.zeros((*shape, LISTED), np.int32)
    kernels.sum_products(
        rows.queries[queries],
        centres,
        kernels.Recipe(tile.groups, tile.parent, tile.group, tile.left_parent, tile.left_group, tile.quad, tile.right),
        kernels.Asked(
            rates=(LOG2_E / (2 * work.bandwidths**2)).astype(np.float32),
            shrinks=rows.shrinks(work.bandwidths),
            needed=work.needed,
            left_needed=work.left_needed,
            first=np.searchsorted(work.h, np.arange(len(work.bandwidths) + 1)),
            octet=work.octet,
            wanted=work.wanted,
            whole=work.wanted.all(axis=1),
        ),
        _least_trusted(tile, L),
        kernels.Scratch(
            distances=np.empty((n_groups, L), np.float32),
            rows=_aligned(n_rows + kernels.LEFT, _chunk(L)),
            left=np.empty(kernels.LEFT, np.int64),
            sums=np.zeros(shape),
            products=np.ones(shape),
        ),
        kernels.Found(logs, doubtful, listed),
    )
    logs -= (len(queries) - doubtful) * kernels.PRODUCT_BITS
    doubtful[(tile.position < 0).reshape(-1, shape[1])[work.octet]] = 0
    entry, of_eight = np.nonzero((doubtful > 0) & (doubtful <= LISTED))
    repeats = doubtful[entry, of_eight]
    place = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    entry, of_eight = np.repeat(entry, repeats), np.repeat(of_eight, repeats)
    return logs * np.log(2), doubtful, (entry, of_eight, listed[entry, of_eight, place])


def _chunk(n_centres: int) -> int:
    """Fitting rows at a time: equal parts, whole cache lines."""
    parts = -(-n_centres // CHUNK)
    return -(-n_centres // (16 * parts)) * 16


def _aligned(n: int, width: int) -> NDArray[np.float32]:
    """np.empty((n, width), np.float32) at the start of a cache line: no vector of it straddles two."""
    buffer = np.empty(n * width + 16, np.float32)
    start = (-buffer.ctypes.data % 64) // 4
    return buffer[start : start + n * width].reshape(n, width)


def _least_trusted(tile: Tile, n_centres: int) -> float:
    """Flushing takes less than 2^-5 (scaled) from a product, once for each column it has."""
    return float(kernels.PRODUCT_FLUSH) * n_centres * tile.members.shape[1] * kernels.TRUST


def exact_sums(tile: Tile, rows: RowSet, slot: IntVector, row: IntVector, bandwidth: Matrix, run: Run) -> Matrix:
    """log sum_j exp(-D / (2 h^2)) in float64 for each event (slot, row, bandwidth)."""
    out = np.empty(len(row))
    parts = []
    for fold in rows.centres_of_fold:
        events = np.flatnonzero(rows.query_fold[row] == fold)
        parts += [(events[i : i + EVENTS_AT_ONCE], fold) for i in range(0, len(events), EVENTS_AT_ONCE)]
    tasks = [(tile, rows, fold, slot[events], row[events], bandwidth[events]) for events, fold in parts]
    for (events, _), sums in zip(parts, run(_exact_task, tasks), strict=True):
        out[events] = sums
    return out


def _exact_task(tile: Tile, rows: RowSet, fold: int, slot: IntVector, row: IntVector, bandwidth: Matrix) -> Matrix:
    out = np.empty(len(row))
    columns = tile.members[slot].astype(np.int64)
    queries, rate = rows.queries, 1 / (2 * bandwidth**2)
    if rows.keeps_normal:  # |x - s c|^2 = s^2 |x / s - c|^2, with an s of its own for each event
        shrinks = rows.shrinks(bandwidth)
        queries, row, rate = queries[row] / shrinks[:, None], np.arange(len(row)), rate * shrinks**2
    centres = rows.centres_of_fold[fold]
    scratch = kernels.kept_distances(centres.shape[1])
    kernels.log_kernel_sums(queries, centres, columns, row.astype(np.int64), rate, out, *scratch)
    return out


class BandwidthSearch:
    """The best bandwidth of every slot of a tile, over a grid that may grow; evaluates only what may be the best."""

    def __init__(self, tile: Tile, rows: RowSet, grid: BandwidthGrid, run: Run, *, prove: bool = True) -> None:
        self.tile, self.rows, self.grid, self.run = tile, rows, grid, run
        self.prove = prove and not rows.keeps_normal  # with centres that move, F is not convex
        steps = range(-grid.reach, len(grid.values) + grid.reach_above)
        self.h = np.array([grid.step(step) for step in steps])
        self.sizes = (tile.members >= 0).sum(axis=1)
        self.real = tile.position >= 0
        # Bandwidth by slot. Zeros, since memory that is never touched is never taken: most of it is beyond the grid.
        shape = (len(self.h), len(tile.position))
        self.upper, self.log_sums = np.zeros(shape), np.zeros(shape)  # of F
        self.evaluated, self.resolved = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        self.overflow = np.zeros(shape, dtype=bool)
        self.events: list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]] = []
        self.low = np.full(shape[1], grid.reach)  # first and last bandwidth allowed so far
        self.high = np.full(shape[1], grid.reach + len(grid.values) - 1)
        self.chosen = np.zeros(shape[1], dtype=np.int64)
        self.growing = np.flatnonzero(self.real)  # slots whose best bandwidth may yet lie beyond what is allowed
        self.evaluations = 0  # sums of real subsets computed, for the benchmark
        self._know_independence()

    def best(self, report: Report = lambda share: None) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Index into `h` for each slot, and whether it lies inside the grid."""
        self._evaluate(self._first_round())
        report(FIRST_ROUND_SHARE)
        for step in ROUND_STEPS[1:]:
            self._evaluate(self._contenders(self.growing, step))
        contending = self.growing
        while contending.size:
            todo = self._contenders(contending)
            contending = np.flatnonzero(todo.any(axis=0))
            if not contending.size:
                todo, contending = self._grow(), self.growing
            self._evaluate(todo)
        inside = (self.low < self.chosen) & ((self.chosen < self.high) | self.rows.is_independence(self.h)[self.chosen])
        return self.chosen, inside | ~self.real | (not self.grid.grows)

    def cross_validated(self) -> NDArray[np.float64]:
        """Mean log-density of the rows by their folds, at the bandwidth chosen for each slot."""
        slots, n = np.arange(len(self.chosen)), len(self.rows.queries)
        log_density = (self.log_sums[self.chosen, slots] - self.rows.log_counts) / n
        return log_density - self.sizes * (0.5 * np.log(2 * np.pi) + np.log(self.h[self.chosen]))

    def _know_independence(self) -> None:
        """The widest kernel that keeps the normal has its sums in closed form."""
        widest = np.flatnonzero(self.rows.is_independence(self.h))
        self.log_sums[widest] = self.upper[widest] = independent_sums(self.tile, self.rows)
        self.evaluated[widest] = self.resolved[widest] = self.real

    def _first_round(self) -> NDArray[np.bool_]:
        first = np.zeros(self.upper.shape, dtype=bool)
        grid = np.arange(self.low[0], self.high[0] + 1)
        first[grid[min(ROUND_STEPS[0], len(grid) - 1) :: ROUND_STEPS[0]] if self.prove else grid] = self.real
        return first & ~self.evaluated

    def _evaluate(self, todo: NDArray[np.bool_]) -> None:
        used = np.flatnonzero(todo.any(axis=1))
        if not used.size:
            return
        work = Work.of(self.tile, self.h[used], todo[used])
        sums = evaluate(self.tile, self.rows, work, self.run)
        at = used[work.h], work.octet
        fresh = work.wanted & ~_eights(self.evaluated)[at] & _eights(self.real)[work.octet]
        self.evaluations += int(fresh.sum())
        for target, values in ((self.upper, sums.upper), (self.log_sums, sums.log_sums)):
            _eights(target)[at] = np.where(fresh, values, _eights(target)[at])
        _eights(self.evaluated)[at] |= fresh
        _eights(self.resolved)[at] |= fresh & (sums.doubtful == 0)
        _eights(self.overflow)[at] |= fresh & sums.overflow
        width = kernels.LEFT * kernels.RIGHT
        for a, eighth, row in sums.events:
            new = fresh[a, eighth]
            self.events.append((at[0][a[new]], work.octet[a[new]] * width + eighth[new], row[new]))

    def _contenders(self, slots: NDArray[np.intp], step: int = 1) -> NDArray[np.bool_]:
        """What to evaluate next: for each slot, of every so many bandwidths, those whose bound beats its best score."""
        todo = np.zeros(self.upper.shape, dtype=bool)
        for start in range(0, len(slots), SLOTS_AT_ONCE):
            some = slots[start : start + SLOTS_AT_ONCE]
            while some.size:
                grid, each = slice(self.low[some].min(), self.high[some].max() + 1), np.arange(len(some))
                score, bound = self._scores(grid, some), self._bounds(grid, some)
                self.chosen[some] = grid.start + np.argmax(score, axis=0)
                open_ = ~self.resolved[grid, some] & (bound > score.max(axis=0)) & self._allowed(grid, some)
                evaluated, bound = self.evaluated[grid, some], np.where(open_, bound, -np.inf)
                top = np.argmax(bound, axis=0)
                doubtful = open_.any(axis=0) & evaluated[top, each]
                turn = (np.arange(grid.start, grid.stop) - self.grid.reach) % step == 0
                todo[grid, some] = open_ & ~evaluated & ~doubtful & turn[:, None]
                self._resolve(grid.start + top[doubtful], some[doubtful])
                some = some[doubtful]
        return todo

    def _grow(self) -> NDArray[np.bool_]:
        """One more step for the slots whose best bandwidth is an end of what was allowed; what that needs evaluated."""
        slots, best = self.growing, self.chosen[self.growing]
        down = (best == self.low[slots]) & (best > 0) & self.grid.grows
        up = (best == self.high[slots]) & (best < len(self.h) - 1) & self.grid.grows & ~down
        self.low[slots[down]] -= 1
        self.high[slots[up]] += 1
        self.growing = slots[down | up]
        todo = np.zeros(self.upper.shape, dtype=bool)
        for step in range(GROWTH_STEPS):
            todo[np.maximum(self.low[slots[down]] - step, 0), slots[down]] = True
            todo[np.minimum(self.high[slots[up]] + step, len(self.h) - 1), slots[up]] = True
        edge = np.append(self.low[slots[down]], self.high[slots[up]]), np.append(slots[down], slots[up])
        todo[:, edge[1][self.evaluated[edge]]] = False  # the step allowed now is known: no hurry with those after it
        return todo

    def _allowed(self, grid: slice, slots: NDArray[np.intp]) -> NDArray[np.bool_]:
        index = np.arange(grid.start, grid.stop)[:, None]
        return (self.low[slots] <= index) & (index <= self.high[slots])

    def _scores(self, grid: slice, slots: NDArray[np.intp]) -> Matrix:
        """Mean log-likelihood, up to a constant, where it is known exactly and allowed; -inf elsewhere."""
        known = self.resolved[grid, slots] & self._allowed(grid, slots)
        penalty = np.outer(np.log(self.h[grid]), self.sizes[slots])
        return np.where(known, self.log_sums[grid, slots] / len(self.rows.queries) - penalty, -np.inf)

    def _bounds(self, grid: slice, slots: NDArray[np.intp]) -> Matrix:
        """Upper bounds of the scores: by the chord of F over t, or by the doubtful rows' bound."""
        h, evaluated, upper = self.h[grid], self.evaluated[grid, slots], self.upper[grid, slots]
        n_h = len(h)
        t = np.append(1 / (2 * h**2), 0.0)  # falling; the last is F(0)
        values = np.vstack([upper, np.full(len(slots), self.rows.log_counts)])
        index = np.arange(n_h)[:, None]
        smaller = np.maximum.accumulate(np.where(evaluated, index, -1), axis=0)
        larger = np.minimum.accumulate(np.where(evaluated, index, n_h)[::-1], axis=0)[::-1]
        t_small, t_large = t[smaller], t[larger]  # t of the smaller and of the larger bandwidth; t_small >= t_large
        f_small, f_large = np.take_along_axis(values, smaller, axis=0), np.take_along_axis(values, larger, axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = (t[:n_h, None] - t_large) / (t_small - t_large)
            chord = f_large + weight * (f_small - f_large)
        F = np.where(evaluated, upper, np.where(smaller < 0, f_large, chord))
        bounds: Matrix = F / len(self.rows.queries) - np.outer(np.log(h), self.sizes[slots])
        return bounds

    def _resolve(self, h: NDArray[np.intp], slot: NDArray[np.intp]) -> None:
        """Sum the doubtful rows of these (bandwidth, slot) again, exactly."""
        if not slot.size:
            return
        wanted = np.zeros(self.upper.shape, dtype=bool)
        wanted[h, slot] = True
        crowded = self.overflow[h, slot]
        all_h, all_slots = h[crowded], slot[crowded]
        self.log_sums[all_h, all_slots] = 0.0
        wanted[all_h, all_slots] = False
        i, s, row = _events(self.events, wanted)
        n = len(self.rows.queries)
        i, s = np.append(i, np.repeat(all_h, n)), np.append(s, np.repeat(all_slots, n))
        row = np.append(row, np.tile(np.arange(n), len(all_h)))
        np.add.at(self.log_sums, (i, s), exact_sums(self.tile, self.rows, s, row, self.h[i], self.run))
        self.resolved[h, slot] = True
        self.upper[h, slot] = self.log_sums[h, slot]


def _eights(by_slot: NDArray[Any]) -> NDArray[Any]:
    """A view by octet of what is known by slot."""
    return by_slot.reshape(*by_slot.shape[:-1], -1, kernels.LEFT * kernels.RIGHT)


def _events(events: list[tuple[IntVector, IntVector, IntVector]], wanted: NDArray[np.bool_]) -> list[IntVector]:
    """The listed (bandwidth, slot, row) whose bandwidth and slot are wanted."""
    h, slot, row = (np.concatenate(parts) for parts in zip(*events, strict=True))
    pick = wanted[h, slot]
    return [h[pick], slot[pick], row[pick]]


def held_out_scores(tile: Tile, rows: RowSet, bandwidth: NDArray[np.float64], run: Run) -> NDArray[np.float64]:
    """mean_i log f_S(row i) of each slot at its own bandwidth; every row counts, far ones summed exactly."""
    known = rows.is_independence(bandwidth)
    total = np.where(known, independent_sums(tile, rows), 0.0)
    unknown = np.flatnonzero((tile.position >= 0) & ~known)
    if unknown.size:
        total[unknown] = _held_out_sums(tile, rows, bandwidth, unknown, run)[unknown]
    sizes = (tile.members >= 0).sum(axis=1)
    log_density = total / len(rows.queries) - rows.log_counts / len(rows.queries)
    return log_density - sizes * (0.5 * np.log(2 * np.pi) + np.log(bandwidth))


def _held_out_sums(
    tile: Tile, rows: RowSet, bandwidth: NDArray[np.float64], slots: NDArray[np.intp], run: Run
) -> NDArray[np.float64]:
    """sum_i log sum_j of the kernels of some slots, each at its own bandwidth; 0 for the others."""
    values, which = np.unique(bandwidth[slots], return_inverse=True)
    own = np.zeros((len(values), len(bandwidth)), dtype=bool)
    own[which, slots] = True
    work = Work.of(tile, values, own)
    sums = evaluate(tile, rows, work, run)
    entry, eighth = np.nonzero(_eights(own)[work.h, work.octet])
    slot_of = work.octet[:, None] * kernels.LEFT * kernels.RIGHT + np.arange(kernels.LEFT * kernels.RIGHT)
    total = np.zeros(len(bandwidth))
    total[slot_of[entry, eighth]] = sums.log_sums[entry, eighth]
    far = entry[sums.overflow[entry, eighth]], eighth[sums.overflow[entry, eighth]]
    crowded = slot_of[far]
    total[crowded] = 0.0
    mine = _eights(own)[work.h, work.octet] & ~sums.overflow
    a, of_eight, row = _events(sums.events, mine)
    slot = np.append(slot_of[a, of_eight], np.repeat(crowded, len(rows.queries)))
    row = np.append(row, np.tile(np.arange(len(rows.queries)), len(crowded)))
    np.add.at(total, slot, exact_sums(tile, rows, slot, row, bandwidth[slot], run))
    return total


def independent_sums(tile: Tile, rows: RowSet) -> NDArray[np.float64]:
    """sum_i log sum_j of each slot's kernels where these are the standard normal wherever the centre is."""
    alone = np.append(-0.5 * (rows.queries**2).sum(axis=0), 0.0)  # padding is column -1
    sums: NDArray[np.float64] = alone[tile.members].sum(axis=1) + rows.log_counts
    return sums
