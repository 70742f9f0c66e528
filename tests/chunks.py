"""The contract of a marginal, asked without the loop that users have: what each model says of every subset."""

from types import SimpleNamespace

import numpy as np

import oracles
from isde.run.work import Means


def by_model(scorer, X_fit, X_score, subsets, means=None):
    """Scores, bandwidths and unsettled bandwidths of each model, chunk by chunk."""
    return of_rows(scorer, scorer.prepare(X_fit, X_score), subsets, means=means)


def by_split(scorer, X, splits, subsets):
    """`by_model` of each split; several share what is tuned, on all rows."""
    prepared = [scorer.prepare(X[fit], X[score]) for fit, score in splits]
    if len(splits) > 1:
        to_tune = scorer.prepare_tuning(oracles.shuffled(X), min(len(fit) for fit, _ in splits))
        tuned = of_rows(scorer, to_tune, subsets, tuned=True)
        prepared = [scorer.with_tuned(rows, tuned) for rows in prepared]
    return [of_rows(scorer, rows, subsets) for rows in prepared]


def of_rows(scorer, rows, subsets, *, tuned=False, means=None):
    models = [
        SimpleNamespace(
            scores=np.full(len(subsets), np.nan),
            bandwidths=np.full(len(subsets), np.nan),
            unsettled=np.zeros(len(subsets), dtype=bool),
        )
        for _ in range(scorer.n_models)
    ]
    for chunk in scorer.chunks(subsets):
        if tuned and not chunk.tuned:
            continue
        found, model = scorer.score(rows, subsets, chunk, means or Means()), models[chunk.model]
        assert len(found.positions) == chunk.n_subsets
        for name in ("scores", "bandwidths", "unsettled"):
            getattr(model, name)[found.positions] = getattr(found, name)
    return models


def fit_one(family, X):
    """The density of all columns as one block."""
    return family.fit_blocks(X, [range(X.shape[1])], n_jobs=1)[0]
