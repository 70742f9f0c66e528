"""A convex combination of experts on both scales: the data's own, and that of the columns' normal scores.

Each column has a stack of its own, which gives it a spline to normal scores (`engine.splines`). For each fold, splines
and experts come from the rows of the other folds alone, and so do the weights of the columns' stacks: chosen on all
rows, they flattered the scores of 300 rows of two moons by 0.2 nats. Held-out log-densities of both scales then compete
for one set of weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays, IntVector, Matrix, Vector
from isde.engine.mixtures import Mixtures, grow_mixtures
from isde.engine.splines import ColumnLaw, Spline
from isde.engine.stacking import (
    Experts,
    Scale,
    Stack,
    choose_weights,
    fit_stack,
    kernel_log_densities,
    mixture_log_densities,
    on_own_scale,
    refit,
)


@dataclass(frozen=True)
class Scales(FrozenArrays):
    """What was learned for one block; the shares of the two scales add up to 1."""

    own: Experts
    splines: tuple[Spline, ...]  # one for each column
    scores: Experts
    held_out: NDArray[np.float32]  # log-density of each row by each expert, own scale first, (experts, rows)


@dataclass(frozen=True)
class Effort:
    """How many mixtures, each of twice the components of the one before, and how many steps for each."""

    doublings: int
    steps: int


def fit_scales(
    X: Matrix,
    fold: IntVector,
    bandwidths: Vector,
    score_bandwidths: Vector,
    effort: Effort,
    column_effort: Effort,
    *,
    own_scale: bool,
    centres: IntVector | None = None,
) -> Scales:
    """Experts of both scales, or of the normal scores alone, and their weights.

    `fold` ascends, and so do the rows that are the centres of kernels; None: all of them.
    """
    columns = [np.ascontiguousarray(X[:, [j]]) for j in range(X.shape[1])]
    stacks = [fit_stack(x, fold, bandwidths, column_effort.doublings, column_effort.steps, centres) for x in columns]
    splines = tuple(_spline(stack.weights, stack.mixtures, X[:, j], stack.bandwidths) for j, stack in enumerate(stacks))
    scores, log_slope = to_scores(splines, X)
    on_scores = _held_out_on_scores(X, fold, stacks, score_bandwidths, effort, centres)
    sides = [Scale(scores, log_slope, score_bandwidths, *on_scores, same_for_folds=False, centres=centres)]
    if own_scale:
        sides.insert(0, on_own_scale(X, fold, bandwidths, effort.doublings, effort.steps, centres))
    found = refit(sides, effort.steps)
    held_out = np.concatenate([side.held_out for side in sides])
    return Scales(found[0] if own_scale else _no_experts(X), splines, found[-1], held_out)


def to_scores(splines: tuple[Spline, ...], X: Matrix) -> tuple[Matrix, Vector]:
    """Normal scores of each row, and the logarithm of what the splines stretch space by there."""
    scores, log_slopes = zip(*(spline.forward(X[:, j]) for j, spline in enumerate(splines)), strict=True)
    return np.column_stack(scores), np.sum(log_slopes, axis=0)


def _held_out_on_scores(
    X: Matrix,
    fold: IntVector,
    stacks: list[Stack],
    score_bandwidths: Vector,
    effort: Effort,
    centres: IntVector | None = None,
) -> tuple[NDArray[np.float32], tuple[Mixtures, ...]]:
    """Log-density of each row by each expert on the normal scores, all from the other folds, (experts, rows).

    Then the mixtures among these.
    """
    fold_mixtures = []
    held_out = np.empty((len(score_bandwidths) + effort.doublings + 1, len(X)), dtype=np.float32)
    for number in range(int(fold.max()) + 1):
        here = fold == number
        others = X[~here]
        splines = tuple(
            _spline(
                choose_weights(stack.held_out[:, ~here], len(stack.bandwidths)),
                stack.fold_mixtures[number],
                others[:, j],
                stack.bandwidths,
            )
            for j, stack in enumerate(stacks)
        )
        scores, _ = to_scores(splines, others)
        queries, log_slope = to_scores(splines, X[here])
        own = scores if centres is None else scores[np.isin(np.flatnonzero(~here), centres)]
        one_fold, none = np.zeros(len(own), dtype=np.int64), np.full(len(queries), -1)
        kernels = kernel_log_densities(own, one_fold, queries, none, score_bandwidths)
        grown = grow_mixtures(scores, effort.doublings, effort.steps)
        held_out[:, here] = np.concatenate([kernels, mixture_log_densities(grown, queries)]) + log_slope
        fold_mixtures.append(grown)
    return held_out, tuple(fold_mixtures)


def _spline(weights: Vector, mixtures: Mixtures, x: Vector, bandwidths: Vector) -> Spline:
    """To normal scores of a column, by the weights of its stack, kernels first, and experts of the rows x."""
    kernel_weights, mixture_weights = np.split(weights, [len(bandwidths)])
    kept, sizes = kernel_weights > 0, np.flatnonzero(mixture_weights).tolist()
    parts, means, covariances = zip(*(mixtures.components(size) for size in sizes), strict=True)
    return ColumnLaw(
        np.concatenate([w * own for w, own in zip(mixture_weights[sizes], parts, strict=True)]),
        np.concatenate(means)[:, 0],
        np.sqrt(np.concatenate(covariances)[:, 0, 0]),
        x,
        bandwidths[kept],
        kernel_weights[kept],
    ).spline()


def _no_experts(rows: Matrix) -> Experts:
    return Experts(rows, np.empty(0), np.empty(0), grow_mixtures(rows, 0, 0), np.empty(0))
