"""How sure is a partition: the same analysis on random parts of the rows, and on rows whose structure is destroyed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from isde.partitions import Partition, RandomState
from isde.progress import progress_bar
from isde.scores import SubsetScores
from isde.solvers import best_partitions, select_partition

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Score = Callable[[Matrix, int], SubsetScores]
"""The score table of some rows; the seed draws its splits."""

MOST_LISTED = 1000
"""Partitions looked at for the simplest one within a tolerance."""


@dataclass(frozen=True, eq=False)
class Stability:
    """What resampling says of a partition."""

    partition: Partition
    names: tuple[str, ...]
    together: Matrix  # share of resamples in which two columns share a block, (d, d)
    partitions: list[tuple[Partition, float]]  # every partition met, with its share of resamples, most frequent first
    gains: Matrix  # gain of each block of the partition in each resample, nats, (n, blocks)
    noise: Matrix  # largest gain of any subset of each size >= 2 in rows without structure, (n_null, k - 1)
    simplest: Partition  # the one with the most blocks within one standard error of the best; see `one_error`
    one_error: float  # standard error of what the partition gains over single columns, nats

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
        """For each block, how often chance alone gives some subset of its size its mean gain; NaN for single columns.

        (1 + number of null resamples whose largest gain is at least as large) / (1 + null resamples): with n_null = 20
        no p-value is below 0.048.
        """
        p_values = np.full(len(self.partition), np.nan)
        for i, block in enumerate(self.partition):
            if len(block) > 1 and len(self.noise):
                reached = (self.noise[:, len(block) - 2] >= self.gains[:, i].mean()).sum()
                p_values[i] = (1 + reached) / (1 + len(self.noise))
        return p_values

    def __str__(self) -> str:
        lines = [f"{self.same_partition:.0%} of {len(self.gains)} resamples return the same partition"]
        rows = zip(self.partition, self.block_confidence, self.gains.mean(axis=0), self.block_p_values, strict=True)
        for block, confidence, gain, p_value in rows:
            label = ", ".join(self.names[c] for c in block)
            beside = "" if np.isnan(p_value) else f"   gain {gain:.4f} nats, by chance p <= {p_value:.2g}"
            lines.append(f"  {{{label}}}   in {confidence:.0%}{beside}")
        return "\n".join(lines)


def assess(
    score: Score,
    X: Matrix,
    scores: SubsetScores,
    partition: Partition,
    *,
    n: int,
    n_null: int,
    share: float,
    random_state: RandomState,
    verbose: int,
) -> Stability:
    """Resample rows without replacement, select again, and compare with rows whose columns are permuted apart."""
    if not all(isinstance(number, int | np.integer) for number in (n, n_null)) or n < 2 or n_null < 0:
        raise ValueError(f"n={n} and n_null={n_null}: at least 2 resamples, and not less than 0 without structure.")
    rows = round(share * len(X))
    if not 0 < share < 1 or rows < 8:
        raise ValueError(f"share={share} of {len(X)} rows must leave at least 8 of them, and be less than 1.")
    rng = check_random_state(random_state)
    selected: list[Partition] = []
    gains, noise = [], []
    with progress_bar(n + n_null, "Resampling", show=verbose > 0) as advance:
        for _ in range(n):
            table = score(X[rng.permutation(len(X))[:rows]], rng.randint(2**31 - 1))
            selected.append(select_partition(table).partition)
            gains.append(all_gains(table)[[table.subsets.index(block) for block in partition]])
            advance(1)
        for _ in range(n_null):
            part = X[rng.permutation(len(X))[:rows]]
            apart = np.column_stack([rng.permutation(column) for column in part.T])
            noise.append(largest_gains(score(apart, rng.randint(2**31 - 1))))
            advance(1)
    counts = Counter(selected)
    one_error = _standard_error(np.sum(gains, axis=1), rows, len(X))
    return Stability(
        partition,
        scores.names,
        _together(selected, X.shape[1]),
        [(met, count / n) for met, count in counts.most_common()],
        np.array(gains),
        np.array(noise).reshape(n_null, scores.max_block_size - 1),
        simplest_within(scores, one_error),
        one_error,
    )


def simplest_within(scores: SubsetScores, tolerance: float) -> Partition:
    """The partition with the most blocks that scores at most `tolerance` less than the best; of equals, the best.

    Exact where at most 1,000 partitions come so close; otherwise the simplest of the 1,000 best.
    """
    best = best_partitions(scores, MOST_LISTED)
    close = [found.partition for found in best if found.score >= best[0].score - tolerance]
    return max(close, key=len)


def all_gains(scores: SubsetScores) -> Vector:
    """The gain of every subset over its columns alone; 0 where columns have no density of their own.

    A Gaussian has none for a column that happens to have a single value among the rows drawn.
    """
    with np.errstate(invalid="ignore"):
        gains = scores.scores - scores.subsets.sum_over_members(scores.scores[: scores.n_columns])
    return np.where(np.isnan(gains), 0.0, gains)


def largest_gains(scores: SubsetScores) -> Vector:
    """The largest gain of any subset of each size from 2 on."""
    gains, sizes = all_gains(scores), range(2, scores.max_block_size + 1)
    return np.array([gains[scores.subsets.of_size(size)].max() for size in sizes])


def _standard_error(values: Vector, n_drawn: int, n_rows: int) -> float:
    """Of a statistic of all rows, from its values for parts of them: the delete-d jackknife (Shao and Wu 1989).

    Parts of half the rows spread as much as data sets of the full size do: they overlap.
    """
    finite = values[np.isfinite(values)]  # -inf: no density for the partition in these rows
    if len(finite) < 2:
        return 0.0
    return float(finite.std(ddof=1) * np.sqrt(n_drawn / (n_rows - n_drawn)))


def _together(partitions: list[Partition], n_columns: int) -> Matrix:
    together = np.zeros((n_columns, n_columns))
    for partition in partitions:
        for block in partition:
            together[np.ix_(block, block)] += 1
    return together / len(partitions)
