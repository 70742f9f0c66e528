"""Families of marginal densities, by name or by example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isde.marginals.best import BestMarginal
from isde.marginals.estimator import EstimatorMarginal
from isde.marginals.gaussian import GaussianBlock, GaussianMarginal
from isde.marginals.kde import KDEBlock, KDEMarginal
from isde.marginals.marginal import Block, BlockFamily, Marginal, MarginalScores
from isde.marginals.mixture import MixtureBlock
from isde.marginals.stack import StackBlock, StackMarginal
from isde.marginals.tree import TreeBlock
from isde.marginals.two_step import TwoStepMarginal

MARGINAL_NAMES = ("kde", "gaussian", "gaussian-zero-mean", "stack", "kde+stack")
DEFAULT_MARGINAL = "kde+stack"
BLOCK_KINDS: dict[str, type[Any]] = {
    KDEBlock.kind: KDEBlock,
    GaussianBlock.kind: GaussianBlock,
    MixtureBlock.kind: MixtureBlock,
    StackBlock.kind: StackBlock,
    TreeBlock.kind: TreeBlock,
}
"""Blocks that can be saved and loaded."""

__all__ = [
    "BLOCK_KINDS",
    "DEFAULT_MARGINAL",
    "MARGINAL_NAMES",
    "BestMarginal",
    "Block",
    "BlockFamily",
    "Marginal",
    "MarginalScores",
    "families_of",
    "resolve_marginal",
]


def resolve_marginal(
    marginal: Any, *, bandwidths: Sequence[float] | None = None, cv: int = 5
) -> Marginal | BestMarginal:
    """The family meant by a name, by an estimator with `fit` and `score_samples`, by a list of these, or by itself."""
    if isinstance(marginal, str):
        if marginal not in MARGINAL_NAMES:
            raise ValueError(
                f"marginal={marginal!r} is unknown: use {', '.join(map(repr, MARGINAL_NAMES))}, "
                "an estimator with fit and score_samples, or a list of these."
            )
        if marginal.startswith("gaussian"):
            return GaussianMarginal(zero_mean=marginal == "gaussian-zero-mean")
        if cv < 2:
            raise ValueError(f"cv={cv} must be at least 2 folds.")
        kde, stack = KDEMarginal(bandwidths=bandwidths, cv=cv), StackMarginal(bandwidths=bandwidths, cv=cv)
        families: dict[str, Marginal] = {"kde": kde, "stack": stack, "kde+stack": TwoStepMarginal(kde, stack)}
        return families[marginal]
    if isinstance(marginal, Marginal | BestMarginal):
        return marginal
    if isinstance(marginal, list | tuple) and marginal:
        members = (resolve_marginal(one, bandwidths=bandwidths, cv=cv) for one in marginal)
        return BestMarginal(tuple(family for member in members for family in families_of(member)), cv)
    if hasattr(marginal, "fit") and hasattr(marginal, "score_samples"):
        return EstimatorMarginal(marginal)
    raise TypeError(
        f"marginal={marginal!r} is neither one of {', '.join(map(repr, MARGINAL_NAMES))} "
        "nor an estimator with fit and score_samples, nor a list of these."
    )


def families_of(marginal: Marginal | BestMarginal) -> tuple[Marginal, ...]:
    """The families to be scored: those of a list, or the one alone."""
    return marginal.families if isinstance(marginal, BestMarginal) else (marginal,)
