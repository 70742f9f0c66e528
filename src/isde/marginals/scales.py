"""Blocks on both scales: a stack of the data as they are, and a stack of the columns' normal scores.

Skewed and clumped columns make shapes that no kernel of one width fits; their normal scores are plain. Where columns
are plain already and their dependence is not, scores only bend it. Cross-validation weighs the two for each block
(`engine.scales`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isde.archive import beside, over, under
from isde.arrays import Matrix, Vector
from isde.contents import FARTHEST, Layout, check_layout, numbers, places, positive, whole
from isde.engine import scales, stacking
from isde.engine.scales import Effort, Scales
from isde.engine.splines import Spline
from isde.engine.stacking import Experts
from isde.marginals.bounds import UNBOUNDED, Bounds, RowsUsed
from isde.marginals.conditional import given_and_others, sample_mixture_given
from isde.marginals.marginal import FittedBlock, WithoutBandwidth, checked_columns, of_columns
from isde.marginals.stack import (
    FINAL_DOUBLINGS,
    FINAL_STEPS,
    SCORING_STEPS,
    StackBlock,
    StackMarginal,
    final_doublings,
    stack_block,
)
from isde.run.executors import workers
from isde.splits import check_folds, warn_few_rows

NARROWEST_SCORES, WIDEST_SCORES = 0.125, 1.0
"""Kernel bandwidths on normal scores, whose spread is 1: four that come from one exponential."""

COLUMN_EFFORT = Effort(FINAL_DOUBLINGS, SCORING_STEPS)
"""For the columns of a block. Their splines need not be perfect, the stack of the scores makes up for it: 60 steps are
worth nothing more, but mixtures of 32 instead of 16 are worth 0.04 nats in ten blocks of levine32_h2.
"""


SPLINES: Layout = {
    "knots": places("n"),
    "values": places("n"),
    "slopes": positive("n"),
    "n_knots": whole("s"),
}
SHARE: Layout = {"share": numbers("", "a share between 0 and 1", lambda share: (share > 0) & (share < 1))}
"""What the files of blocks hold beside those of their stacks."""


@dataclass(frozen=True)
class CopulaBlock(WithoutBandwidth):
    """g(T_1(x_1), ..., T_s(x_s)) prod_j T_j'(x_j): a density g of normal scores, and a spline T_j for each column."""

    kind: ClassVar[str] = "copula"
    splines: tuple[Spline, ...]
    scores: StackBlock

    @property
    def n_columns(self) -> int:
        return len(self.splines)

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        Z, log_slope = scales.to_scores(self.splines, X)
        return self.scores.score_samples(Z, n_jobs) + log_slope

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        Z = self.scores.sample(n_samples, rng)
        return np.column_stack([spline.inverse(Z[:, j]) for j, spline in enumerate(self.splines)])

    def sample_given(self, columns: Sequence[int], values: Matrix, rng: np.random.RandomState) -> Matrix:
        given, others = given_and_others(columns, values, self.n_columns)
        scores, _ = scales.to_scores(tuple(self.splines[j] for j in given), values)
        Z = self.scores.sample_given(given, scores, rng)
        rows = np.empty(Z.shape)
        rows[:, given] = values
        for j in others:
            rows[:, j] = self.splines[j].inverse(Z[:, j])
        return rows

    def marginal(self, columns: Sequence[int]) -> CopulaBlock:
        own = checked_columns(columns, self.n_columns)
        return CopulaBlock(tuple(self.splines[j] for j in own), self.scores.marginal(own))

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        names = ("knots", "values", "slopes")
        arrays = {name: np.concatenate([getattr(spline, name) for spline in self.splines]) for name in names}
        counts = np.array([len(spline.knots) for spline in self.splines])
        return arrays | {"n_knots": counts} | over("scores.", self.scores.to_arrays())

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> CopulaBlock:
        scores, own = StackBlock.from_arrays(under("scores.", arrays)), beside("scores.", arrays)
        check_layout(own, SPLINES)
        splines = _splines(**own)
        if scores.n_columns != len(splines):
            raise ValueError("a copula needs a spline for each column of its scores")
        return cls(splines, scores)


@dataclass(frozen=True)
class ScalesBlock(WithoutBandwidth):
    """(1 - share) own + share copula: a density of the data as they are, and one of their normal scores."""

    kind: ClassVar[str] = "two-scales"
    own: StackBlock
    copula: CopulaBlock
    share: float  # of the normal scores, between 0 and 1

    @property
    def n_columns(self) -> int:
        return self.own.n_columns

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        own = self.own.score_samples(X, n_jobs) + np.log1p(-self.share)
        log_density: Vector = np.logaddexp(own, self.copula.score_samples(X, n_jobs) + np.log(self.share))
        return log_density

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        rows, on_scores = np.empty((n_samples, self.n_columns)), rng.random_sample(n_samples) < self.share
        rows[~on_scores] = self.own.sample(int((~on_scores).sum()), rng)
        rows[on_scores] = self.copula.sample(int(on_scores.sum()), rng)
        return rows

    def sample_given(self, columns: Sequence[int], values: Matrix, rng: np.random.RandomState) -> Matrix:
        shares = np.array([1 - self.share, self.share])
        return sample_mixture_given([self.own, self.copula], shares, columns, values, rng)

    def marginal(self, columns: Sequence[int]) -> ScalesBlock:
        return ScalesBlock(self.own.marginal(columns), self.copula.marginal(columns), self.share)

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        return (
            over("own.", self.own.to_arrays())
            | over("copula.", self.copula.to_arrays())
            | {"share": np.array(self.share)}
        )

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ScalesBlock:
        own = StackBlock.from_arrays(under("own.", arrays))
        copula = CopulaBlock.from_arrays(under("copula.", arrays))
        rest = beside("own.", beside("copula.", arrays))
        check_layout(rest, SHARE)
        if own.n_columns != copula.n_columns:
            raise ValueError("the two scales of a block have as many columns")
        return cls(own, copula, rest["share"].item())


@dataclass(frozen=True)
class ScalesStack:
    """Stacks on both scales, combined for each block; of `bandwidths`, on the data's own scale, only the range matters.

    A block of one column has the stack on its own scale: that is what its normal scores would come from.
    """

    bandwidths: Sequence[float] | None = None
    cv: int = 5
    own_scale: ClassVar[bool] = True

    @classmethod
    def with_options(cls, bandwidths: Sequence[float] | None, cv: int) -> Self:
        check_folds(cv)
        return cls(bandwidths, cv)

    def rows_used(self, n_rows: int, bounds: Bounds) -> RowsUsed:
        return bounds.used(n_rows)

    def fit_blocks(
        self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None, bounds: Bounds = UNBOUNDED
    ) -> list[FittedBlock]:
        """Blocks side by side: one alone has a single worker."""
        warn_few_rows(len(X), self.cv)
        with workers(n_jobs if len(blocks) > 1 else 1) as run:
            return list(run(self._fit_block, ((of_columns(X, block), bounds) for block in blocks)))

    def _fit_block(self, X: Matrix, bounds: Bounds) -> FittedBlock:
        stack = StackMarginal(self.bandwidths, self.cv)
        if X.shape[1] == 1:
            return stack.fit_alone(X, bounds)
        ladders = stack.ladder(), stacking.bandwidth_ladder(NARROWEST_SCORES, WIDEST_SCORES)
        found = scales.fit_scales(
            X,
            stack.folds(len(X)),
            *ladders,
            Effort(final_doublings(len(X), bounds), FINAL_STEPS),
            COLUMN_EFFORT,
            own_scale=self.own_scale,
            centres=bounds.centres(len(X)),
        )
        return _as_block(found)


@dataclass(frozen=True)
class CopulaStack(ScalesStack):
    """The stack of the columns' normal scores alone."""

    own_scale: ClassVar[bool] = False


def _as_block(found: Scales) -> FittedBlock:
    """Of the two scales, those that have weight."""
    share = found.scores.share
    if share == 0:
        return _part(found.own)
    copula = CopulaBlock(found.splines, _part(found.scores))
    return copula if found.own.share == 0 else ScalesBlock(_part(found.own), copula, share)


def _part(experts: Experts) -> StackBlock:
    """Experts of one scale as a density of their own."""
    kernels, mixtures = experts.kernel_weights / experts.share, experts.mixture_weights / experts.share
    centres = experts.centres if kernels.any() else experts.centres[:0]
    return stack_block(centres, experts.bandwidths, kernels, experts.mixtures, mixtures)


def _splines(knots: Vector, values: Vector, slopes: Vector, n_knots: NDArray[np.int64]) -> tuple[Spline, ...]:
    """Splines from their arrays side by side."""
    if not len(n_knots) or not ((n_knots >= 2) & (n_knots <= len(knots))).all() or n_knots.sum() != len(knots):
        raise ValueError("a spline needs two knots at least, and all splines as many as there are")
    parts = zip(*(np.split(array, np.cumsum(n_knots)[:-1]) for array in (knots, values, slopes)), strict=True)
    splines = tuple(Spline(*part) for part in parts)
    if not all((np.diff(s.knots) > 0).all() and (np.diff(s.values) > 0).all() for s in splines):
        raise ValueError("the knots and values of a spline increase")
    if not all(_is_tame(spline) for spline in splines):
        raise ValueError("the slopes of a spline are of another size than its steps")
    return splines


def _is_tame(spline: Spline) -> bool:
    """Whether the ratios of slopes that make up a spline stay in float64."""
    with np.errstate(over="ignore", under="ignore"):  # what is infinite is refused
        unit = np.diff(spline.knots) / np.diff(spline.values)
        least, most = spline.slopes.min() * unit.min(), spline.slopes.max() * unit.max()
    return bool(least >= 1 / FARTHEST and most <= FARTHEST)
