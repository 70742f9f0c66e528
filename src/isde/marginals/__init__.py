"""Families of marginal densities, by name or by example: one line here for each, and one file.

Their names on the command line and in the tests follow from here, with what is said of them, and so does the table in
docs/marginals.md (`make tables`). A family is imported when it is asked for: their names alone should cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from isde.marginals.marginal import Marginal

DEFAULT_MARGINAL = "copula+stack"


class Family(NamedTuple):
    """A line of the registry."""

    about: str
    steps: tuple[str, ...]
    """What scores subsets, and, where that is something else, what fits blocks; each is built by `with_options`."""


class Kind(NamedTuple):
    """Of fitted blocks."""

    about: str
    place: str


FAMILIES = {
    "copula+stack": Family(
        "subsets by ranks; blocks by stacks, of the data and of their normal scores",
        ("copula:CopulaScorer", "scales:ScalesStack"),
    ),
    "copula": Family(
        "subsets by ranks; blocks by stacks of their normal scores", ("copula:CopulaScorer", "scales:CopulaStack")
    ),
    "kde": Family("Gaussian kernels, bandwidth by cross-validation: the paper's", ("kde:KDEMarginal",)),
    "kde+stack": Family("subsets by kernels; blocks by stacks", ("kde:KDEMarginal", "stack:StackMarginal")),
    "stack": Family(
        "kernels of several bandwidths and Gaussian mixtures, by held-out likelihood", ("stack:StackMarginal",)
    ),
    "gaussian": Family("Gaussians", ("gaussian:GaussianMarginal",)),
    "gaussian-zero-mean": Family("Gaussians of mean zero, as in the paper", ("gaussian:ZeroMeanGaussian",)),
}

FITTED_KINDS = {
    "kde": Kind("Gaussian kernels of one bandwidth", "kde:KDEBlock"),
    "gaussian": Kind("Gaussian", "gaussian:GaussianBlock"),
    "gaussian-mixture": Kind("mixture of Gaussians", "mixture:MixtureBlock"),
    "stack": Kind("stack of kernels and Gaussian mixtures", "stack:StackBlock"),
    "copula": Kind("stack on the scale of normal scores", "scales:CopulaBlock"),
    "two-scales": Kind("stacks on two scales, the data's own and that of normal scores", "scales:ScalesBlock"),
    "tree": Kind("kernels of pairs of columns along a tree", "tree:TreeBlock"),
}
"""Fitted blocks that can be saved and loaded, by what their files call them."""

MARGINAL_NAMES = tuple(FAMILIES)


def fitted_kind(kind: str) -> Any:
    """The class of a saved block."""
    return _imported(FITTED_KINDS[kind].place)


def resolve_marginal(marginal: Any, *, bandwidths: Sequence[float] | None = None, cv: int = 5) -> Marginal:
    """The family meant by a name, by an estimator with `fit` and `score_samples`, by a list of these, or by itself."""
    from isde.marginals.marginal import Marginal

    if isinstance(marginal, str):
        return _named(marginal, bandwidths, cv)
    if isinstance(marginal, Marginal):
        return marginal
    if isinstance(marginal, list | tuple) and marginal:
        return _best_of([resolve_marginal(one, bandwidths=bandwidths, cv=cv) for one in marginal], marginal, cv)
    if hasattr(marginal, "fit") and hasattr(marginal, "score_samples"):
        if isinstance(marginal, type):
            name = marginal.__name__
            raise TypeError(f"marginal={name} is a class: pass an estimator made by it, such as {name}().")
        foreign: Marginal = _imported("estimator:EstimatorMarginal")(marginal)
        return foreign
    raise TypeError(
        f"marginal={marginal!r} is neither one of {', '.join(map(repr, FAMILIES))} "
        "nor an estimator with fit and score_samples, nor a list of these."
    )


def _named(name: str, bandwidths: Sequence[float] | None, cv: int) -> Marginal:
    if name not in FAMILIES:
        raise ValueError(
            f"marginal={name!r} is unknown: use {', '.join(map(repr, FAMILIES))}, "
            "an estimator with fit and score_samples, or a list of these."
        )
    steps = [_imported(place).with_options(bandwidths, cv) for place in FAMILIES[name].steps]
    family: Marginal = steps[0] if len(steps) == 1 else _imported("two_step:TwoStepMarginal")(*steps)
    return family


def _best_of(members: Sequence[Marginal], given: Any, cv: int) -> Marginal:
    from isde.marginals.best import BestMarginal

    if any(member.traits.by_ranks for member in members):
        raise ValueError(
            f"marginal={given!r}: scores on the copula scale are of dependence alone, and cannot be compared "
            "with others; name 'copula' or 'copula+stack' alone, or leave it out of the list."
        )
    flat = (one.families if isinstance(one, BestMarginal) else (one,) for one in members)
    return BestMarginal(tuple(family for families in flat for family in families), cv)


def _imported(place: str) -> Any:
    module, name = place.split(":")
    return getattr(import_module(f"isde.marginals.{module}"), name)
