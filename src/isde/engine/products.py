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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.engine import kernels
from isde.engine.grid import BandwidthGrid
from isde.engine.plan import Tile

Matrix = NDArray[np.float64]
Folds = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]
IntVector = NDArray[np.int64]
Run = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], list[Any]]
"""Calls a function on each tuple of arguments, in any way, and returns the results in order."""

Report = Callable[[float], None]
"""Told the share of a tile's work that is done."""

FIRST_ROUND_SHARE, SEARCH_SHARE = 0.4, 0.8
"""Of a tile's time, on real data: the coarse grid, and all of the search for bandwidths. For progress bars only."""

QUERIES_AT_ONCE = 256
"""Rows of one task: a plan of tasks that depends on the data only, so that sums are the same for any workers."""

CACHE_BYTES = 384 << 10
EVENTS_AT_ONCE = 256
SMALL_WORK = 1 << 24
"""Multiply-adds below which a pool of workers costs more than it saves."""
LISTED = 8
"""Doubtful rows listed for each task, bandwidth and subset; where there are more, all rows are summed again."""

COARSE_STEP = 5
LOG2_E = float(np.log2(np.e))


@dataclass(frozen=True)
class RowSet:
    """Rows to be scored, cut into tasks, with the fitting rows that each task sees."""

    queries: Matrix
    query_fold: NDArray[np.int64]
    centres: Matrix
    centre_fold: NDArray[np.int64]

    @classmethod
    def of_folds(cls, X: Matrix, folds: Folds) -> RowSet:
        """Each row is scored by the rows of the other folds."""
        fold = np.empty(len(X), dtype=np.int64)
        for number, (_, held_out) in enumerate(folds):
            fold[held_out] = number
        return cls(X, fold, X, fold)

    @classmethod
    def of_samples(cls, X_fit: Matrix, X_score: Matrix) -> RowSet:
        """Each row of X_score is scored by all rows of X_fit."""
        return cls(X_score, np.zeros(len(X_score), np.int64), X_fit, np.full(len(X_fit), -1, np.int64))

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


@dataclass
class Sums:
    """What is known of F for each bandwidth (first axis) and slot of a tile (second axis)."""

    log_sums: Matrix  # over the trusted rows, nats
    upper: Matrix  # with the doubtful rows at their upper bound
    doubtful: NDArray[np.int64]  # how many rows are not trusted
    events: list[
        tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    ]  # (bandwidth, slot, row) of listed ones
    overflow: NDArray[np.bool_]  # more doubtful rows than were listed


def evaluate(tile: Tile, rows: RowSet, bandwidths: NDArray[np.float64], active: NDArray[np.bool_], run: Run) -> Sums:
    """Sums for the bandwidths and register blocks that are `active`, shape (bandwidths, blocks)."""
    tasks = [(tile, rows, number, bandwidths, active) for number in range(len(rows.tasks))]
    work = active.sum() * kernels.LEFT * kernels.RIGHT * len(rows.queries) * len(rows.centres)
    results = [_evaluate_task(*task) for task in tasks] if work < SMALL_WORK else run(_evaluate_task, tasks)
    shape = (len(bandwidths), len(tile.position))
    total = Sums(np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), [], np.zeros(shape, bool))
    for (queries, fold), (logs, doubtful, events) in zip(rows.tasks, results, strict=True):
        bound = np.log(_least_trusted(tile, rows.centres_of_fold[fold].shape[1])) - 2 * kernels.SCALE_BITS * np.log(2)
        total.log_sums += logs
        total.upper += logs + doubtful * bound
        total.doubtful += doubtful
        total.overflow |= doubtful > LISTED
        total.events.append((events[0], events[1], queries[events[2]]))
    return total


def _evaluate_task(
    tile: Tile, rows: RowSet, number: int, bandwidths: NDArray[np.float64], active: NDArray[np.bool_]
) -> tuple[Matrix, NDArray[np.int64], tuple[NDArray[Any], ...]]:
    queries, fold = rows.tasks[number]
    centres = rows.centres_of_fold[fold]
    shape = (len(bandwidths), len(tile.quad), kernels.LEFT * kernels.RIGHT)
    logs, doubtful = np.zeros(shape), np.zeros(shape, dtype=np.int32)
    listed = np.zeros((*shape, LISTED), dtype=np.int32)
    kernels.sum_products(
        rows.queries[queries], centres,
        tile.groups, tile.parent, tile.group, tile.left_parent, tile.left_group, tile.quad, tile.right,
        (LOG2_E / (2 * bandwidths**2)).astype(np.float32), active, _chunk(tile, centres.shape[1]),
        _least_trusted(tile, centres.shape[1]), logs, doubtful, listed,
    )  # fmt: skip
    flat = (len(bandwidths), len(tile.position))
    counts = np.where(tile.position < 0, 0, doubtful.reshape(flat).astype(np.int64))
    h, slot = np.nonzero((counts > 0) & (counts <= LISTED))
    repeats = counts[h, slot]
    place = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    h, slot = np.repeat(h, repeats), np.repeat(slot, repeats)
    return logs.reshape(flat) * np.log(2), counts, (h, slot, listed.reshape(*flat, LISTED)[h, slot, place])


def _register_blocks(slots: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which register blocks hold one of the slots, for each bandwidth."""
    return np.any(slots.reshape(len(slots), -1, kernels.LEFT * kernels.RIGHT), axis=2)


def _chunk(tile: Tile, n_centres: int) -> int:
    """Fitting rows at a time: all rows of products in the cache, equal parts, whole vectors."""
    most = min(512, max(128, CACHE_BYTES // (4 * (len(tile.groups) + len(tile.parent)))))
    parts = -(-n_centres // most)
    return -(-n_centres // (32 * parts)) * 32


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
    rate = 1 / (2 * bandwidth**2)
    kernels.log_kernel_sums(rows.queries, rows.centres_of_fold[fold], columns, row.astype(np.int64), rate, out)
    return out


class BandwidthSearch:
    """The best bandwidth of every slot of a tile, over a grid that may grow; evaluates only what may be the best."""

    def __init__(self, tile: Tile, rows: RowSet, grid: BandwidthGrid, run: Run, *, prove: bool = True) -> None:
        self.tile, self.rows, self.grid, self.run, self.prove = tile, rows, grid, run, prove
        self.steps = np.arange(-grid.reach, len(grid.values) + grid.reach)
        self.h = np.array([grid.step(int(step)) for step in self.steps])
        self.sizes = (tile.members >= 0).sum(axis=1)
        shape = (len(self.h), len(tile.position))
        self.upper = np.full(shape, np.inf)  # of F
        self.log_sums = np.full(shape, np.nan)
        self.evaluated, self.resolved = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        self.overflow = np.zeros(shape, dtype=bool)
        self.events: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
        self.low = np.full(shape[1], grid.reach)  # first and last bandwidth allowed so far
        self.high = np.full(shape[1], grid.reach + len(grid.values) - 1)
        self.real = tile.position >= 0
        self.evaluations = 0  # register-block slots of real subsets computed, for the benchmark

    def best(self, report: Report = lambda share: None) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Index into `h` for each slot, and whether it lies inside the grid."""
        todo = self._first_round()
        while todo.any():
            self._evaluate(todo)
            report(FIRST_ROUND_SHARE)
            todo = self._contenders()
            if not todo.any():
                todo = self._grow()
        chosen = np.argmax(self._scores(), axis=0)
        settled = (self.low < chosen) & (chosen < self.high) if self.grid.grows else np.ones(len(chosen), bool)
        return chosen, settled | ~self.real

    def _first_round(self) -> NDArray[np.bool_]:
        first = np.zeros(self.upper.shape, dtype=bool)
        step = COARSE_STEP if self.prove else 1
        first[self.low[0] : self.high[0] + 1 : step] = self.real
        return first

    def _evaluate(self, todo: NDArray[np.bool_]) -> None:
        active = _register_blocks(todo)
        used = np.flatnonzero(active.any(axis=1))
        sums = evaluate(self.tile, self.rows, self.h[used], active[used], self.run)
        fresh = np.repeat(active[used], kernels.LEFT * kernels.RIGHT, axis=1) & ~self.resolved[used] & self.real
        self.evaluations += int(fresh.sum())
        for target, values in ((self.upper, sums.upper), (self.log_sums, sums.log_sums)):
            target[used] = np.where(fresh, values, target[used])
        self.evaluated[used] |= fresh
        self.resolved[used] |= fresh & (sums.doubtful == 0)
        self.overflow[used] |= fresh & sums.overflow
        self.events += [(used[h], slot, row) for h, slot, row in sums.events]

    def _contenders(self) -> NDArray[np.bool_]:
        """What to evaluate next: for each slot the bandwidth of highest bound, while that beats its best score."""
        while True:
            score, bound = self._scores(), self._bounds()
            reached = score.max(axis=0)
            open_ = ~self.resolved & (bound > reached) & self._allowed() & self.real
            top = np.argmax(np.where(open_, bound, -np.inf), axis=0)
            slots = np.flatnonzero(open_.any(axis=0))
            doubtful = slots[self.evaluated[top[slots], slots]]
            if doubtful.size == 0:
                break
            self._resolve(top[doubtful], doubtful)
        todo = np.zeros_like(open_)
        todo[top[slots], slots] = True
        # The runner-up too: rounds get fewer and fuller, which saves more than the evaluations that were not needed.
        open_ &= ~todo & ~self.evaluated
        second = np.argmax(np.where(open_, bound, -np.inf), axis=0)
        todo[second, np.arange(len(second))] |= open_.any(axis=0)
        return todo

    def _grow(self) -> NDArray[np.bool_]:
        """One more step for the slots whose best bandwidth is an end of what was allowed."""
        todo = np.zeros(self.upper.shape, dtype=bool)
        if not self.grid.grows:
            return todo
        chosen = np.argmax(self._scores(), axis=0)
        down = self.real & (chosen == self.low) & (self.low > 0)
        up = self.real & (chosen == self.high) & (self.high < len(self.h) - 1) & ~down
        self.low[down] -= 1
        self.high[up] += 1
        todo[self.low[down], np.flatnonzero(down)] = True
        todo[self.high[up], np.flatnonzero(up)] = True
        if todo.any() and (todo & ~self.evaluated).any():
            return todo & ~self.evaluated
        # All were evaluated beside others already: settle them, and look again.
        return self._contenders() if todo.any() else todo

    def _allowed(self) -> NDArray[np.bool_]:
        index = np.arange(len(self.h))[:, None]
        return (self.low <= index) & (index <= self.high)

    def _scores(self) -> Matrix:
        """Mean log-likelihood, up to a constant, where it is known exactly and allowed; -inf elsewhere."""
        known = self.resolved & self._allowed()
        return np.where(known, self.log_sums / len(self.rows.queries) - np.outer(np.log(self.h), self.sizes), -np.inf)

    def _bounds(self) -> Matrix:
        """Upper bounds of the scores: by the chord of F over t, or by the doubtful rows' bound; inf off the grid."""
        grid = slice(self.low.min(), self.high.max() + 1)
        h, evaluated, upper = self.h[grid], self.evaluated[grid], self.upper[grid]
        n_h = len(h)
        t = np.append(1 / (2 * h**2), 0.0)  # falling; the last is F(0)
        values = np.vstack([upper, np.full(upper.shape[1], self.rows.log_counts)])
        index = np.arange(n_h)[:, None]
        smaller = np.maximum.accumulate(np.where(evaluated, index, -1), axis=0)
        larger = np.minimum.accumulate(np.where(evaluated, index, n_h)[::-1], axis=0)[::-1]
        slot = np.arange(upper.shape[1])
        t_small, t_large = t[smaller], t[larger]  # t of the smaller and of the larger bandwidth; t_small >= t_large
        f_small, f_large = values[smaller, slot], values[larger, slot]
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = (t[:n_h, None] - t_large) / (t_small - t_large)
            chord = f_large + weight * (f_small - f_large)
        F = np.where(evaluated, upper, np.where(smaller < 0, f_large, chord))
        bounds = np.full(self.upper.shape, np.inf)
        bounds[grid] = F / len(self.rows.queries) - np.outer(np.log(h), self.sizes)
        return bounds

    def _resolve(self, h: NDArray[np.intp], slot: NDArray[np.intp]) -> None:
        """Sum the doubtful rows of these (bandwidth, slot) again, exactly."""
        wanted = np.zeros(self.upper.shape, dtype=bool)
        wanted[h, slot] = True
        crowded = wanted & self.overflow
        self.log_sums[crowded] = 0.0
        i, s, row = _events(self.events, wanted & ~crowded)
        all_h, all_slots = np.nonzero(crowded)
        n = len(self.rows.queries)
        i, s = np.append(i, np.repeat(all_h, n)), np.append(s, np.repeat(all_slots, n))
        row = np.append(row, np.tile(np.arange(n), len(all_h)))
        np.add.at(self.log_sums, (i, s), exact_sums(self.tile, self.rows, s, row, self.h[i], self.run))
        self.resolved |= wanted
        self.upper[h, slot] = self.log_sums[h, slot]


def _events(events: list[tuple[IntVector, IntVector, IntVector]], wanted: NDArray[np.bool_]) -> list[IntVector]:
    """The listed (bandwidth, slot, row) whose bandwidth and slot are wanted."""
    h, slot, row = (np.concatenate(parts) for parts in zip(*events, strict=True))
    pick = wanted[h, slot]
    return [h[pick], slot[pick], row[pick]]


def held_out_scores(tile: Tile, rows: RowSet, bandwidth: NDArray[np.float64], run: Run) -> NDArray[np.float64]:
    """mean_i log f_S(row i) of each slot at its own bandwidth; every row counts, far ones summed exactly."""
    values, which = np.unique(bandwidth, return_inverse=True)
    real = tile.position >= 0
    todo = np.zeros((len(values), len(real)), dtype=bool)
    todo[which[real], np.flatnonzero(real)] = True
    active = _register_blocks(todo)
    used = active.any(axis=1)
    sums = evaluate(tile, rows, values[used], active[used], run)
    to_used = np.cumsum(used) - 1
    h, slot = to_used[which], np.arange(len(real))
    total = sums.log_sums[h, slot]
    crowded = np.flatnonzero(real & sums.overflow[h, slot])
    total[crowded] = 0.0
    own = np.zeros(sums.overflow.shape, dtype=bool)
    own[h[real], slot[real]] = True
    own[:, crowded] = False
    _, event_slot, row = _events(sums.events, own)
    event_slot = np.append(event_slot, np.repeat(crowded, len(rows.queries)))
    row = np.append(row, np.tile(np.arange(len(rows.queries)), len(crowded)))
    np.add.at(total, event_slot, exact_sums(tile, rows, event_slot, row, bandwidth[event_slot], run))
    sizes = (tile.members >= 0).sum(axis=1)
    log_density = total / len(rows.queries) - rows.log_counts / len(rows.queries)
    return log_density - sizes * (0.5 * np.log(2 * np.pi) + np.log(bandwidth))
