"""Families of marginal densities, by name or by example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isde.marginals.best import BestMarginal
from isde.marginals.copula import CopulaScorer
from isde.marginals.estimator import EstimatorMarginal
from isde.marginals.gaussian import GaussianBlock, GaussianMarginal
from isde.marginals.kde import KDEBlock, KDEMarginal
from isde.marginals.marginal import Block, BlockFamily, Marginal, MarginalScores, SubsetScorer
from isde.marginals.mixture import MixtureBlock
from isde.marginals.scales import CopulaBlock, CopulaStack, ScalesBlock, ScalesStack
from isde.marginals.stack import StackBlock, StackMarginal
from isde.marginals.tree import TreeBlock
from isde.marginals.two_step import TwoStepMarginal

MARGINAL_NAMES = ("copula+stack", "copula", "kde", "kde+stack", "stack", "gaussian", "gaussian-zero-mean")
DEFAULT_MARGINAL = "copula+stack"
BLOCK_KINDS: dict[str, type[Any]] = {
    KDEBlock.kind: KDEBlock,
    GaussianBlock.kind: GaussianBlock,
    MixtureBlock.kind: MixtureBlock,
    StackBlock.kind: StackBlock,
    CopulaBlock.kind: CopulaBlock,
    ScalesBlock.kind: ScalesBlock,
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
    "SubsetScorer",
    "TwoStepMarginal",
    "resolve_marginal",
]


def resolve_marginal(marginal: Any, *, bandwidths: Sequence[float] | None = None, cv: int = 5) -> Marginal:
    """The family meant by a name, by an estimator with `fit` and `score_samples`, by a list of these, or by itself."""
    if isinstance(marginal, str):
        return _named(marginal, bandwidths, cv)
    if isinstance(marginal, Marginal):
        return marginal
    if isinstance(marginal, list | tuple) and marginal:
        members = [resolve_marginal(one, bandwidths=bandwidths, cv=cv) for one in marginal]
        if any(member.by_ranks for member in members):
            raise ValueError(
                f"marginal={marginal!r}: scores on the copula scale are of dependence alone, and cannot be compared "
                "with others; name 'copula' or 'copula+stack' alone, or leave it out of the list."
            )
        flat = (one.families if isinstance(one, BestMarginal) else (one,) for one in members)
        return BestMarginal(tuple(family for families in flat for family in families), cv)
    if hasattr(marginal, "fit") and hasattr(marginal, "score_samples"):
        return EstimatorMarginal(marginal)
    raise TypeError(
        f"marginal={marginal!r} is neither one of {', '.join(map(repr, MARGINAL_NAMES))} "
        "nor an estimator with fit and score_samples, nor a list of these."
    )


def _named(name: str, bandwidths: Sequence[float] | None, cv: int) -> Marginal:
    if name not in MARGINAL_NAMES:
        raise ValueError(
            f"marginal={name!r} is unknown: use {', '.join(map(repr, MARGINAL_NAMES))}, "
            "an estimator with fit and score_samples, or a list of these."
        )
    if name.startswith("gaussian"):
        return GaussianMarginal(zero_mean=name == "gaussian-zero-mean")
    if cv < 2:
        raise ValueError(f"cv={cv} must be at least 2 folds.")
    kde, stack = KDEMarginal(bandwidths=bandwidths, cv=cv), StackMarginal(bandwidths=bandwidths, cv=cv)
    families: dict[str, Marginal] = {
        "copula+stack": TwoStepMarginal(CopulaScorer(cv), ScalesStack(bandwidths, cv)),
        "copula": TwoStepMarginal(CopulaScorer(cv), CopulaStack(bandwidths, cv)),
        "kde": kde,
        "stack": stack,
        "kde+stack": TwoStepMarginal(kde, stack),
    }
    return families[name]
