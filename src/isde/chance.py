"""What chance gives: how much subsets gain where they should not, and what is charged for it.

On the copula scale only the order of a column's values enters, and tied values get a random order. A table whose
columns are permuted each by itself is then a table of random ranks, whatever its columns were: chance is the same for
all tables with as many rows, and columns of random numbers show it, as many as are wanted. They are drawn in groups:
the columns of a group depend on each other, groups are independent.

The margin of a subset is what it scores more than its best division into smaller ones. It is chance for columns of as
many groups, which are independent; and for columns of two groups, two true blocks merged, or a true block joined by a
stranger: there the models have to be larger than for independent columns, and chance gives more. For each model, size
and kind the margins in all tables drawn are pooled. A subset of s out of d columns may pass by chance with
probability alpha / (models * C(d, s)); where so small a share lies beyond the margins drawn, they are continued by the
tail of a likelihood ratio, exp(-rows * margin): rows times margin has that tail for a model of one parameter (half a
chi-square), and a shorter one for kernels, which are charged too much there rather than too little.

A block is charged for its margin, the larger of both kinds, and for its dearest division: by the same rule independent
columns stay apart, true blocks are not merged, and none is joined by a stranger. Among independent columns a larger
block has to pass what its pairs are charged and its own margin at once, which hardly ever happens: pairs have all of
alpha.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.data.table import default_names
from isde.errors import CheckpointError, ISDEError, ISDEWarning
from isde.marginals.marginal import SubsetScorer
from isde.run.clusters import choose_executor
from isde.run.executors import LocalExecutor
from isde.run.store import MemoryStore, Store
from isde.run.work import ChunkScores, Means
from isde.score_tables import How, score_models
from isde.score_tasks import TUNED_SHARE, TUNED_SPLITS, SplitRows, are_tuned_together
from isde.scores import SubsetScores
from isde.solvers.dominance import best_divisions
from isde.splits import Split, draw_splits, resolve_split, rows_at_most, split_key
from isde.subsets import SubsetFamily

TABLES = 40
"""Tables drawn, fewer where they cost too much."""

ROWS = 20, 50, 100, 200
"""Rows of a table drawn: the largest of these that the data have. Rows times margin has the same law for all numbers of
rows, or, for kernels, a law that shrinks: what fewer rows show is enough, and the same for many tables."""

FARTHEST_APART = 20
"""Times the rows of which a split is one, at most, that a table drawn has: splits hardly share rows then."""

COLUMNS = 16
"""Columns of a table drawn, or as many as the data have: a table of few columns shows few subsets at a time."""

WITHIN_GROUPS = 0.9
"""Correlation of two columns of a group. Gaussian models show the same chance for any, magnitudes where it is strong.
Kernels show more of it for 0.4 (rows times margin 1.5 to 2.2 in place of 0.3), but charging that loses one XOR triple
of seven at 100 rows, and strangers hardly ever join weak pairs of theirs without it (1 of 360 tables; trials)."""

RANK = 10
"""The largest margin that is believed: its share of chance is known to a third. (With 20 tables and rank 5, six draws
put false blocks at 1 to 7 % where 5 % were meant; rank 10 puts them at 2 to 5 %.)"""

FARTHEST_TAIL = 1e6
"""How much rarer than the margins drawn a margin may be that is charged for."""

AFFORDABLE = 4e11
"""Products of kernels: some 20 s of one core. Tables cost no more than that, or no more than scoring the data does."""

MARGINS = 1 << 21
"""Margins of a model that are drawn, at most, but for one whole table: a million subsets show the largest margins of a
million, and a table of as many takes minutes. Tables of up to 50,000 subsets are as many as they were."""

OVERHEAD, COLUMN, TIMES = 3.6e5, 1.2e9, 20
"""Products that take as long as what a subset of a split costs besides them, and a column scored by itself; how many
times what scoring the data costs may be spent where that is little."""


@dataclass(frozen=True, eq=False)
class Chance(FrozenArrays):
    """Margins of subsets in tables of independent groups of columns."""

    n_tables: int
    n_rows: int  # of a table, or of which a split is one where splits draw their own
    n_scored: int  # rows of a table that any split scores, no more than n_rows: margins are then charged too much
    n_columns: int  # of a table
    margins: tuple[tuple[tuple[Vector, ...], ...], ...]  # by model, size from 2 on and kind; largest first, nats a row
    counts: tuple[tuple[int, ...], ...] | None = None  # how many there were, by size and kind; None: all are in margins

    def charges(self, subsets: SubsetFamily, n_rows: int, alpha: float) -> list[Vector]:
        """What each model is charged for each subset of a table with so many rows, nats a row."""
        return [self._charges_by_size(model, subsets, alpha)[subsets.sizes] / n_rows for model in self.margins]

    def smallest_alpha(self, subsets: SubsetFamily) -> float:
        """The smallest probability of a false block that the tables drawn can tell.

        Of sizes of which every subset is scored; a larger one by list is charged by the tail, too much rather than too
        little.
        """
        return max(
            RANK / count / FARTHEST_TAIL * self._shares(subsets, size)
            for model in self.margins
            for size, kinds in enumerate(model[: subsets.max_size - 1], start=2)
            for _, count in self._counted(size, kinds)
        )

    def _charges_by_size(self, model: Sequence[Sequence[Vector]], subsets: SubsetFamily, alpha: float) -> Vector:
        """Rows times charge for a subset of each size, from 0 on."""
        charges = [0.0, 0.0]
        for size, kinds in enumerate(model, start=2):
            dearest_division = max(charges[part] + charges[size - part] for part in range(1, size // 2 + 1))
            probability = alpha / self._shares(subsets, size)
            margins = (self._margin(pooled, count, probability) for pooled, count in self._counted(size, kinds))
            charges.append(dearest_division + max(margins))
        return np.array(charges)

    def _counted(self, size: int, kinds: Sequence[Vector]) -> list[tuple[Vector, int]]:
        """The margins of one size, each kind with how many there were."""
        counts = map(len, kinds) if self.counts is None else self.counts[size - 2]
        return list(zip(kinds, counts, strict=True))

    def _shares(self, subsets: SubsetFamily, size: int) -> int:
        """Into how many parts alpha is cut for a subset of one size."""
        return len(self.margins) * comb(subsets.n_columns, size)

    def _margin(self, pooled: Vector, count: int, probability: float) -> float:
        """Rows times the margin that a subset passes by chance with a probability, not below 0."""
        rank = max(int(probability * count), min(RANK, count))
        beyond = max(np.log(rank / (probability * count)), 0.0) / self.n_scored
        return max(float(pooled[rank - 1] + beyond), 0.0) * self.n_rows


@dataclass(frozen=True, eq=False)
class SplitTable(FrozenArrays):
    """A table by what chance depends on: its splits, and the rows that they are of."""

    split: Any  # as it was asked for: a name, a share or a splitter
    splits: tuple[Split, ...]
    n_rows: int
    max_split_rows: int | None = None

    @property
    def is_named(self) -> bool:
        """Whether such splits can be made of any number of rows: a splitter may be made for its own."""
        return isinstance(self.split, str | float | None)

    @property
    def own_rows(self) -> int:
        """Of how many rows a split is one."""
        return rows_at_most(self.n_rows, self.max_split_rows)


@dataclass(frozen=True)
class Shape:
    """Of a table without structure: tables of one shape differ by their seed alone."""

    split: Any
    shared: bool  # whether splits share what is tuned
    max_size: int  # of subsets
    n_rows: int  # of which a split is one
    drawn_rows: int  # as many, or more where splits draw their own
    n_columns: int

    @property
    def subsets(self) -> SubsetFamily:
        return SubsetFamily(self.n_columns, self.max_size)


def draw_chance(
    scorer: SubsetScorer,
    table: SplitTable,
    subsets: SubsetFamily,
    n_jobs: int | None,
    store: Store | None = None,
    *,
    max_size: int | None = None,
) -> Chance:
    """Margins under independence for tables like one; those in a store are known.

    Of subsets of up to `max_size` columns; where that is more than `subsets` has, those are too many to score, and
    tables as wide as the data would have as many: they are then as wide as may cost what little data may.
    """
    shape, n_tables = affordable_tables(table, subsets, subsets.max_size if max_size is None else max_size)
    if store is not None or not table.is_named:
        return _draw(scorer, shape, n_tables, n_jobs, store)
    return _draw_once(scorer, shape, n_tables, n_jobs)


def affordable_tables(table: SplitTable, subsets: SubsetFamily, max_size: int) -> tuple[Shape, int]:
    """The shape of the tables to draw, and how many of them: see `draw_chance`."""
    named, own_rows = table.is_named, table.own_rows
    rows = max((rows for rows in ROWS if rows <= own_rows), default=own_rows) if named else own_rows
    drawn_rows = int(rows * min(table.n_rows / own_rows, FARTHEST_APART)) if named else table.n_rows
    fewer = [
        (fit[: len(fit) * rows // own_rows], score[: len(score) * rows // own_rows]) for fit, score in table.splits
    ]
    shared = are_tuned_together(table.splits)
    own, part = _work(table.splits, shared) * len(subsets) + COLUMN * subsets.n_columns, _work(fewer, shared)
    affordable, narrowest = max(own, min(TIMES * own, AFFORDABLE)), subsets.n_columns
    if max_size > subsets.max_size:
        affordable, narrowest = min(TIMES * own, AFFORDABLE), min(COLUMNS, subsets.n_columns)
    widths = range(max(COLUMNS, subsets.n_columns), narrowest - 1, -1)
    costs = {width: part * len(SubsetFamily(width, max_size)) for width in widths}
    width = next((w for w in widths if TABLES * costs[w] <= affordable), narrowest)
    most = min(affordable / costs[width], MARGINS / len(SubsetFamily(width, max_size)))
    return Shape(table.split, shared, max_size, rows, drawn_rows, width), int(np.clip(most, 1, TABLES))


def _work(splits: Sequence[Split], shared: bool) -> float:
    """Products of kernels for each subset, or what takes as long: splits may share their searches."""
    n_fit = len(splits[0][0])
    n_searches = TUNED_SPLITS * TUNED_SHARE if shared else len(splits)
    search = 6 * n_fit * n_fit * n_searches
    return float(search + sum(len(fit) * len(score) + OVERHEAD for fit, score in splits))


@dataclass(frozen=True)
class DrawnTable(FrozenArrays):
    """Rows of independent groups of columns, and splits of them."""

    X: Matrix
    splits: tuple[Split, ...]
    shared: bool  # whether they share what is tuned
    max_size: int
    most: int | None  # margins of each model, size and kind that are kept, the largest; None: all

    @property
    def key(self) -> str:
        """Follows from the splits and the number of rows drawn, as the rows do from the seed."""
        digest = blake2b(self.X.tobytes(), digest_size=8)
        digest.update("".join(map(split_key, self.splits)).encode())
        return f"{self.max_size}-{self.most}-{'shared-' if self.shared else ''}{digest.hexdigest()}"


def _draw(scorer: SubsetScorer, shape: Shape, n_tables: int, n_jobs: int | None, store: Store | None = None) -> Chance:
    subsets = shape.subsets
    # As wide as the data: alpha is shared by all subsets of a size, and no smaller margin is ever looked at.
    most = max(RANK, n_tables) if shape.n_columns > COLUMNS else None
    # Splits are drawn one after the other: a splitter may draw from a generator of its own.
    drawn = [_draw_table(shape, seed, most) for seed in range(n_tables)]
    found = _score_tables(scorer, drawn, n_jobs, MemoryStore() if store is None else store)
    kinds = _kinds(subsets)
    margins = tuple(
        tuple(tuple(_pooled(found, model * len(subsets), own, len(subsets)) for own in of_size) for of_size in kinds)
        for model in range(scorer.n_models)
    )
    counts = None if most is None else tuple(tuple(n_tables * len(own) for own in of_size) for of_size in kinds)
    scored = np.unique(np.concatenate([score for _, score in drawn[0].splits]))
    return Chance(n_tables, shape.n_rows, min(len(scored), shape.n_rows), shape.n_columns, margins, counts)


def _score_tables(
    scorer: SubsetScorer, drawn: Sequence[DrawnTable], n_jobs: int | None, store: Store
) -> list[ChunkScores]:
    """The margins of each table, by position among the subsets of the first model, then of the next."""
    known = frozenset(store.finished())
    todo = [table for table in drawn if table.key not in known]
    executor = choose_executor(n_jobs, shares=len(todo) == 1)  # workers have a table each, or one together
    # Small matrices by many threads take many times as long. Few rows are said of the data themselves.
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ISDEWarning)
        with closing(executor.map(partial(_margins, scorer), todo, lambda table: lambda share: None)) as done:
            for table, found in done:
                if found is None:
                    raise ISDEError("Drawing what chance gives ended its process again and again: try n_jobs=1.")
                store.put(table.key, found)
    return [_checked(table, store.get(table.key), scorer.n_models) for table in drawn]


def _checked(table: DrawnTable, found: ChunkScores, n_models: int) -> ChunkScores:
    """What a store had, or `CheckpointError` where that cannot be margins of the table."""
    n_columns = table.X.shape[1]
    n_subsets = len(SubsetFamily(n_columns, table.max_size))
    have_margins = np.arange(n_models * n_subsets) % n_subsets >= n_columns  # columns by themselves have none
    n_kept = len(have_margins) if table.most is None else len(found.positions)
    if not found.are_sound(n_kept, have_margins):
        raise CheckpointError(
            f"What the run holds for chance was not drawn by isde ({table.key}): give another folder."
        )
    return found


def _pooled(tables: Sequence[ChunkScores], first: int, subsets: NDArray[np.intp], n_subsets: int) -> Vector:
    """What some subsets have in all tables, those that were kept, largest first."""
    wanted = np.zeros(n_subsets, dtype=bool)
    wanted[subsets] = True
    values = []
    for table in tables:
        own = (table.positions >= first) & (table.positions < first + n_subsets)
        here = wanted[table.positions[own] - first]
        values.append(table.scores[own][here])
    return np.sort(np.concatenate(values))[::-1]


def _kinds(subsets: SubsetFamily) -> list[list[NDArray[np.intp]]]:
    """For each size from 2 on, which subsets have columns of as many groups, and which of two groups."""
    group, kinds = _groups(subsets.n_columns, subsets.max_size), []
    for size in range(2, subsets.max_size + 1):
        of_members = np.sort(group[subsets.members(size)], axis=1)
        n_groups = 1 + (np.diff(of_members, axis=1) > 0).sum(axis=1)
        found = (subsets.offsets[size] + np.flatnonzero(n_groups == n) for n in dict.fromkeys((size, 2)))
        kinds.append([positions for positions in found if positions.size])
    return kinds


def _groups(n_columns: int, max_size: int) -> NDArray[np.intp]:
    """The group of each column: groups are as large as a block that can be joined by one more column."""
    return np.arange(n_columns) // min(max(max_size - 1, 2), (n_columns + 1) // 2)


_draw_once: Callable[..., Chance] = lru_cache(maxsize=64)(_draw)
"""Chance is the same for all tables of a shape."""


def _draw_table(shape: Shape, seed: int, most: int | None = None) -> DrawnTable:
    rng, group = np.random.default_rng(seed), _groups(shape.n_columns, shape.max_size)
    common = rng.standard_normal((shape.drawn_rows, group[-1] + 1))[:, group]
    X = np.sqrt(WITHIN_GROUPS) * common + np.sqrt(1 - WITHIN_GROUPS) * rng.standard_normal(common.shape)
    splits = draw_splits(resolve_split(shape.split, seed), X, shape.n_rows)
    return DrawnTable(X, tuple(splits), shape.shared, shape.max_size, most)


def _margins(scorer: SubsetScorer, table: DrawnTable, means: Means) -> ChunkScores:
    """Of all subsets, or of those with the largest margins of their size and kind, by each model."""
    subsets, names = SubsetFamily(table.X.shape[1], table.max_size), default_names(table.X.shape[1])
    rows, how = SplitRows(scorer, table.X, table.splits), How(1, executor=LocalExecutor(means.n_workers))
    models = score_models(rows, subsets, names, how, shared=table.shared)
    margins = np.concatenate([all_margins(model) for model in models])
    kept = np.arange(len(margins))
    if table.most is not None:
        kinds = [own for of_size in _kinds(subsets) for own in of_size]
        every = [model * len(subsets) + own for model in range(len(models)) for own in kinds]
        kept = np.unique(np.concatenate([own[np.argsort(-margins[own])[: table.most]] for own in every]))
    return ChunkScores.without_bandwidths(kept, margins[kept])


def all_margins(scores: SubsetScores) -> Vector:
    """What every subset scores more than its best division into smaller ones; NaN for single columns.

    0 where neither has a density.
    """
    with np.errstate(invalid="ignore"):
        margins = scores.scores - best_divisions(scores.subsets, scores.scores)
    margins[np.isnan(margins)] = 0.0
    margins[: scores.n_columns] = np.nan
    return margins
