"""The estimators that a name stands for: one line for each, from which the names on the command line follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from inspect import signature
from typing import Any

from isde.baselines.block_covariance import BlockDiagonalGaussian
from isde.baselines.covariance import EmpiricalGaussian
from isde.baselines.forest import ForestDensity
from isde.baselines.kernel import CVKDE
from isde.baselines.mixture import GaussianMixtureCV
from isde.baselines.vine import VineDensity, require_pyvinecopulib
from isde.errors import InputError
from isde.estimator import ISDE
from isde.tree_estimator import TreeISDE

PAPER_SPLIT = 0.6
"""ISDE there fits the marginals on 3,000 of 5,000 training rows, and scores subsets on the other 2,000."""


@dataclass(frozen=True)
class MethodOptions:
    """What the methods by name share: each takes those that its estimator has a parameter for."""

    max_block_size: int | None = None  # None: each method's own
    n_jobs: int | None = None
    random_state: int | None = None
    verbose: int = 0


@dataclass(frozen=True)
class Method:
    """An estimator that can be asked for by name."""

    about: str  # for people who choose
    estimator: Callable[..., Any]  # makes it
    settings: Mapping[str, Any] = field(default_factory=dict)  # its own, beside what all methods share
    require: Callable[[], Any] | None = None  # raises now, not when the other methods have run, where it cannot work

    def build(self, options: MethodOptions) -> Any:
        if self.require is not None:
            self.require()
        taken = signature(self.estimator).parameters
        shared = {name: value for name, value in asdict(options).items() if name in taken and value is not None}
        return self.estimator(**shared, **self.settings)


_PAPER = {"split": PAPER_SPLIT}

METHODS: dict[str, Method] = {
    "isde": Method("ISDE by default: structure by ranks, blocks by stacks, twenty splits", ISDE),
    "isde-kde": Method(
        "the paper's ISDE: kernels, 60 % of the training rows fit, 40 % score", ISDE, {"marginal": "kde", **_PAPER}
    ),
    "isde-stack": Method("the same with stacked densities", ISDE, {"marginal": "stack", **_PAPER}),
    "isde-gaussian": Method("the same with Gaussians", ISDE, {"marginal": "gaussian", **_PAPER}),
    "tree": Method("trees of blocks: ISDE's default with cliques that overlap, of at most 4 columns", TreeISDE),
    "fde": Method("forest density, the same split", ForestDensity, _PAPER),
    "cvkde": Method("kernel density on all columns, bandwidth by cross-validation", CVKDE),
    "gm": Method("mixture of 1 to 30 Gaussians, by cross-validation", GaussianMixtureCV),
    "bdcs": Method("Gaussian, block-diagonal covariance by the slope heuristic", BlockDiagonalGaussian),
    "gaussian": Method("Gaussian", EmpiricalGaussian),
    "vine": Method("vine copula with kernel margins, by pyvinecopulib", VineDensity, require=require_pyvinecopulib),
}


def build_methods(names: Sequence[str], options: MethodOptions | None = None) -> dict[str, Any]:
    """The estimators with these names, in their order; those of the paper with its split."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise InputError(f"There is no method {unknown[0]!r}: the methods are {', '.join(METHODS)}.")
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InputError(f"The method {twice[0]!r} is named twice.")
    return {name: METHODS[name].build(options or MethodOptions()) for name in names}
