"""How sure is a partition: the same analysis on random parts of the rows, and on rows whose structure is destroyed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
from sklearn.utils import check_random_state

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.chance import all_margins
from isde.data.words import in_braces
from isde.errors import ISDEError
from isde.partitions import Partition, RandomState
from isde.progress import progress_bar
from isde.scores import SubsetScores
from isde.solvers import best_partitions, select_partition
from isde.subsets import Subset

Score = Callable[[Matrix, int], SubsetScores]
"""The score table of some rows; the seed draws its splits."""

Found = TypeVar("Found")

LISTED = 1000, 100, 10
"""Best partitions among which the simplest is looked for: the first of these numbers that can be told apart."""


@dataclass(frozen=True, eq=False)
class Stability(FrozenArrays):
    """What resampling says of a partition."""

    partition: Partition
    names: tuple[str, ...]
    together: Matrix  # share of resamples in which two columns share a block, (d, d)
    partitions: list[tuple[Partition, float]]  # every partition met, with its share of resamples, most frequent first
    gains: Matrix  # of each block of the partition over its columns alone, in each resample, nats, (n, blocks)
    margins: Matrix  # of each block over its best division into smaller ones; NaN for single columns, (n, blocks)
    noise: Matrix  # largest margin of any subset of each size >= 2 in rows without structure, (n_null, k - 1)
    simplest: Partition  # the one with the most blocks that is within one standard error of the partition
    simplest_error: float  # standard error of the difference of the two scores, nats

    @property
    def same_partition(self) -> float:
        """Share of resamples that return the partition itself."""
        return dict(self.partitions).get(self.partition, 0.0)

    @property
    def block_confidence(self) -> Vector:
        """For each block of the partition, the share of resamples in which it is a block."""
        return np.array([sum(share for met, share in self.partitions if block in met) for block in self.partition])

    @property
    def block_p_values(self) -> Vector:
        """For each block, how often chance alone gives some subset of its size its margin; NaN for single columns.

        The margin, not the gain: a pair with a stranger gains what the pair does, and nothing over the pair and the
        stranger apart. (1 + number of null resamples whose largest margin is at least as large as the mean one) /
        (1 + null resamples): with n_null = 20 no p-value is below 0.048.
        """
        p_values = np.full(len(self.partition), np.nan)
        for i, block in enumerate(self.partition):
            if len(block) > 1 and len(self.noise):
                reached = (self.noise[:, len(block) - 2] >= self.margins[:, i].mean()).sum()
                p_values[i] = (1 + reached) / (1 + len(self.noise))
        return p_values

    def __str__(self) -> str:
        lines = [f"{self.same_partition:.0%} of {len(self.gains)} resamples return the same partition"]
        for i, block in enumerate(self.partition):
            line = f"  {self._label(block)}   in {self.block_confidence[i]:.0%}"
            if len(block) > 1:
                line += f"   gain {self.gains[:, i].mean():.4f} nats"
            if len(block) > 2:
                line += f", {self.margins[:, i].mean():.4f} over its best division"
            if len(block) > 1 and len(self.noise):
                line += f", by chance p <= {self.block_p_values[i]:.2g}"
            lines.append(line)
        if self.simplest != self.partition:
            finer = " ".join(self._label(block) for block in self.simplest if block not in self.partition)
            lines.append(f"within one standard error ({self.simplest_error:.4f} nats), and simpler: with {finer}")
        return "\n".join(lines)

    def _label(self, block: Sequence[int]) -> str:
        return in_braces(self.names[c] for c in block)


@dataclass(frozen=True)
class Parts:
    """Random parts of the rows, and further ones without structure: every column is permuted by itself."""

    n: int
    n_null: int  # of those without structure
    share: float  # of the rows, in a part
    random_state: RandomState
    verbose: int

    def __post_init__(self) -> None:
        n, n_null = self.n, self.n_null
        if not all(isinstance(number, int | np.integer) for number in (n, n_null)) or n < 2 or n_null < 0:
            raise ValueError(f"n={n} and n_null={n_null}: at least 2 resamples, and not less than 0 without structure.")

    def each(self, analyse: Callable[[Matrix, int], Found], X: Matrix) -> Iterator[Found]:
        """What is found in the `n` parts, then in the `n_null` without structure; of each, the rows and a seed."""
        rows, rng = self.rows_of(len(X)), check_random_state(self.random_state)
        with progress_bar(self.n + self.n_null, "Resampling", show=self.verbose > 0) as advance:
            for number in range(self.n + self.n_null):
                part = X[rng.permutation(len(X))[:rows]]
                if number >= self.n:
                    part = np.column_stack([rng.permutation(column) for column in part.T])
                yield analyse(part, rng.randint(2**31 - 1))
                advance(1)

    def rows_of(self, n_rows: int) -> int:
        """How many of so many rows a part has."""
        rows = round(self.share * n_rows) if 0 < self.share < 1 else 0
        if not 8 <= rows < n_rows:
            raise ValueError(f"share={self.share} of {n_rows} rows must be at least 8 of them, and not all.")
        return rows


def assess(score: Score, X: Matrix, scores: SubsetScores, partition: Partition, parts: Parts) -> Stability:
    """Resample rows without replacement, select again, and compare with rows whose columns are permuted apart."""
    tables = parts.each(score, X)
    first = next(tables)  # wrong parameters are refused before the search for candidates
    candidates = _near_best(scores, partition)
    blocks = sorted({block for candidate in candidates for block in candidate})
    position, own = ([scores.subsets.index(block) for block in some] for some in (blocks, partition))
    selected: list[Partition] = []
    block_scores, gains, margins = [], [], []
    for table in (first, *islice(tables, parts.n - 1)):
        selected.append(select_partition(table).partition)
        block_scores.append(table.scores[position])
        gains.append(all_gains(table)[own])
        margins.append(all_margins(table)[own])
    noise = [largest_margins(table) for table in tables]
    counts, rows = Counter(selected), parts.rows_of(len(X))
    differences = _differences(np.array(block_scores), blocks, candidates)
    errors = [_standard_error(difference, rows, len(X)) for difference in differences]
    simplest = simplest_within(scores, candidates, errors)
    return Stability(
        partition,
        scores.names,
        together(selected, X.shape[1]),
        [(met, count / parts.n) for met, count in counts.most_common()],
        np.array(gains),
        np.array(margins),
        np.array(noise).reshape(parts.n_null, scores.max_block_size - 1),
        simplest,
        errors[candidates.index(simplest)],
    )


def _near_best(scores: SubsetScores, partition: Partition) -> list[Partition]:
    """The partition and the best ones after it, as many as can be told apart."""
    for n in LISTED:
        try:
            found = [best.partition for best in best_partitions(scores, n)]
        except ISDEError:  # too many are about equal
            continue
        return [partition, *(other for other in found if other != partition)]
    return [partition]


def _differences(block_scores: Matrix, blocks: list[Subset], candidates: list[Partition]) -> list[Vector]:
    """What each candidate scores more than the first one, in each resample."""
    column = {block: block_scores[:, i] for i, block in enumerate(blocks)}
    first = set(candidates[0])
    nothing = np.zeros(len(block_scores))
    with np.errstate(invalid="ignore"):  # -inf minus -inf: neither has a density in these rows
        return [
            sum((column[block] for block in set(other) - first), nothing)
            - sum((column[block] for block in first - set(other)), nothing)
            for other in candidates
        ]


def simplest_within(scores: SubsetScores, candidates: Sequence[Partition], errors: Sequence[float]) -> Partition:
    """The candidate with the most blocks that scores at most its error less than the first; of equals, the first."""
    totals = [sum(scores.objective(block) for block in candidate) for candidate in candidates]
    close = [
        candidate
        for candidate, total, error in zip(candidates, totals, errors, strict=True)
        if total == totals[0] or total >= totals[0] - error
    ]
    return max(close, key=len)


def all_gains(scores: SubsetScores) -> Vector:
    """The gain of every subset over its columns alone; 0 where columns have no density of their own.

    A Gaussian has none for a column that happens to have a single value among the rows drawn.
    """
    return np.where(np.isnan(scores.gains), 0.0, scores.gains)


def largest_margins(scores: SubsetScores) -> Vector:
    """The largest margin of any subset of each size from 2 on."""
    margins, sizes = all_margins(scores), range(2, scores.max_block_size + 1)
    return np.array([margins[scores.subsets.of_size(size)].max() for size in sizes])


def _standard_error(values: Vector, n_drawn: int, n_rows: int) -> float:
    """Of a statistic of all rows, from its values for parts of them: the delete-d jackknife (Shao and Wu 1989).

    Parts of half the rows spread as much as data sets of the full size do: they overlap.
    """
    finite = values[np.isfinite(values)]  # -inf: no density for the partition in these rows
    if len(finite) < 2:
        return 0.0
    return float(finite.std(ddof=1) * np.sqrt(n_drawn / (n_rows - n_drawn)))


def together(structures: Sequence[Sequence[Subset]], n_columns: int) -> Matrix:
    """The share of structures, each a list of blocks or cliques, in which two columns share one of these."""
    shares = np.zeros((n_columns, n_columns))
    for blocks in structures:
        share = np.zeros((n_columns, n_columns), dtype=bool)
        for block in blocks:
            share[np.ix_(block, block)] = True
        shares += share
    return shares / len(structures)
