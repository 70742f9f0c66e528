"""One table from several: the mean over splits, the best of several models, dependence and columns by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from isde.arrays import Vector
from isde.scores import ALIGNED, SubsetScores

AVERAGED_AT_ONCE = 1 << 16
"""Subsets whose scores of all splits are averaged together: what that takes besides stays small, however many."""


def average_scores(tables: Sequence[SubsetScores], common: float) -> SubsetScores:
    """One table from several splits of the same rows: mean score, its standard error, median bandwidth.

    Splits share rows: more of them take away the chance of the split, not that of the rows. Two splits that score a
    share `common` of the same rows differ by less than two samples do, and their scores have that much correlation
    (Nadeau and Bengio 2003, who take it from the numbers of rows where they are drawn at random).
    """
    if len(tables) == 1:
        return tables[0]
    first, widening = tables[0], np.sqrt(1 / len(tables) + common / (1 - common))
    names = "scores", "errors", "gain_errors", "bandwidths"
    found: dict[str, Any] = {name: np.empty(len(first)) for name in names}
    for size in range(1, first.max_block_size + 1):
        where = first.subsets.of_size(size)
        for start in range(where.start, where.stop, AVERAGED_AT_ONCE):
            here = slice(start, min(start + AVERAGED_AT_ONCE, where.stop))
            scores, gains = (
                np.stack(values) for values in zip(*(_within(table, size, here) for table in tables), strict=True)
            )
            found["scores"][here] = scores.mean(axis=0)
            with np.errstate(invalid="ignore"):  # -inf minus -inf: a subset no split could fit has no spread
                found["errors"][here] = scores.std(axis=0, ddof=1) * widening
                found["gain_errors"][here] = gains.std(axis=0, ddof=1) * widening
            found["bandwidths"][here] = np.median([table.bandwidths[here] for table in tables], axis=0)
    return replace(first, unsettled=tuple(sorted({c for table in tables for c in table.unsettled})), **found)


def _within(table: SubsetScores, size: int, here: slice) -> tuple[Vector, Vector]:
    """Scores and gains of some subsets of one size."""
    first, scores = table.subsets.offsets[size], table.scores[here]
    members = table.subsets.members(size)[here.start - first : here.stop - first]
    with np.errstate(invalid="ignore"):  # -inf minus -inf: no gain can be told
        return scores, scores - table.scores[: table.n_columns][members].sum(axis=1)


def best_scores(tables: Sequence[SubsetScores]) -> SubsetScores:
    """One table from those of several models: for each subset, what the model with the best score says.

    The best mean over splits: were it taken split by split, the luck of a model on the rows that score would enter.
    Where chance is charged, the best after charges: a model that chance favours less wins with less.
    """
    best, every = np.argmax([table.objectives for table in tables], axis=0), np.arange(len(tables[0]))
    return replace(
        tables[0],
        unsettled=tuple(c for c in range(tables[0].n_columns) if c in tables[best[c]].unsettled),
        dearest_pair=max(float(table.charges[table.subsets.sizes == 2].max(initial=0.0)) for table in tables),
        **{name: np.stack([getattr(table, name) for table in tables])[best, every] for name in ALIGNED},
    )


def with_columns(scores: SubsetScores, alone: SubsetScores) -> SubsetScores:
    """Scores of dependence alone plus what each column scores by itself.

    Gains and their errors do not change; the error of a score is that of two terms that hardly know each other.
    """
    errors = np.sqrt(scores.gain_errors**2 + scores.subsets.sum_over_members(alone.errors**2))
    return replace(scores.shifted(alone.scores), errors=errors, unsettled=alone.unsettled, dependence=scores.gains)
