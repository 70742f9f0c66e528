"""The contract of a marginal, asked without the loop that users have: what each model says of every subset."""

from types import SimpleNamespace

import numpy as np

from isde.run.work import Means


def by_model(scorer, X_fit, X_score, subsets, means=None):
    """Scores, bandwidths and unsettled bandwidths of each model, chunk by chunk."""
    rows = scorer.prepare(X_fit, X_score)
    models = [
        SimpleNamespace(
            scores=np.full(len(subsets), np.nan),
            bandwidths=np.full(len(subsets), np.nan),
            unsettled=np.zeros(len(subsets), dtype=bool),
        )
        for _ in range(scorer.n_models)
    ]
    for chunk in scorer.chunks(subsets):
        found, model = scorer.score(rows, subsets, chunk, means or Means()), models[chunk.model]
        assert len(found.positions) == chunk.n_subsets
        for name in ("scores", "bandwidths", "unsettled"):
            getattr(model, name)[found.positions] = getattr(found, name)
    return models


def fit_one(family, X):
    """The density of all columns as one block."""
    return family.fit_blocks(X, [range(X.shape[1])], n_jobs=1)[0]
