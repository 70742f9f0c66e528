"""The contract of a marginal, asked without the loop that users have: what each model says of every subset."""

from types import SimpleNamespace

import numpy as np

from isde.run.work import Means


def by_model(scorer, X_fit, X_score, subsets, means=None):
    """Scores, bandwidths and unsettled bandwidths of each model, chunk by chunk."""
    return of_rows(scorer, scorer.prepare(X_fit, X_score), subsets, means=means)


def by_split(scorer, X, splits, subsets):
    """`by_model` of each split; ten or more share the mean of what the first ten find, each on a part of its rows."""
    prepared = [scorer.prepare(X[fit], X[score]) for fit, score in splits]
    if len(splits) >= 10:
        found = [of_rows(scorer, scorer.to_tune(rows, 0.2), subsets, tuned=True) for rows in prepared[:10]]
        tuned = [nearest_to_mean(of_model) for of_model in zip(*found, strict=True)]
        prepared = [scorer.with_tuned(rows, tuned) for rows in prepared]
    return [of_rows(scorer, rows, subsets) for rows in prepared]


def nearest_to_mean(found):
    """Of what splits found for each subset by one model, the bandwidth nearest to their geometric mean."""
    each = np.array([one.bandwidths for one in found])
    if np.isnan(each).any():
        return None
    bandwidths = [
        min(own, key=lambda h, own=own: (round(abs(np.log(h) - np.log(own).mean()), 9), -h)) for own in each.T
    ]
    return SimpleNamespace(bandwidths=np.array(bandwidths), unsettled=np.any([one.unsettled for one in found], axis=0))


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
