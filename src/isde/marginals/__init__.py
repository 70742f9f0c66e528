"""Families of marginal densities, by name or by example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isde.marginals.estimator import EstimatorMarginal
from isde.marginals.gaussian import GaussianBlock, GaussianMarginal
from isde.marginals.kde import KDEBlock, KDEMarginal
from isde.marginals.marginal import Block, Marginal, MarginalScores

MARGINAL_NAMES = ("kde", "gaussian", "gaussian-zero-mean")
BLOCK_KINDS: dict[str, type[KDEBlock] | type[GaussianBlock]] = {
    KDEBlock.kind: KDEBlock,
    GaussianBlock.kind: GaussianBlock,
}
"""Blocks that can be saved and loaded."""

__all__ = ["BLOCK_KINDS", "MARGINAL_NAMES", "Block", "Marginal", "MarginalScores", "resolve_marginal"]


def resolve_marginal(marginal: Any, *, bandwidths: Sequence[float] | None = None, cv: int = 5) -> Marginal:
    """The family meant by a name, by an estimator with `fit` and `score_samples`, or by itself."""
    if isinstance(marginal, str):
        if marginal not in MARGINAL_NAMES:
            raise ValueError(
                f"marginal={marginal!r} is unknown: use {', '.join(map(repr, MARGINAL_NAMES))}, "
                "or an estimator with fit and score_samples."
            )
        if marginal == "kde":
            if cv < 2:
                raise ValueError(f"cv={cv} must be at least 2 folds.")
            return KDEMarginal(bandwidths=bandwidths, cv=cv)
        return GaussianMarginal(zero_mean=marginal == "gaussian-zero-mean")
    if isinstance(marginal, Marginal):
        return marginal
    if hasattr(marginal, "fit") and hasattr(marginal, "score_samples"):
        return EstimatorMarginal(marginal)
    raise TypeError(
        f"marginal={marginal!r} is neither one of {', '.join(map(repr, MARGINAL_NAMES))} "
        "nor an estimator with fit and score_samples."
    )
