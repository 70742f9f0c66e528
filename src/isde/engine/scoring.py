"""Subsets through the engine, tile by tile: the bandwidth by cross-validation, then the score on the rows to score.

The tiles of the plan are the chunks of the work. Whoever does one, alone or with others that share its rows, in one
part or in several where memory is short, the bits are the same: sums are cut by the data alone and added in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from isde.arrays import Matrix
from isde.engine.grid import BandwidthGrid
from isde.engine.plan import Piece, build_tile, into_tiles, plan_pieces
from isde.engine.products import SEARCH_SHARE, BandwidthSearch, RowSet, held_out_scores
from isde.run.work import Chunk, ChunkScores, Cost, Means, Report, Tuned
from isde.splits import Folds
from isde.subsets import SubsetFamily

MEASURED_ROWS = 96

KNOWN_BYTES, ASKED_BYTES, TASK_BYTES = 24, 4, 60
"""For each slot: what a search knows of a bandwidth of the grid; masks for each bandwidth that the grid may grow to;
and what a task holds of each bandwidth it evaluates."""

EVALUATED_AT_ONCE = 6
"""Bandwidths a slot is evaluated for in one round, at most on average."""

SCRATCH_BYTES = 40 << 20
"""Of each worker, besides: rows of products over a chunk, bounds of some thousand slots, what its thread does not give
back at once. Measured with eight workers (benchmarks/bench_engine.py memory)."""


@dataclass(frozen=True)
class KernelRows:
    """Rows for kernels with bandwidths of a grid: those of a split, or, with none to score, those to tune it on."""

    cv: RowSet  # to choose the bandwidth with
    held_out: RowSet | None  # to score
    grid: BandwidthGrid
    tuned: Tuned | None = None  # the bandwidths, where they are known

    def to_tune(self, share: float) -> KernelRows:
        """For the search alone, by a share of the rows."""
        return replace(self, cv=_some(self.cv, share), held_out=None)

    @classmethod
    def of(cls, X_fit: Matrix, X_score: Matrix, folds: Folds, grid: BandwidthGrid) -> KernelRows:
        keeps_normal = grid.keeps_normal
        cv, held_out = RowSet.of_folds(X_fit, folds, keeps_normal), RowSet.of_samples(X_fit, X_score, keeps_normal)
        return cls(cv, held_out, grid)


@lru_cache(maxsize=8)  # the same for all splits of a table
def kernel_chunks(subsets: SubsetFamily, above: int = 0) -> tuple[Chunk, ...]:
    """The tiles of the plan."""
    return tuple(
        Chunk(
            f"kernels-{above + 1}-{subsets.max_size}-{number}",
            _count(subsets, pieces),
            sum(piece.n_octets for piece in pieces),
            content=pieces,
            tuned=True,
        )
        for number, pieces in enumerate(plan_pieces(subsets, above))
    )


def _count(subsets: SubsetFamily, pieces: tuple[Piece, ...]) -> int:
    """How many subsets of the family some pieces hold."""
    if subsets.complete < subsets.max_size:  # not every union is one of them
        return build_tile(subsets, pieces).n_subsets
    return sum(piece.n_subsets(subsets.max_size) for piece in pieces)


def score_chunk(rows: KernelRows, subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
    """Scores and bandwidths of the subsets of a tile, in parts that the memory allows."""
    parts = into_tiles(chunk.content, _slots_allowed(rows.grid, means))
    found = []
    for number, pieces in enumerate(parts):
        found.append(
            _score_tile(rows, subsets, pieces, replace(means, report=_within(means.report, number, len(parts))))
        )
    return ChunkScores(*(np.concatenate(values) for values in zip(*found, strict=True)))


def _within(report: Report, number: int, n_parts: int) -> Report:
    return lambda share: report((number + share) / n_parts)


def _slots_allowed(grid: BandwidthGrid, means: Means) -> int:
    """Of a tile, for the memory that there is."""
    known, task = _bytes_per_slot(grid)
    return max(1, (means.memory - means.n_workers * SCRATCH_BYTES) // (known + means.n_workers * task))


def _bytes_per_slot(grid: BandwidthGrid) -> tuple[int, int]:
    """What a tile holds for each of its slots, and each task."""
    widest = len(grid.values) + grid.reach + grid.reach_above
    return KNOWN_BYTES * len(grid.values) + ASKED_BYTES * widest, TASK_BYTES * EVALUATED_AT_ONCE


def expected_memory(grid: BandwidthGrid, chunk: Chunk, means: Means) -> int:
    """Bytes that `score_chunk` will need, at most."""
    known, task = _bytes_per_slot(grid)
    slots = max(sum(piece.n_slots for piece in part) for part in into_tiles(chunk.content, _slots_allowed(grid, means)))
    return slots * known + means.n_workers * (slots * task + SCRATCH_BYTES)


def _score_tile(rows: KernelRows, subsets: SubsetFamily, pieces: tuple[Piece, ...], means: Means) -> tuple[Any, ...]:
    tile = build_tile(subsets, pieces)
    real = tile.position >= 0
    if rows.tuned is None:
        search = BandwidthSearch(tile, rows.cv, rows.grid, means.run)
        chosen, settled = search.best(means.report)
        bandwidths, unsettled = search.h[chosen], ~settled
    else:
        bandwidths, unsettled = rows.tuned.bandwidths[tile.position], rows.tuned.unsettled[tile.position]
    if rows.held_out is None:
        scores = search.cross_validated()
    else:
        means.report(SEARCH_SHARE if rows.tuned is None else 0.0)
        scores = held_out_scores(tile, rows.held_out, bandwidths, means.run)
    return tile.position[real], scores[real], bandwidths[real], unsettled[real]


def expected_cost(rows: KernelRows, subsets: SubsetFamily, chunk: Chunk, means: Means) -> Cost:
    """What `score_chunk` will need, from a few of the rows.

    What its sums take grows with the rows, what lies between them does not.
    """
    parts = into_tiles(chunk.content, _slots_allowed(rows.grid, means))
    octets = [sum(piece.n_octets for piece in part) for part in parts]
    middle = int(np.argsort(octets)[len(octets) // 2])
    for n in (2, MEASURED_ROWS):  # with two, compiled code is loaded or made
        cv, held_out = (rows.cv if rows.tuned is None else None), rows.held_out
        share, clock = min(1.0, n / sum(len(own.queries) for own in (cv, held_out) if own)), _Clock()
        few = replace(rows, cv=_some(rows.cv, share), held_out=held_out and _some(held_out, share))
        start = time.perf_counter()
        _score_tile(few, subsets, parts[middle], Means(run=clock.run))
        between = time.perf_counter() - start - clock.seconds
    whole = sum(octets) / octets[middle]
    return Cost(whole * clock.seconds / share, whole * between, expected_memory(rows.grid, chunk, means))


class _Clock:
    """Runs tasks one after the other and adds up their time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterable[Any]:
        for task in tasks:
            start = time.perf_counter()
            result = function(*task)
            self.seconds += time.perf_counter() - start
            yield result


def _some(rows: RowSet, share: float) -> RowSet:
    """A share of the queries, evenly from all folds."""
    pick = np.linspace(0, len(rows.queries) - 1, max(1, round(share * len(rows.queries)))).astype(int)
    return rows.of_queries(pick)
